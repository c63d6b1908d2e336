"""How much of a training is done: a small file next to its log, which the training writes and a display reads."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from mt_scaffold.corpus.files import PathLike

# The environment variable that names the file to the training, and its name in the folder of the training.
PROGRESS_FILE = "MT_SCAFFOLD_PROGRESS_FILE"
_NAME = "progress.txt"
_SECONDS_BETWEEN_NOTES = 1.0


class ProgressNotes:
    """Writes the share that is done, from 0 to 1, at most once per second."""

    def __init__(self) -> None:
        self._next = 0.0

    def note(self, path: PathLike, share: Callable[[], float]) -> None:
        """Write the share, unless one was written a moment ago; a file that cannot be written is no reason to stop."""
        if (now := time.monotonic()) < self._next:
            return
        self._next = now + _SECONDS_BETWEEN_NOTES
        with contextlib.suppress(OSError):
            Path(path).write_text(f"{share():.6f}\n", encoding="ascii")


def share_done(reached: Iterable[tuple[float, float | None]]) -> float:
    """Return the largest of the shares, each an amount and its limit; a limit that is None or not positive is none.

    >>> share_done([(50, 200), (3, 4), (7, None), (9, 0)])
    0.75
    """
    return min(1.0, max((amount / limit for amount, limit in reached if limit and limit > 0), default=0.0))


def progress_file(training: PathLike) -> Path:
    """Return the file in the folder of a training."""
    return Path(training) / _NAME


def read_progress(training: PathLike) -> float | None:
    """Return the share of a training that is done, as far as it was noted; None where it was not."""
    try:
        return min(1.0, max(0.0, float(progress_file(training).read_text(encoding="ascii"))))
    except (OSError, ValueError):
        return None
