"""Unfinished files and folders: those of a dead process are removed, those of a living one stay."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mt_scaffold.corpus.files import open_output, write_text
from mt_scaffold.corpus.storage.parts import part_folder
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise.pairs_as_ids import appears_complete

FILE = "from mt_scaffold.corpus.files import open_output as made\nwith made(sys.argv[1]) as out: "
FOLDER = "from mt_scaffold.corpus.storage.parts import part_folder as made\nwith made(sys.argv[1]) as out: "


def left_behind(path: Path, program: str, host: str | None = None) -> str:
    """Kill a process that writes to ``path`` with SIGKILL; return the name of what it leaves."""
    patch = "" if host is None else f"import os, types; os.uname = lambda: types.SimpleNamespace(nodename={host!r})\n"
    started = subprocess.Popen(
        [sys.executable, "-c", f"import sys, time\n{patch}{program}print(flush=True); time.sleep(60)", path],
        stdout=subprocess.PIPE,
    )
    with started:
        assert started.stdout is not None
        started.stdout.readline()
        before = {entry.name for entry in path.parent.iterdir()}
        started.send_signal(signal.SIGKILL)
    return max(before, key=lambda name: name.endswith(".part"))


@pytest.mark.parametrize("program", [FILE, FOLDER])
def test_the_next_run_removes_what_a_killed_one_left(tmp_path: Path, program: str) -> None:
    """Files and folders."""
    path = tmp_path / "out"
    name = left_behind(path, program)
    assert name == f".out.{socket.gethostname()}.0.part" and os.listdir(tmp_path) == [name]
    write_text(path, "text")
    assert os.listdir(tmp_path) == ["out"]
    path.unlink()
    left_behind(path, program)
    with appears_complete(path) as folder:
        (folder / "file").touch()
    assert os.listdir(tmp_path) == ["out"] and os.listdir(path) == ["file"]


def test_what_another_host_left_stays(tmp_path: Path) -> None:
    """Its owner may be alive with a lock that is not visible here."""
    name = left_behind(tmp_path / "out", FILE, host="node7")
    write_text(tmp_path / "out", "text")
    assert sorted(os.listdir(tmp_path)) == [name, "out"]


def test_two_writers_of_one_file(tmp_path: Path) -> None:
    """Each has its own part, even in one process; the last to finish provides the file."""
    path = tmp_path / "out"
    with open_output(path) as first:
        first.write(b"first")
        with open_output(path) as second, part_folder(str(path)) as folder:
            second.write(b"second")
            assert len(os.listdir(tmp_path)) == 3 and os.listdir(folder) == []
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first" and os.listdir(tmp_path) == ["out"]


def test_nobody_elses_file_is_written_to(tmp_path: Path) -> None:
    """A link under the name of a part is neither followed nor removed."""
    (tmp_path / "other").write_text("other")
    (tmp_path / f".out.{socket.gethostname()}.0.part").symlink_to(tmp_path / "other")
    write_text(tmp_path / "out", "text")
    assert (tmp_path / "other").read_text() == "other" and (tmp_path / "out").read_text() == "text"


def test_a_long_name(tmp_path: Path) -> None:
    """A name of 255 bytes leaves no room for an addition."""
    path = tmp_path / ("x" * 255)
    write_text(path, "text")
    assert path.read_text() == "text" and os.listdir(tmp_path) == [path.name]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such folder")
def test_a_folder_that_takes_no_file_ends_the_tries() -> None:
    """A missing part is tried again, as its folder may come and go; in /proc the same error would recur forever."""
    with pytest.raises(MTScaffoldError, match="/proc/output"), open_output("/proc/output"):
        pass
