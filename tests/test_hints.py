"""Hints for newcomers when a command would wait, or do something unexpected; none of them appears in a log."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from mt_scaffold import Codes, MTScaffoldError, learn_bpe
from mt_scaffold.cli import main
from mt_scaffold.integrations.vocabularies.importing import format_of

COMMAND = [sys.executable, "-m", "mt_scaffold"]
TEXT = "low lower lowest new newer newest\n" * 5


def at_terminal(folder: Path, *arguments: str, typed: bytes | None = None) -> str:
    """Return a command's stderr if that is a terminal; so is its input if something is ``typed``."""
    leader, follower = pty.openpty()
    given = follower if typed is not None else subprocess.DEVNULL
    with (
        open(folder / "stdout", "wb") as out,
        subprocess.Popen([*COMMAND, *arguments], cwd=folder, stdin=given, stdout=out, stderr=follower) as process,
    ):
        os.close(follower)
        if typed:
            os.write(leader, typed)
        written = b""
        try:
            while part := os.read(leader, 4096):
                written += part
        except OSError:
            # On Linux, the other side is closed.
            pass
        os.close(leader)
    assert process.returncode == 0, written
    return written.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "text").write_text(TEXT, encoding="utf-8")
    learn_bpe(tmp_path / "text", tmp_path / "codes", 5)
    return tmp_path


@pytest.mark.parametrize("command", ["get-vocab", "apply-bpe -c codes", "learn-bpe -s 5"])
def test_a_file_without_its_option_is_told_where_it_goes(
    folder: Path, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``unrecognised arguments: FILE`` alone did not help; only the name of an existing file gets the hint."""
    monkeypatch.chdir(folder)
    for word, hint in (("text", "; give a file as --input text; see "), ("txet", "; see ")):
        with pytest.raises(SystemExit, match="2"):
            main([*command.split(), word])
        assert f"unrecognised arguments: {word}{hint}mt-scaffold" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [("apply-bpe", "--codes", "codes"), ("get-vocab",), ("learn-bpe", "-s", "3")])
def test_a_command_that_waits_for_a_terminal_says_so(folder: Path, arguments: tuple[str, ...]) -> None:
    """It seemed to hang. A pipe or a file is read without a message."""
    said = at_terminal(folder, *arguments, typed=b"low lower low lower\n\x04")
    assert "reading from the terminal up to Ctrl-D; give files as --input FILE" in said
    quiet = subprocess.run([*COMMAND, *arguments], cwd=folder, input=TEXT.encode(), capture_output=True, check=True)
    assert quiet.stderr == b""


def test_learning_says_what_was_learned_at_a_terminal_only(folder: Path) -> None:
    """With the next command to run; a log stays empty."""
    arguments = ("learn-bpe", "--symbols", "5", "--input", "text", "--output", "mine")
    said = at_terminal(folder, *arguments)
    merges = len(Codes.read(folder / "mine").merges)
    assert f"{merges} merges learned; mt-scaffold apply-bpe --codes mine applies them" in said
    done = subprocess.run([*COMMAND, *arguments], cwd=folder, capture_output=True, check=True)
    assert done.stdout == done.stderr == b""


def test_own_codes_need_no_import(folder: Path) -> None:
    """The error listed only the formats of other programs."""
    with pytest.raises(MTScaffoldError, match="already codes of learn-bpe or subword-nmt; give them to --codes"):
        format_of(folder / "codes")
