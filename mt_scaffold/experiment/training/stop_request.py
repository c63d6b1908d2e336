"""Ask a running training to save and end, with a file that it polls and answers in."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.runtime.locks import lock_lost

# The environment variable by which the training learns the path of the file.
STOP_FILE = "MT_SCAFFOLD_STOP_FILE"
_NAME = "stop-requested"


class StoppedOnRequest(MTScaffoldError):
    """A training was asked to stop and can be resumed (exit status 75, EX_TEMPFAIL: try again later)."""

    exit_status = 75


class Interrupted(StoppedOnRequest):
    """A training was asked to stop with Ctrl-C, and can be resumed (the exit status of a shell for SIGINT)."""

    exit_status = 128 + signal.SIGINT


@dataclass(frozen=True)
class StopRequest:
    """A file that is empty once a training is asked to stop, and has the number of its updates once it has stopped."""

    path: Path

    @classmethod
    def of(cls, training: PathLike) -> StopRequest:
        """Return the request for the training in a folder."""
        return cls(Path(training) / _NAME)

    def make(self) -> None:
        """Ask the training to stop."""
        self.path.touch()

    @property
    def made(self) -> bool:
        """Whether the training has been asked to stop but has not stopped yet."""
        try:
            return self.path.stat().st_size == 0
        except OSError:
            return False

    def answer(self, updates: int) -> None:
        """Record that the training has stopped, after this many updates."""
        self.path.write_text(str(updates), encoding="ascii")

    def withdraw(self) -> int | None:
        """Remove the file; return the updates after which the training stopped, or None without an answer."""
        try:
            text = self.path.read_text(encoding="ascii")
        except FileNotFoundError:
            return None
        self.path.unlink(missing_ok=True)
        return int(text) if text else None


class _Signal:
    """Handlers of SIGUSR1 and Ctrl-C, which ask a running training to stop; without one, they end this process."""

    def __init__(self, training: PathLike) -> None:
        self.training = training
        self.running: StopRequest | None = None
        self.interrupted = False

    def request(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGUSR1."""
        if self.running is None:
            raise StoppedOnRequest(f"{self.training}: stopped on request, not in training; the same command resumes it")
        self._ask(self.running)

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Handle Ctrl-C; a second one ends at once, and so does the first one if the lock was lost.

        The stop request would then reach the training of the lock's new holder.
        """
        if self.running is None or self.interrupted or lock_lost.is_set():
            raise KeyboardInterrupt
        self.interrupted = True
        # print fails if the signal interrupts another print.
        os.write(2, b"mt-scaffold: saving after this update; Ctrl-C again ends at once\n")
        self._ask(self.running)

    def _ask(self, running: StopRequest) -> None:
        try:
            running.make()
        except OSError as error:
            # Raised here, it would end the training.
            os.write(2, os.fsencode(f"mt-scaffold: {running.path}: {error.strerror}; cannot stop the training\n"))

    def stopped(self, updates: int) -> StoppedOnRequest:
        """Return the error to raise when a training has stopped, after this many updates."""
        if self.interrupted:
            return Interrupted(f"{self.training}: interrupted after update {updates}; the same command resumes")
        return StoppedOnRequest(f"{self.training}: stopped on request after update {updates}; the same command resumes")

    @contextmanager
    def stops_training(self) -> Iterator[StopRequest]:
        """Direct the signals to the training that runs in the block."""
        request = StopRequest.of(self.training)
        request.withdraw()
        self.running = request
        try:
            yield request
        finally:
            self.running = None


@contextmanager
def stopped_by_signal(training: PathLike) -> Iterator[_Signal]:
    """Within the block, stop on SIGUSR1 with StoppedOnRequest, and on Ctrl-C with Interrupted once a training runs.

    In the main thread only, because no other receives signals.
    """
    taken = _Signal(training)
    if threading.current_thread() is not threading.main_thread():
        yield taken
        return
    before = {signal.SIGUSR1: signal.signal(signal.SIGUSR1, taken.request)}
    # Programs that a shell script starts in the background ignore Ctrl-C; this one continues to ignore it then.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, taken.interrupt)
    try:
        yield taken
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
