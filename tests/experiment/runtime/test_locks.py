"""Locks on folders: the holder is named, no wait is endless, and no dead process keeps a lock."""

import errno
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.runtime import locks
from mt_scaffold.experiment.runtime.locks import STALE_SECONDS, WAIT_SECONDS, locked, take_lock

# Holds the lock of a folder, and starts a child that outlives it, as fairseq does.
HOLDER = """
import subprocess, sys, time
from mt_scaffold.experiment.runtime.locks import take_lock
lock = take_lock(sys.argv[1], "busy")
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


@contextmanager
def holder(folder: Path, **environment: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Another process that holds the lock, and the id of its child; both are killed at the end."""
    command = [sys.executable, "-c", HOLDER, str(folder)]
    environ = {**os.environ, **environment}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        try:
            yield process, child
        finally:
            process.kill()
            os.kill(child, signal.SIGKILL)


@contextmanager
def dead_node(folder: Path, age: float) -> Iterator[None]:
    """A lock that the file system still holds for a process of another host, last touched ``age`` seconds ago."""
    path = folder / ".lock"
    with open(path, "w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        json.dump({"host": "node7", "process": 123, "job": "42"}, stream)
        stream.flush()
        os.utime(path, (time.time() - age, time.time() - age))
        yield


def test_who_holds_a_lock_is_named_and_the_wait_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A job that waits for ever holds its GPUs; the user must know which process to end."""
    monkeypatch.setattr(locks, "_POLL_SECONDS", 0.05)
    with holder(tmp_path, SLURM_JOB_ID="17") as (process, _):
        by = rf"held by host \S+, process {process.pid}, job 17, last heartbeat \d+ s ago"
        with pytest.raises(MTScaffoldError, match=rf"another run is here \({by}\)"):
            take_lock(tmp_path, "another run is here")
        says = rf"still locked after 0 s \({by}\); end that process, or delete"
        with pytest.raises(MTScaffoldError, match=says), locked(tmp_path, "waiting for it", seconds=0.2):
            pass
    said = capfd.readouterr().err
    assert said.count("waiting for it (held by host ") == 1 and "at most 0 s)" in said


def test_a_killed_holder_releases_its_lock_even_if_its_children_live(tmp_path: Path) -> None:
    """fairseq and its workers must not keep the lock of a training that was killed."""
    with holder(tmp_path) as (process, child):
        process.kill()
        process.wait()
        os.kill(child, 0)
        with locked(tmp_path, "waiting", seconds=5):
            pass


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> float:
    """Return the age of a lock that seems dead; watching it takes a second instead of minutes."""
    monkeypatch.setattr(locks, "_POLL_SECONDS", 0.05)
    monkeypatch.setattr(locks, "_SETTLE_SECONDS", 0.2)
    monkeypatch.setattr(locks, "STALE_SECONDS", 1.0)
    return 400.0


@pytest.mark.parametrize("waiting", [True, False])
def test_a_lock_that_outlived_its_node_is_taken_over(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], quick: float, waiting: bool
) -> None:
    """A server may keep the lock of a node that died; the job that SLURM requeued must not wait for it."""
    assert WAIT_SECONDS > 2 * STALE_SECONDS
    with dead_node(tmp_path, age=quick):
        began = time.monotonic()
        with locked(tmp_path, "waiting", seconds=60) if waiting else take_lock(tmp_path, "busy"):
            assert time.monotonic() - began > 1
            # The second attempt sees the new holder.
            with pytest.raises(MTScaffoldError, match=rf"process {os.getpid()}, last heartbeat"):
                take_lock(tmp_path, "busy")
        by = r"held by host node7, process 123, job 42, last heartbeat 6 min 4\d s ago"
        assert re.search(rf"taking over the lock of a dead process \({by}\)", capfd.readouterr().err)
        take_lock(tmp_path, "busy").close()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_lock_with_a_recent_heartbeat_is_respected(tmp_path: Path) -> None:
    """Another node that trains here must not lose its folder; the answer comes at once."""
    refused = pytest.raises(MTScaffoldError, match=r"busy \(held by host node7")
    with dead_node(tmp_path, age=STALE_SECONDS / 2), refused:
        take_lock(tmp_path, "busy")


@pytest.mark.parametrize("waiting", [True, False])
def test_a_live_holder_keeps_its_lock_whatever_the_clock_of_the_server_says(
    tmp_path: Path, quick: float, waiting: bool
) -> None:
    """The file server sets the times of files: one that is minutes slow must not cost a live training its folder."""
    with dead_node(tmp_path, age=quick):
        done = threading.Event()

        def beat() -> None:
            for second in range(1000):
                if done.wait(0.2):
                    return
                at = time.time() - quick + second / 100
                os.utime(tmp_path / ".lock", (at, at))

        thread = threading.Thread(target=beat)
        thread.start()
        try:
            if waiting:
                with pytest.raises(MTScaffoldError, match="still locked"), locked(tmp_path, "waiting", seconds=3):
                    pass
            else:
                with pytest.raises(MTScaffoldError, match=r"busy \(held by host node7"):
                    take_lock(tmp_path, "busy")
        finally:
            done.set()
            thread.join()


def test_of_two_that_take_over_at_once_one_has_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: float, capfd: pytest.CaptureFixture[str]
) -> None:
    """Both have seen the dead holder; the file that was put there last counts, and the other process is refused."""
    replace = Path.replace

    def overtaken(path: Path, target: Path) -> Path:
        """Put the file in place, then that of a process which was as quick."""
        replace(path, target)
        (tmp_path / "theirs").write_text(json.dumps({"host": "node8", "process": 5, "job": None}))
        stream = open(tmp_path / "theirs")  # noqa: SIM115  # holds the lock until the end of the test
        fcntl.flock(stream, fcntl.LOCK_EX)
        streams.append(stream)
        return replace(tmp_path / "theirs", target)

    streams: list[IO[str]] = []
    monkeypatch.setattr(Path, "replace", overtaken)
    with dead_node(tmp_path, age=quick), pytest.raises(MTScaffoldError, match=r"busy \(held by host node8"):
        take_lock(tmp_path, "busy")
    assert len(streams) == 1 and "taking over" not in capfd.readouterr().err
    streams[0].close()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_lock_that_was_just_taken_over_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: float
) -> None:
    """Another process was faster, after this one's decision and before its replacement."""
    signed = locks._signed

    def overtaken(stream: IO[str]) -> IO[str]:
        (tmp_path / "theirs").write_text(json.dumps({"host": "node8", "process": 5, "job": None}))
        theirs = open(tmp_path / "theirs")  # noqa: SIM115  # holds the lock until the end of the test
        fcntl.flock(theirs, fcntl.LOCK_EX)
        streams.append(theirs)
        (tmp_path / "theirs").rename(tmp_path / ".lock")
        return signed(stream)

    streams: list[IO[str]] = []
    monkeypatch.setattr(locks, "_signed", overtaken)
    with dead_node(tmp_path, age=quick), pytest.raises(MTScaffoldError, match=r"busy \(held by host node8"):
        take_lock(tmp_path, "busy")
    assert json.loads((tmp_path / ".lock").read_text())["host"] == "node8"
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    streams[0].close()


def test_an_old_heartbeat_on_this_host_does_not_end_a_lock(tmp_path: Path) -> None:
    """The kernel knows whether that process lives: it may only be stopped (Ctrl-Z)."""
    with holder(tmp_path) as (process, _):
        process.send_signal(signal.SIGSTOP)
        os.utime(tmp_path / ".lock", (0, 0))
        with pytest.raises(MTScaffoldError, match="busy"):
            take_lock(tmp_path, "busy")


def test_a_holder_touches_its_lock_until_it_is_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This is how other nodes know that it lives."""
    monkeypatch.setattr(locks, "HEARTBEAT_SECONDS", 0.05)
    lock = take_lock(tmp_path, "busy")
    os.utime(tmp_path / ".lock", (0, 0))
    deadline = time.monotonic() + 10
    while (tmp_path / ".lock").stat().st_mtime == 0 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert time.time() - (tmp_path / ".lock").stat().st_mtime < 10
    lock.close()
    os.utime(tmp_path / ".lock", (0, 0))
    time.sleep(0.3)
    assert (tmp_path / ".lock").stat().st_mtime == 0


@pytest.fixture(autouse=True)
def nothing_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that one test loses must not count as lost in another."""
    monkeypatch.setattr(locks, "lock_lost", threading.Event())


def test_a_holder_whose_lock_was_taken_over_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that only seemed dead must not write at the same time as its replacement."""
    monkeypatch.setattr(locks, "HEARTBEAT_SECONDS", 0.05)
    with locked(tmp_path, "waiting"):
        (tmp_path / "new").write_text(json.dumps({"host": "node8", "process": 5, "job": None}))
        (tmp_path / "new").replace(tmp_path / ".lock")
        with pytest.raises(KeyboardInterrupt):
            time.sleep(10)
        assert locks.lock_lost.is_set()


@pytest.mark.parametrize("function", ["utime", "fstat"])
def test_a_holder_whose_file_nfs_no_longer_has_stops_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    """After another host has replaced the file, every call on the old one fails with ESTALE."""
    monkeypatch.setattr(locks, "HEARTBEAT_SECONDS", 0.05)
    real = getattr(os, function)
    with locked(tmp_path, "waiting"):
        old = (tmp_path / ".lock").stat().st_ino

        def stale(file: int, *more: object) -> object:
            if os.stat(f"/proc/self/fd/{file}").st_ino == old:
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
            return real(file, *more)

        (tmp_path / "new").write_text(json.dumps({"host": "node8", "process": 5, "job": None}))
        monkeypatch.setattr(os, function, stale)
        (tmp_path / "new").replace(tmp_path / ".lock")
        with pytest.raises(KeyboardInterrupt):
            time.sleep(10)
        monkeypatch.undo()


def test_a_background_process_that_lost_its_lock_stops_too(tmp_path: Path) -> None:
    """A shell script starts its background processes with SIGINT ignored."""
    script = (
        "import signal, sys, time; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from mt_scaffold.experiment.runtime import locks; locks.HEARTBEAT_SECONDS = 0.05\n"
        "with locks.take_lock(sys.argv[1], 'busy'): print('held', flush=True); time.sleep(20)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        (tmp_path / "new").write_text(json.dumps({"host": "node8", "process": 5, "job": None}))
        (tmp_path / "new").replace(tmp_path / ".lock")
        assert process.wait(15) == -signal.SIGTERM
        assert "has lost its lock, now held by host node8" in process.stderr.read()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK])
def test_a_file_system_without_locks_gives_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], number: int
) -> None:
    """Some cluster file systems have none; the experiment still runs there."""

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with locked(tmp_path, "waiting"):
        pass
    take_lock(tmp_path, "busy").close()
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 2 and f"no locks on this file system ({os.strerror(number)})" in said[0]


def test_a_folder_that_cannot_be_written_to_is_one_line(tmp_path: Path) -> None:
    """The folder is named, without a traceback."""
    with pytest.raises(MTScaffoldError, match="nowhere: No such file"):
        take_lock(tmp_path / "nowhere", "busy")
