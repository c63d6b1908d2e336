"""The progress of a training: a small file next to its log, written by the training and read by a display."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from mt_scaffold.corpus.files import PathLike

# The environment variable by which the training learns the path of the file, and the file's name in its folder.
PROGRESS_FILE = "MT_SCAFFOLD_PROGRESS_FILE"
_NAME = "progress.txt"
_SECONDS_BETWEEN_NOTES = 1.0


@dataclass(frozen=True)
class Noted:
    """The progress of a training: the share done, from 0 to 1, and the loss of the epoch so far, in bits per token."""

    share: float
    epoch: int
    updates: int
    loss: float | None = None

    def __str__(self) -> str:
        loss = "" if self.loss is None else f", loss {self.loss:.2f}"
        return f"epoch {self.epoch}, update {self.updates:,}{loss}"


class ProgressNotes:
    """Writes the progress of a training, at most once per second."""

    def __init__(self) -> None:
        self._next = 0.0

    def note(self, path: PathLike, reached: Callable[[], Noted]) -> None:
        """Write the progress, unless it was written less than a second ago; ignore a file that cannot be written."""
        if (now := time.monotonic()) < self._next:
            return
        self._next = now + _SECONDS_BETWEEN_NOTES
        with contextlib.suppress(OSError):
            noted = reached()
            loss = "" if noted.loss is None else f" {noted.loss:.6f}"
            Path(path).write_text(f"{noted.share:.6f} {noted.epoch} {noted.updates}{loss}\n", encoding="ascii")


def share_done(reached: Iterable[tuple[float, float | None]]) -> float:
    """Return the largest ratio of an amount to its limit, at most 1; limits that are None or not positive are ignored.

    >>> share_done([(50, 200), (3, 4), (7, None), (9, 0)])
    0.75
    """
    return min(1.0, max((amount / limit for amount, limit in reached if limit and limit > 0), default=0.0))


def progress_file(training: PathLike) -> Path:
    """Return the path of the file in the folder of a training."""
    return Path(training) / _NAME


def read_progress(training: PathLike) -> Noted | None:
    """Return the progress last noted, or None if there is none or it is being written."""
    try:
        share, epoch, updates, *loss = progress_file(training).read_text(encoding="ascii").split()
        return Noted(min(1.0, max(0.0, float(share))), int(epoch), int(updates), float(loss[0]) if loss else None)
    except (OSError, ValueError):
        return None
