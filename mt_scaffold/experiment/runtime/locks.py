"""Locks on folders that two runs must not write to at once, on one machine or on the nodes of a cluster.

The lock is flock's, on the file ``.lock``, so it ends with its holder. The file names the holder, who touches it every
HEARTBEAT_SECONDS. On a network file system a lock can outlive the node of its holder: one from another host that was
not touched while this process watched it for STALE_SECONDS is replaced. No clock is compared with that of the file
server, which sets the times of files.
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
# Two that take over at once both see, after this time, whose file came last.
_SETTLE_SECONDS = 2.0
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)


# Whether this process has lost a lock to another host: what it does from now on, that one does too.
lock_lost = threading.Event()


@dataclass(frozen=True)
class _Holder:
    """Who holds a lock; ``job``: of SLURM, where it is one."""

    host: str
    process: int
    job: str | None


class Lock:
    """A lock that is held until it is closed, or this process ends; a context manager."""

    def __init__(self, folder: PathLike, stream: IO[str]) -> None:
        """Hold the locked file ``stream``, which names this process, and keep touching it."""
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
                # Where another host has replaced the file, NFS may answer ESTALE: what follows must run all the same.
                with contextlib.suppress(OSError):
                    os.utime(self._stream.fileno())
                if self._path.exists() and not _is_at(self._stream, self._path):
                    print(
                        f"mt-scaffold: {self._path.parent}: this process seemed dead and has lost its lock, now "
                        f"{_seen(self._path)}; stopping",
                        file=sys.stderr,
                    )
                    lock_lost.set()
                    # A script's background processes ignore SIGINT.
                    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
                    number = signal.SIGTERM if ignored else signal.SIGINT
                    signal.pthread_kill(threading.main_thread().ident or 0, number)
                    return


def take_lock(folder: PathLike, busy: str) -> Lock:
    """Lock ``folder``; closing what is returned, or the end of this process, releases the lock.

    A lock that seems to have outlived its node is watched for STALE_SECONDS first. Where the file system has no locks,
    a warning is printed instead. Raises MTScaffoldError where another process holds the lock, with the message
    ``busy``, and where the folder cannot be written to.
    """
    path = Path(folder) / LOCK_FILE
    watch = _Watch(path)
    told = False
    while (lock := _try(folder, watch)) is None:
        if not watch.may_be_dead():
            raise MTScaffoldError(f"{folder}: {busy} ({_seen(path)})")
        if not told:
            told = True
            print(
                f"mt-scaffold: {folder}: watching for {duration(STALE_SECONDS)} whether the holder of the lock lives "
                f"({_seen(path)})",
                file=sys.stderr,
                flush=True,
            )
        time.sleep(_POLL_SECONDS)
    return lock


@contextmanager
def locked(folder: PathLike, waiting: str, seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the lock of ``folder`` within the block; where it is taken, print ``waiting`` on stderr and wait.

    Where the file system has no locks, a warning is printed instead. Raises MTScaffoldError where the lock is still
    taken after ``seconds``, and where the folder cannot be written to.
    """
    path = Path(folder) / LOCK_FILE
    watch = _Watch(path)
    until = None
    while (lock := _try(folder, watch)) is None:
        if until is None:
            until = time.monotonic() + seconds
            print(
                f"mt-scaffold: {folder}: {waiting} ({_seen(path)}; at most {duration(seconds)})",
                file=sys.stderr,
                flush=True,
            )
        elif time.monotonic() > until:
            raise MTScaffoldError(
                f"{folder}: still locked after {duration(seconds)} ({_seen(path)}); end that process, or delete "
                f"{path} if there is none"
            )
        time.sleep(_POLL_SECONDS)
    with lock:
        yield


class _Watch:
    """A lock that another process holds, as this one sees it over time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._beat: tuple[int, int] | None = None
        self._changed = False
        self._looks = 0

    def is_stale(self) -> bool:
        """Look once more; return whether a holder on another host missed its heartbeats for STALE_SECONDS of looking.

        Looks are counted, not time: while a server hangs, neither this process nor the holder gets on. On this host
        the kernel would know whether the holder lives.
        """
        holder, beat, _ = _read(self._path)
        same = beat is not None and beat == self._beat
        self._changed |= self._beat is not None and not same
        self._looks = self._looks + 1 if same else 0
        self._beat = beat
        return _is_elsewhere(holder) and self._looks * _POLL_SECONDS >= STALE_SECONDS

    def may_be_dead(self) -> bool:
        """Return whether it is worth watching on: the clocks say that the holder is dead, and no heartbeat was seen."""
        holder, _, age = _read(self._path)
        return _is_elsewhere(holder) and age > STALE_SECONDS and not self._changed


def _try(folder: PathLike, watch: _Watch) -> Lock | None:
    """Return the lock of ``folder``; None where another process holds it."""
    path = Path(folder) / LOCK_FILE
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
            return _replace(folder, path, watch) if watch.is_stale() else None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                stream.close()
                raise explain_os_error(error, folder) from error
            print(
                f"mt-scaffold: warning: {folder}: no locks on this file system ({error.strerror}); make sure that no "
                "other run works here",
                file=sys.stderr,
            )
            return Lock(folder, _signed(stream))
        if _is_at(stream, path):
            return Lock(folder, _signed(stream))
        # Another process replaced the file before this one had locked it.
        stream.close()


def _replace(folder: PathLike, path: Path, watch: _Watch) -> Lock | None:
    """Put a new locked file in the place of a stale one, whose own lock nobody can release.

    None: another process did so at the same time.
    """
    dead = _seen(path)
    beside = path.with_name(f"{LOCK_FILE}.{socket.gethostname()}.{os.getpid()}")
    try:
        stream = open(beside, "a", encoding="utf-8")  # noqa: SIM115  # closed by the lock
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _signed(stream)
        if watch.is_stale():
            beside.replace(path)
            time.sleep(_SETTLE_SECONDS)
            if _is_at(stream, path):
                print(f"mt-scaffold: {folder}: taking over the lock of a dead process ({dead})", file=sys.stderr)
                return Lock(folder, stream)
        else:
            beside.unlink()
    except OSError as error:
        raise explain_os_error(error, folder) from error
    stream.close()
    return None


def _signed(stream: IO[str]) -> IO[str]:
    """Name this process in its locked file."""
    stream.truncate(0)
    json.dump(asdict(_this_process()), stream)
    stream.flush()
    # Other nodes must see the name before the first heartbeat.
    os.fsync(stream.fileno())
    return stream


def _is_at(stream: IO[str], path: Path) -> bool:
    """Return whether ``path`` is the open file ``stream``."""
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
    """Return the holder of a lock, its file and last heartbeat (None: unknown), and the heartbeat's age in seconds."""
    try:
        with open(path, encoding="utf-8") as stream:
            status = os.fstat(stream.fileno())
            age = max(time.time() - status.st_mtime, 0.0)
            return _Holder(**json.load(stream)), (status.st_ino, status.st_mtime_ns), age
    except (OSError, ValueError, TypeError):
        return None, None, 0.0


def _seen(path: Path) -> str:
    """Return the holder of a lock as messages name it."""
    holder, _, age = _read(path)
    if holder is None:
        return "held by another process"
    job = f", job {holder.job}" if holder.job else ""
    return f"held by host {holder.host}, process {holder.process}{job}, last heartbeat {duration(age)} ago"


def _this_process() -> _Holder:
    return _Holder(socket.gethostname(), os.getpid(), os.environ.get("SLURM_JOB_ID"))
