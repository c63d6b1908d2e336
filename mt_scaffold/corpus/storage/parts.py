"""Unfinished files and folders: hidden next to their final names, and removed by the next run if their owner died.

The part of ``NAME`` is ``.NAME.HOST.NUMBER.part``. Its owner holds a lock on it (flock), which is released however the
owner ends. Parts of another host are left alone: its locks may not be visible here.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import os
import shutil
from collections.abc import Callable, Iterator

# Of the 255 bytes that a name may have.
_LONGEST_STEM = 240
# Attempts to create a part whose folder seems to come and go.
_TRIES = 100


def create_part(target: str, mode: int) -> tuple[int, str]:
    """Create the part of a file with ``mode``, less the umask; return its descriptor and path. Raises OSError.

    Closing the last duplicate of the descriptor gives the part up: rename or remove it before.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return _create(target, lambda path: os.open(path, flags, mode))


@contextlib.contextmanager
def part_folder(target: str) -> Iterator[str]:
    """Yield the path of an empty folder, the part of ``target``. Raises OSError.

    Unless it has been renamed, it is removed at the end of the block.
    """
    descriptor, path = _create(target, _make_folder)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def _make_folder(path: str) -> int:
    os.mkdir(path)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _create(target: str, make: Callable[[str], int]) -> tuple[int, str]:
    """Remove the parts of dead owners; create one with ``make``, which returns its descriptor, and lock it."""
    for path in itertools.takewhile(os.path.lexists, _paths(target)):
        _remove_if_dead(path)
    missing = 0
    for path in _paths(target):
        try:
            descriptor = make(path)
        except FileExistsError:
            continue
        except FileNotFoundError:
            # A new folder may be removed as below. A parent that takes no files, such as /proc, fails every time.
            missing += 1
            if missing < _TRIES and os.path.isdir(os.path.dirname(path) or "."):
                continue
            raise
        # Before it is locked, another process may remove it as a dead owner's.
        if _lock(descriptor) is not False and _is_at(descriptor, path):
            break
        os.close(descriptor)
    return descriptor, path


def _paths(target: str) -> Iterator[str]:
    """Yield the paths that the parts of a file have, in the order in which they are taken."""
    folder, name = os.path.split(target)
    stem = f".{name}.{os.uname().nodename}"
    if len(os.fsencode(stem)) > _LONGEST_STEM:
        stem = f".{hashlib.sha256(os.fsencode(stem)).hexdigest()}"
    for number in itertools.count():
        yield os.path.join(folder, f"{stem}.{number}.part")


def _lock(descriptor: int) -> bool | None:
    """Lock an open part; return False if another process has locked it, None if the file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_at(descriptor: int, path: str) -> bool:
    """Return whether ``path`` is the open file."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove_if_dead(path: str) -> None:
    with contextlib.suppress(OSError):
        # Read-only, as a folder cannot be opened for writing; NFS then refuses the lock, and the part stays.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if _lock(descriptor) and _is_at(descriptor, path):
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        finally:
            os.close(descriptor)
