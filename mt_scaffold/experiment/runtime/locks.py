"""Locks on folders that two runs must not write to at once, on one machine or on the nodes of a cluster.

A lock is an flock on the file ``.lock``, so that it ends with its holder. The file names the holder, which touches it
every HEARTBEAT_SECONDS. On a network file system a lock can outlive the node of its holder: a lock from another host is
replaced if this process has watched it for STALE_SECONDS without seeing it touched. The decision compares no clock with
that of the file server, which sets the times of files.
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

from mt_scaffold.corpus.files import PathLike, explain_os_error
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.progress import duration

HEARTBEAT_SECONDS = 15.0
# Eight heartbeats, and twice as long as network file systems cache attributes.
STALE_SECONDS = 120.0
WAIT_SECONDS = 600.0
LOCK_FILE = ".lock"
_POLL_SECONDS = 1.0
# After this time, two processes that take over at once both see whose file came last.
_SETTLE_SECONDS = 2.0
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)


# Set once this process has lost a lock to another host, which then does the same work.
lock_lost = threading.Event()


@dataclass(frozen=True)
class _Holder:
    """The holder of a lock; ``job``: its SLURM job, if any."""

    host: str
    process: int
    job: str | None


class Lock:
    """A lock that is held until it is closed or this process ends; a context manager."""

    def __init__(self, folder: PathLike, stream: IO[str]) -> None:
        """Keep touching the locked file ``stream``, which names this process."""
        self._path = Path(folder) / LOCK_FILE
        self._stream = stream
        self._released = threading.Event()
        self._closing = threading.Lock()
        threading.Thread(target=self._touch, name=f"lock of {folder}", daemon=True).start()

    def close(self) -> None:
        """Release the lock."""
        self._released.set()
        with self._closing:
            if not self._stream.closed:
                # A forked process may still have the file open.
                with contextlib.suppress(OSError):
                    fcntl.flock(self._stream, fcntl.LOCK_UN)
                self._stream.close()

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _touch(self) -> None:
        """Touch the file until the lock is released; if another host has replaced it, interrupt this process."""
        while not self._released.wait(HEARTBEAT_SECONDS):
            with self._closing, contextlib.suppress(OSError):
                if self._stream.closed:
                    return
                # ESTALE from NFS, after another host has replaced the file, must not skip the check below.
                with contextlib.suppress(OSError):
                    os.utime(self._stream.fileno())
                if self._path.exists() and not _is_at(self._stream, self._path):
                    print(
                        f"mt-scaffold: {self._path.parent}: this process seemed dead and has lost its lock, now "
                        f"{_described(self._path)}; stopping",
                        file=sys.stderr,
                    )
                    lock_lost.set()
                    # Background processes of a shell script ignore SIGINT.
                    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
                    number = signal.SIGTERM if ignored else signal.SIGINT
                    signal.pthread_kill(threading.main_thread().ident or 0, number)
                    return


def take_lock(folder: PathLike, busy: str) -> Lock:
    """Lock ``folder`` and return the lock, which is released when it is closed or this process ends.

    A lock that seems to have outlived its node is watched for STALE_SECONDS first. If the file system does not support
    locks, a warning is printed instead. Raises MTScaffoldError if another process holds the lock, with the message
    ``busy``, or if the folder cannot be written to.
    """
    path = Path(folder) / LOCK_FILE
    watch = _Watch(path)
    told = False
    while (lock := _try(folder, watch)) is None:
        if not watch.may_be_dead():
            raise MTScaffoldError(f"{folder}: {busy} ({_described(path)})")
        if not told:
            told = True
            print(
                f"mt-scaffold: {folder}: watching for {duration(STALE_SECONDS)} whether the holder of the lock lives "
                f"({_described(path)})",
                file=sys.stderr,
                flush=True,
            )
        time.sleep(_POLL_SECONDS)
    return lock


@contextmanager
def locked(folder: PathLike, waiting: str, seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the lock of ``folder`` within the block; if it is taken, print ``waiting`` to stderr and wait.

    If the file system does not support locks, a warning is printed instead. Raises MTScaffoldError if the lock is still
    taken after ``seconds``, or if the folder cannot be written to.
    """
    path = Path(folder) / LOCK_FILE
    watch = _Watch(path)
    until = None
    while (lock := _try(folder, watch)) is None:
        if until is None:
            until = time.monotonic() + seconds
            print(
                f"mt-scaffold: {folder}: {waiting} ({_described(path)}; at most {duration(seconds)})",
                file=sys.stderr,
                flush=True,
            )
        elif time.monotonic() > until:
            raise MTScaffoldError(
                f"{folder}: still locked after {duration(seconds)} ({_described(path)}); end that process, or delete "
                f"{path} if there is none"
            )
        time.sleep(_POLL_SECONDS)
    with lock:
        yield


class _Watch:
    """Observations, over time, of a lock that another process holds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._beat: tuple[int, int] | None = None
        self._changed = False
        self._looks = 0

    def is_stale(self) -> bool:
        """Look again; return whether a holder on another host has missed its heartbeats for STALE_SECONDS of looking.

        Looks are counted, not time, because a file server that hangs also stops the holder. On the same host the
        kernel releases the lock of a dead holder.
        """
        holder, beat, _ = _read(self._path)
        same = beat is not None and beat == self._beat
        self._changed |= self._beat is not None and not same
        self._looks = self._looks + 1 if same else 0
        self._beat = beat
        return _is_elsewhere(holder) and self._looks * _POLL_SECONDS >= STALE_SECONDS

    def may_be_dead(self) -> bool:
        """Return whether to keep watching: its heartbeat is old by the clocks, and no new one has been seen."""
        holder, _, age = _read(self._path)
        return _is_elsewhere(holder) and age > STALE_SECONDS and not self._changed


def _try(folder: PathLike, watch: _Watch) -> Lock | None:
    """Return the lock of ``folder``, or None if another process holds it."""
    path = Path(folder) / LOCK_FILE
    while True:
        try:
            # Append mode, so that a failed attempt keeps the name of the holder.
            stream = open(path, "a", encoding="utf-8")  # noqa: SIM115  # closed by the lock
        except OSError as error:
            raise explain_os_error(error, folder) from None
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.close()
            return _replace(folder, path, watch) if watch.is_stale() else None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                stream.close()
                raise explain_os_error(error, folder) from error
            print(
                f"mt-scaffold: warning: {folder}: no locks on this file system ({error.strerror}); make sure that no "
                "other run uses this folder",
                file=sys.stderr,
            )
            return Lock(folder, _signed(stream))
        if _is_at(stream, path):
            return Lock(folder, _signed(stream))
        # Another process replaced the file before this one had locked it.
        stream.close()


def _replace(folder: PathLike, path: Path, watch: _Watch) -> Lock | None:
    """Replace a stale file, whose lock nobody can release, by a new locked one, and return the lock.

    Returns None if another process did so at the same time.
    """
    dead = _described(path)
    replacement = path.with_name(f"{LOCK_FILE}.{socket.gethostname()}.{os.getpid()}")
    try:
        stream = open(replacement, "a", encoding="utf-8")  # noqa: SIM115  # closed by the lock
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _signed(stream)
        if watch.is_stale():
            replacement.replace(path)
            time.sleep(_SETTLE_SECONDS)
            if _is_at(stream, path):
                print(f"mt-scaffold: {folder}: taking over the lock of a dead process ({dead})", file=sys.stderr)
                return Lock(folder, stream)
        else:
            replacement.unlink()
    except OSError as error:
        raise explain_os_error(error, folder) from error
    stream.close()
    return None


def _signed(stream: IO[str]) -> IO[str]:
    """Name this process in its locked file."""
    stream.truncate(0)
    json.dump(asdict(_this_process()), stream)
    stream.flush()
    # So that other nodes see the name before the first heartbeat.
    os.fsync(stream.fileno())
    return stream


def _is_at(stream: IO[str], path: Path) -> bool:
    """Return whether ``path`` still names the open file ``stream``."""
    try:
        # Opening asks the file server; os.stat may answer from a cache.
        with open(path, encoding="utf-8") as there:
            return os.path.samestat(os.fstat(stream.fileno()), os.fstat(there.fileno()))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ESTALE):
            return False
        raise


def _is_elsewhere(holder: _Holder | None) -> bool:
    return holder is not None and holder.host != socket.gethostname()


def _read(path: Path) -> tuple[_Holder | None, tuple[int, int] | None, float]:
    """Return the holder of a lock, the inode and heartbeat of its file, and the heartbeat's age in seconds.

    The first two are None if the file cannot be read or parsed.
    """
    try:
        with open(path, encoding="utf-8") as stream:
            status = os.fstat(stream.fileno())
            age = max(time.time() - status.st_mtime, 0.0)
            return _Holder(**json.load(stream)), (status.st_ino, status.st_mtime_ns), age
    except (OSError, ValueError, TypeError):
        return None, None, 0.0


def _described(path: Path) -> str:
    """Return the holder of a lock in words, for messages."""
    holder, _, age = _read(path)
    if holder is None:
        return "held by another process"
    job = f", job {holder.job}" if holder.job else ""
    return f"held by host {holder.host}, process {holder.process}{job}, last heartbeat {duration(age)} ago"


def _this_process() -> _Holder:
    return _Holder(socket.gethostname(), os.getpid(), os.environ.get("SLURM_JOB_ID"))
