"""Ctrl-C during a workflow: a training saves after its update, no other step is started, and nothing is reported twice.

A terminal sends Ctrl-C to every process, so that the steps take it themselves. Snakemake would cancel at once, and
print each step that ended as a failure.
"""

from __future__ import annotations

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

# The exit status of a shell for Ctrl-C.
STATUS_INTERRUPTED = 128 + signal.SIGINT
_RESUMES = "the same command resumes"


class Interruption:
    """Whether Ctrl-C was pressed, in the process that runs the workflow."""

    def __init__(self) -> None:
        self.asked = 0
        self._began = time.time()
        self._trainings: Callable[[], Iterable[Path]] = tuple

    def take(self, logger: logging.Logger, trainings: Callable[[], Iterable[Path]]) -> None:
        """Take Ctrl-C from now on, unless it is ignored. trainings: returns the folders of those that run."""
        self._began, self._trainings = time.time(), trainings
        in_main_thread = threading.current_thread() is threading.main_thread()
        if in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._interrupt)
            logger.addFilter(lambda record: not self.asked or record.levelno < logging.ERROR)

    def last_words(self, logs: Iterable[Path]) -> list[str]:
        """Return what to print at the end: how far each training came, by the last lines of the logs of this run."""
        lines = []
        for log in logs:
            if log.exists() and log.stat().st_mtime >= self._began:
                last = log.read_text(encoding="utf-8", errors="replace").rstrip("\n").rpartition("\n")[2]
                if last.endswith(_RESUMES):
                    lines.append(last)
        return lines or [f"mt-scaffold: interrupted; {_RESUMES}"]

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.asked += 1
        # What Snakemake's scheduler does on SIGTERM: it starts no other step, and waits for those that run.
        wait_for_running = signal.getsignal(signal.SIGTERM)
        if self.asked > 2:
            os._exit(STATUS_INTERRUPTED)
        if self.asked == 2 or not callable(wait_for_running):
            sys.exit(STATUS_INTERRUPTED)
        # Not print, which the signal may have come in the middle of.
        os.write(2, b"\nmt-scaffold: stopping; a training saves after its update. Ctrl-C again ends at once\n")
        # In a thread, because it takes a lock that this one may hold.
        threading.Thread(target=wait_for_running, daemon=True).start()
        # Where the signal was sent to this process alone.
        for folder in self._trainings():
            StopRequest.of(folder).make()


interruption = Interruption()
