"""Ctrl-C or SIGTERM in a workflow: trainings save after their update, no step starts, nothing is reported twice.

A terminal sends Ctrl-C to every process, so that the steps handle it themselves. Snakemake would cancel at once, and
print each step that ended as a failure.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType

from mt_scaffold.experiment.training.stop_request import StopRequest

# The exit status after Ctrl-C, as in a shell.
STATUS_INTERRUPTED = 128 + signal.SIGINT
_RESUMES = "the same command resumes"
_ASKS_EVERY = 1.0  # seconds


class Interruption:
    """An interruption of the process that runs the workflow.

    asked: the number of signals so far, without SIGTERMs after the first signal. status: the exit status.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.status = STATUS_INTERRUPTED
        self._began = time.time()
        self._made: set[StopRequest] = set()
        self._trainings: Callable[[], Iterable[Path]] = tuple
        self._wait_for_running: object = None

    def take(self, logger: logging.Logger, trainings: Callable[[], Iterable[Path]]) -> None:
        """Handle Ctrl-C, unless it is ignored, and SIGTERM from now on. trainings: returns the running ones' folders.

        Both then call Snakemake's own handler of SIGTERM, which starts no further step and waits for those running.
        """
        self._began, self._trainings = time.time(), trainings
        if threading.current_thread() is not threading.main_thread():
            return
        self._wait_for_running = signal.getsignal(signal.SIGTERM)
        signal.signal(signal.SIGTERM, self._interrupt)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._interrupt)
        logger.addFilter(lambda record: not self.asked or record.levelno < logging.ERROR)

    def last_words(self, logs: Iterable[Path]) -> list[str]:
        """Return the closing lines: the progress of each training, from the last lines of the logs of this run."""
        for request in self._made:
            with contextlib.suppress(OSError):
                request.withdraw()
        lines = []
        for log in logs:
            if log.exists() and log.stat().st_mtime >= self._began:
                last = log.read_text(encoding="utf-8", errors="replace").rstrip("\n").rpartition("\n")[2]
                if last.endswith(_RESUMES):
                    lines.append(last)
        return lines or [f"mt-scaffold: interrupted; {_RESUMES}"]

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.asked and number == signal.SIGTERM:
            return  # schedulers send it repeatedly
        self.asked += 1
        if self.asked == 1:
            self.status = 128 + number
        if self.asked > 2:
            os._exit(self.status)
        if self.asked == 2 or not callable(self._wait_for_running):
            sys.exit(self.status)
        # Not print, which the signal may have interrupted.
        os.write(2, b"\nmt-scaffold: stopping; a training saves after its update. Ctrl-C again ends at once\n")
        # In another thread, because it takes a lock that this one may hold.
        threading.Thread(target=self._wait_for_running, daemon=True).start()
        threading.Thread(target=self._ask_trainings, daemon=True).start()

    def _ask_trainings(self) -> None:
        """Ask the running trainings to stop, repeatedly, as the signal may have reached only this process.

        Repetition is needed because a training withdraws an earlier request when it begins.
        """
        while True:
            for request in map(StopRequest.of, self._trainings()):
                # If one folder cannot be written to, as on a full disk, the other trainings must still be asked.
                with contextlib.suppress(OSError):
                    request.make()
                    self._made.add(request)
            time.sleep(_ASKS_EVERY)


interruption = Interruption()
