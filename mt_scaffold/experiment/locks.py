"""Locks on folders that two runs must not write to at once, on one machine or on the nodes of a cluster.

The lock is flock's, on the file ``.lock``, so it ends with its holder. The file names the holder, who touches it every
HEARTBEAT_SECONDS. On a network file system a lock can outlive the node of its holder: one from another host that has
not been touched for STALE_SECONDS is replaced.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.files import PathLike, explain_os_error

HEARTBEAT_SECONDS = 15.0
# Longer than network file systems cache attributes, and than the clocks of a SLURM cluster may differ.
STALE_SECONDS = 300.0
WAIT_SECONDS = 600.0
_NAME = ".lock"
_POLL_SECONDS = 1.0
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)


@dataclass(frozen=True)
class _Holder:
    """Who holds a lock; ``job``: of SLURM, where it is one."""

    host: str
    process: int
    job: str | None


class Lock:
    """A lock that is held until it is closed, or this process ends; a context manager."""

    def __init__(self, folder: PathLike, stream: IO[str]) -> None:
        """Take over the locked file ``stream``: name this process in it, and keep touching it."""
        self._path = Path(folder) / _NAME
        self._stream = stream
        self._released = threading.Event()
        self._closing = threading.Lock()
        stream.truncate(0)
        json.dump(asdict(_this_process()), stream)
        stream.flush()
        # Other nodes must see the name before the first heartbeat.
        os.fsync(stream.fileno())
        threading.Thread(target=self._touch, name=f"lock of {folder}", daemon=True).start()

    def close(self) -> None:
        """Release the lock."""
        self._released.set()
        with self._closing:
            if not self._stream.closed:
                # A process that was forked may still have the file open.
                with contextlib.suppress(OSError):
                    fcntl.flock(self._stream, fcntl.LOCK_UN)
                self._stream.close()

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _touch(self) -> None:
        """Touch the file until the lock is released; where another host has replaced it, interrupt this process."""
        while not self._released.wait(HEARTBEAT_SECONDS):
            with self._closing, contextlib.suppress(OSError):
                if self._stream.closed:
                    return
                os.utime(self._stream.fileno())
                if self._path.exists() and not _is_at(self._stream, self._path):
                    print(
                        f"mt-scaffold: {self._path.parent}: this process seemed dead and has lost its lock, now "
                        f"{_seen(self._path)}; stopping",
                        file=sys.stderr,
                    )
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                    return


def take_lock(folder: PathLike, busy: str) -> Lock:
    """Lock ``folder``; closing what is returned, or the end of this process, releases the lock.

    Where the file system has no locks, a warning is printed instead. Raises MTScaffoldError where another process
    holds the lock, with the message ``busy``, and where the folder cannot be written to.
    """
    lock = _try(folder)
    if lock is None:
        raise MTScaffoldError(f"{folder}: {busy} ({_seen(Path(folder) / _NAME)})")
    return lock


@contextmanager
def locked(folder: PathLike, waiting: str, seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the lock of ``folder`` within the block; where it is taken, print ``waiting`` on stderr and wait.

    Where the file system has no locks, a warning is printed instead. Raises MTScaffoldError where the lock is still
    taken after ``seconds``, and where the folder cannot be written to.
    """
    path = Path(folder) / _NAME
    until = None
    while (lock := _try(folder)) is None:
        if until is None:
            until = time.monotonic() + seconds
            print(
                f"mt-scaffold: {folder}: {waiting} ({_seen(path)}; at most {_duration(seconds)})",
                file=sys.stderr,
                flush=True,
            )
        elif time.monotonic() > until:
            raise MTScaffoldError(
                f"{folder}: still locked after {_duration(seconds)} ({_seen(path)}); end that process, or delete "
                f"{path} if there is none"
            )
        time.sleep(_POLL_SECONDS)
    with lock:
        yield


def _try(folder: PathLike) -> Lock | None:
    """Return the lock of ``folder``; None where another process holds it."""
    path = Path(folder) / _NAME
    while True:
        try:
            # Appending: the name of the holder must survive an attempt that fails.
            stream = open(path, "a", encoding="utf-8")  # noqa: SIM115  # closed by the lock
        except OSError as error:
            raise explain_os_error(error, folder) from None
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.close()
            if not _is_stale(path):
                return None
            return _replace(folder, path)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                stream.close()
                raise explain_os_error(error, folder) from error
            print(
                f"mt-scaffold: warning: {folder}: no locks on this file system ({error.strerror}); make sure that no "
                "other run works here",
                file=sys.stderr,
            )
            return Lock(folder, stream)
        if _is_at(stream, path):
            return Lock(folder, stream)
        # Another process replaced the file before this one had locked it.
        stream.close()


def _replace(folder: PathLike, path: Path) -> Lock:
    """Put a new locked file in the place of a stale one, whose own lock nobody can release."""
    print(f"mt-scaffold: {folder}: taking over the lock of a dead process ({_seen(path)})", file=sys.stderr)
    beside = path.with_name(f"{_NAME}.{socket.gethostname()}.{os.getpid()}")
    try:
        stream = open(beside, "a", encoding="utf-8")  # noqa: SIM115  # closed by the lock
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock = Lock(folder, stream)
        beside.replace(path)
    except OSError as error:
        raise explain_os_error(error, folder) from error
    return lock


def _is_at(stream: IO[str], path: Path) -> bool:
    """Return whether ``path`` is the open file ``stream``."""
    try:
        return os.path.samestat(os.fstat(stream.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _is_stale(path: Path) -> bool:
    """Return whether a lock is of another host and its last heartbeat too old; on this one the kernel would know."""
    holder, age = _read(path)
    return holder is not None and holder.host != socket.gethostname() and age > STALE_SECONDS


def _read(path: Path) -> tuple[_Holder | None, float]:
    """Return the holder of a lock (None: unknown) and the seconds since its last heartbeat."""
    try:
        with open(path, encoding="utf-8") as stream:
            age = time.time() - os.fstat(stream.fileno()).st_mtime
            return _Holder(**json.load(stream)), max(age, 0.0)
    except (OSError, ValueError, TypeError):
        return None, 0.0


def _seen(path: Path) -> str:
    """Return the holder of a lock as messages name it."""
    holder, age = _read(path)
    if holder is None:
        return "held by another process"
    job = f", job {holder.job}" if holder.job else ""
    return f"held by host {holder.host}, process {holder.process}{job}, last heartbeat {_duration(age)} ago"


def _this_process() -> _Holder:
    return _Holder(socket.gethostname(), os.getpid(), os.environ.get("SLURM_JOB_ID"))


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
