"""Locks on folders that two runs must not write to at once."""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.files import PathLike, explain_os_error

_NAME = ".lock"


def take_lock(folder: PathLike, busy: str) -> IO[str]:
    """Lock ``folder`` and return the open lock file; closing it, or the end of the process, releases the lock.

    Raises MTScaffoldError where another process holds the lock, with the message ``busy``, and where the folder cannot
    be written to.
    """
    lock = _open(folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise MTScaffoldError(f"{folder}: {busy}") from None
    except OSError as error:  # a file system without locks, for one
        lock.close()
        raise explain_os_error(error, folder) from error
    return lock


@contextmanager
def locked(folder: PathLike, waiting: str = "") -> Iterator[None]:
    """Hold the lock of ``folder`` within the block; where it is taken, print ``waiting`` on stderr and wait."""
    # The kernel releases the lock when its holder dies, so no stale lock survives.
    with _open(folder) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting:
                print(f"mt-scaffold: {folder}: {waiting}", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _open(folder: PathLike) -> IO[str]:
    try:
        return open(Path(folder) / _NAME, "w", encoding="utf-8")
    except OSError as error:
        raise explain_os_error(error, folder) from None
