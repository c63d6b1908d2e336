"""Modes of files and folders: those that are replaced keep theirs, new ones follow the umask."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from mt_scaffold.corpus.files import write_text
from mt_scaffold.experiment.binarise.pairs_as_ids import appears_complete


@pytest.fixture(params=[0o022, 0o027, 0o007], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_follows_the_umask(tmp_path: Path, umask: int) -> None:
    """Like a file that a shell redirects into."""
    write_text(tmp_path / "new", "x\n")
    assert mode(tmp_path / "new") == 0o666 & ~umask


@pytest.mark.parametrize("before", [0o666, 0o600, 0o664, 0o444])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path, umask: int, before: int) -> None:
    """Members of a group can still write it after another one has run the command again."""
    path = tmp_path / "old"
    path.write_text("old\n")
    path.chmod(before)
    write_text(path, "new\n")
    assert (path.read_text(), mode(path)) == ("new\n", before)


def test_a_new_folder_and_its_private_files_follow_the_umask(tmp_path: Path, umask: int) -> None:
    """Neither a temporary folder's mode nor that of safetensors' files decides who can read it."""
    with appears_complete(tmp_path / "new") as folder:
        (folder / "inner").mkdir()
        os.close(os.open(folder / "inner" / "private", os.O_CREAT | os.O_WRONLY, 0o600))
    assert mode(tmp_path / "new") == mode(tmp_path / "new" / "inner") == 0o777 & ~umask
    assert mode(tmp_path / "new" / "inner" / "private") == 0o666 & ~umask


def test_a_folder_that_is_replaced_keeps_its_modes(tmp_path: Path, umask: int) -> None:
    """A folder that a group shares stays shared, with the files in it."""
    with appears_complete(tmp_path / "old") as folder:
        (folder / "file").write_text("old")
    (tmp_path / "old").chmod(0o777)
    (tmp_path / "old" / "file").chmod(0o640)
    with appears_complete(tmp_path / "old") as folder:
        (folder / "file").write_text("new")
        (folder / "other").write_text("new")
    assert [mode(tmp_path / name) for name in ("old", "old/file", "old/other")] == [0o777, 0o640, 0o666 & ~umask]
