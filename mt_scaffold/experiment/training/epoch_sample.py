"""What an epoch of a training needs, drawn once per node and ahead of time, by a separate process.

With BPE-dropout or uniform sampling the text is segmented differently in every epoch, and batches are made from all
lengths. While an epoch trains, a process that loads neither PyTorch nor fairseq draws the next into a file that all
processes of the training on this node map. A thread would draw as fast, but need the file all the same; data-loading
workers are forked, and a fork copies the locks that a thread holds; and at the end of Python it might be in the core.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import multiprocessing.util
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Protocol

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.runtime.results import to_json
from mt_scaffold.experiment.runtime.schema import build

logger = logging.getLogger(__name__)
_TRIES = 2
_POLL_SECONDS = 0.02
_SHARED_MEMORY = Path("/dev/shm")
_IN_USE = "in-use"
# The exit status of a process that found an error in the data, which drawing elsewhere would find, too.
_DATA_ERROR = 3


class EpochSample(Protocol):
    """Everything that an epoch depends on: a dataclass, which JSON can hold."""

    @property
    def is_small(self) -> bool:
        """Whether drawing takes less time than to start a process."""

    @property
    def size(self) -> int:
        """The bytes of an epoch's file."""

    @property
    def digest(self) -> str:
        """A name for the epoch, another one if what it is drawn from has changed under the same name."""

    def write(self, stream: IO[bytes], wanted: Callable[[], bool] = lambda: True) -> bool:
        """Write the file; False where ``wanted`` was False before."""

    def read(self, path: Path) -> Any:
        """Map the file."""


class SharedSamples:
    """What is drawn for one epoch after the other, the same memory in all processes of a training on this node.

    sample_of: returns the sample of an epoch. training: what no other training on this machine has, such as
    its checkpoint folder.

    The files are in a folder of the training, which its last process removes, and the next training on this machine
    where all were killed. The results do not depend on who draws, nor on when a file is removed.
    """

    def __init__(self, sample_of: Callable[[int], EpochSample], training: str) -> None:
        self._sample_of = sample_of
        self._drawers: list[tuple[Path, subprocess.Popen[bytes]]] = []
        self._loaded: Path | None = None
        self._leave: Callable[[], None] = lambda: None
        self._folder: Path | None = None
        self._in_use: IO[bytes]
        first = sample_of(1)
        if first.is_small:
            return
        try:
            name = hashlib.sha256(f"{first.digest} {training}".encode()).hexdigest()[:32]
            folder = _shared_folder(first.size) / name
            self._in_use = _enter(folder)
        except OSError as error:
            self._give_up(error)
        else:
            # Unlike atexit, this runs in processes that multiprocessing has started, too.
            self._folder, arguments = folder, (folder, self._in_use, self._drawers)
            self._leave = multiprocessing.util.Finalize(self, _leave, arguments, exitpriority=10)

    def load(self, epoch: int, otherwise: Callable[[int], Any]) -> Any:
        """Return what ``EpochSample.read`` makes of the file of ``epoch``, waiting for it where necessary.

        otherwise: draws in this process, which is done where there is little, or no file can be shared.
        """
        if self._folder is not None:
            try:
                return self._wait(self._folder, self._sample_of(epoch))
            except OSError as error:
                self._give_up(error)
        return otherwise(epoch)

    def draw_ahead(self, epoch: int) -> None:
        """Have ``epoch`` drawn, unless it is drawn already."""
        if self._folder is not None:
            try:
                sample = self._sample_of(epoch)
                path = self._folder / sample.digest
                self._stay(self._folder)
                if not path.exists():
                    self._start(sample, path)
            except OSError as error:
                self._give_up(error)

    def close(self) -> None:
        """Stop drawing, and remove the files if no other process uses them. The end of the process does it, too."""
        self._folder = None
        self._leave()

    def _give_up(self, error: OSError) -> None:
        logger.warning(f"each process of this training draws every epoch itself, which takes longer: {error}")
        self._folder = None

    def _stay(self, folder: Path) -> None:
        """Spare the folder from what removes old files, and enter it again where it was removed all the same."""
        if not _is_open_as(self._in_use, folder / _IN_USE):
            with _enter(folder) as again:
                os.dup2(again.fileno(), self._in_use.fileno(), inheritable=False)
        os.utime(self._in_use.fileno())

    def _wait(self, folder: Path, sample: EpochSample) -> Any:
        path = folder / sample.digest
        failures = 0
        self._stay(folder)
        while not path.exists():
            self._stay(folder)
            drawer = next((drawer for drawn, drawer in self._drawers if drawn == path), None)
            if drawer is not None:
                said = self._end_of(drawer)
                if drawer.returncode == _DATA_ERROR:
                    raise MTScaffoldError(said)
                failures += drawer.returncode != 0
                if failures == _TRIES:
                    raise OSError(said or f"the process that draws ends with status {drawer.returncode}")
            elif not self._start(sample, path):
                time.sleep(_POLL_SECONDS)
        content = sample.read(path)
        for _, drawer in list(self._drawers):
            self._end_of(drawer)
        # Every process of the training that needed the epoch before has mapped it: they train in step.
        if self._loaded is not None and self._loaded != path:
            self._loaded.unlink(missing_ok=True)
        self._loaded = path
        return content

    def _end_of(self, drawer: subprocess.Popen[bytes]) -> str:
        """Wait for a process that draws, and return its error message."""
        self._drawers[:] = [entry for entry in self._drawers if entry[1] is not drawer]
        return drawer.communicate()[1].decode(errors="replace").strip()

    def _start(self, sample: EpochSample, path: Path) -> bool:
        """Start a process that draws into ``path``, unless there is one."""
        part = path.with_suffix(".part")
        with open(part, "ab") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            # Completed, and thus renamed, since it was opened, or before.
            if not _is_open_as(stream, part):
                return False
            if path.exists():
                part.unlink()
                return False
            stream.truncate(0)
            # The lock is that of the open file: the process holds it until it ends, however it ends.
            drawer = subprocess.Popen(
                [sys.executable, "-P", "-c", _program(type(sample)), to_json(sample), part, path],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self._drawers.append((path, drawer))
        return True


def _program(kind: type[Any]) -> str:
    """Return the program of a process that draws samples of a kind."""
    return (
        f"from {__name__} import write_sample; from {kind.__module__} import {kind.__name__}; "
        f"write_sample({kind.__name__})"
    )


def write_sample(kind: type[Any]) -> None:
    """Draw a sample of a ``kind`` that the program's first argument holds as JSON.

    It is written into standard output, which is the file of the second argument, and then takes the third as its name.
    """
    # Ctrl-C ends this process without a word; a signal for the training, such as that before a time limit, does not.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    parent = os.getppid()
    try:
        sample = build(kind, json.loads(sys.argv[1]))
        if sample.write(sys.stdout.buffer, lambda: os.getppid() == parent):
            sys.stdout.buffer.flush()
            # Where the folder was removed meanwhile, another process may draw into a file of this name.
            if _is_open_as(sys.stdout.buffer, Path(sys.argv[2])):
                os.rename(sys.argv[2], sys.argv[3])
    except MTScaffoldError as error:
        print(error, file=sys.stderr)
        raise SystemExit(_DATA_ERROR) from None
    except OSError as error:
        raise SystemExit(str(error)) from None


def _shared_folder(size: int) -> Path:
    """Return the folder for what this user's trainings share on this node; two epochs of ``size`` fit into it."""
    parent = Path(tempfile.gettempdir())
    with contextlib.suppress(OSError):
        room = os.statvfs(_SHARED_MEMORY)
        if os.access(_SHARED_MEMORY, os.W_OK) and room.f_bavail * room.f_frsize > 4 * size:
            parent = _SHARED_MEMORY
    return parent / f"mt-scaffold-{os.getuid()}"


def _make_private(folder: Path) -> None:
    """Create a folder that only this user can open."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise OSError(f"{folder}: not a folder that only this user can open; remove it")


def _enter(folder: Path) -> IO[bytes]:
    """Create the folder of a training and mark it as used; remove those beside it that nobody uses any more."""
    _make_private(folder.parent)
    while True:
        # Another process may remove either folder in between.
        with contextlib.suppress(FileNotFoundError):
            _make_private(folder.parent)
            for other in folder.parent.iterdir():
                with contextlib.suppress(OSError), open(other / _IN_USE, "ab") as stream:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(other, ignore_errors=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            in_use = open(folder / _IN_USE, "ab")  # noqa: SIM115  # open for as long as the training lasts
            fcntl.flock(in_use, fcntl.LOCK_SH)
            if _is_open_as(in_use, folder / _IN_USE):
                return in_use
            in_use.close()


def _leave(folder: Path, in_use: IO[bytes], drawers: list[tuple[Path, subprocess.Popen[bytes]]]) -> None:
    """End what draws for this process, and remove the folder where no other uses it."""
    for _, drawer in drawers:
        drawer.kill()
        drawer.communicate()
    with contextlib.suppress(OSError), in_use:
        fcntl.flock(in_use, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.rmdir()


def _is_open_as(stream: IO[bytes], path: Path) -> bool:
    """Return whether ``path`` is still the open file."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(stream.fileno()))
    except FileNotFoundError:
        return False
