"""How far a training is: a small file next to its log, which the training writes and a display reads."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from mt_scaffold.corpus.files import PathLike

# The environment variable that names the file to the training, and its name in the folder of the training.
PROGRESS_FILE = "MT_SCAFFOLD_PROGRESS_FILE"
_NAME = "progress.txt"
_SECONDS_BETWEEN_NOTES = 1.0


@dataclass(frozen=True)
class Noted:
    """How far a training is: the share done, from 0 to 1, and the loss of the epoch so far, in bits per token."""

    share: float
    epoch: int
    updates: int
    loss: float | None = None

    def __str__(self) -> str:
        loss = "" if self.loss is None else f", loss {self.loss:.2f}"
        return f"epoch {self.epoch}, update {self.updates:,}{loss}"


class ProgressNotes:
    """Writes how far a training is, at most once per second."""

    def __init__(self) -> None:
        self._next = 0.0

    def note(self, path: PathLike, reached: Callable[[], Noted]) -> None:
        """Write what is reached, unless a moment ago; a file that cannot be written is no reason to stop."""
        if (now := time.monotonic()) < self._next:
            return
        self._next = now + _SECONDS_BETWEEN_NOTES
        with contextlib.suppress(OSError):
            noted = reached()
            loss = "" if noted.loss is None else f" {noted.loss:.6f}"
            Path(path).write_text(f"{noted.share:.6f} {noted.epoch} {noted.updates}{loss}\n", encoding="ascii")


def share_done(reached: Iterable[tuple[float, float | None]]) -> float:
    """Return the largest of the shares, each an amount and its limit; a limit that is None or not positive is none.

    >>> share_done([(50, 200), (3, 4), (7, None), (9, 0)])
    0.75
    """
    return min(1.0, max((amount / limit for amount, limit in reached if limit and limit > 0), default=0.0))


def progress_file(training: PathLike) -> Path:
    """Return the file in the folder of a training."""
    return Path(training) / _NAME


def read_progress(training: PathLike) -> Noted | None:
    """Return how far a training is, as far as it was noted; None where it was not, or while it is being written."""
    try:
        share, epoch, updates, *loss = progress_file(training).read_text(encoding="ascii").split()
        return Noted(min(1.0, max(0.0, float(share))), int(epoch), int(updates), float(loss[0]) if loss else None)
    except (OSError, ValueError):
        return None
