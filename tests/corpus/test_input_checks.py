"""apply-bpe and learn-bpe warn of input that is segmented or has a byte order mark, with unchanged output."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from mt_scaffold import BPE
from mt_scaffold.cli import main

CODES = b"#version: 0.2\nl o\nlo w</w>\n"
COMMAND = [sys.executable, "-m", "mt_scaffold"]
SEGMENTED, MARKED, PLAIN = "lo@@ w er\n", "\ufefflow er\n", "low er\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with codes."""
    (tmp_path / "codes").write_bytes(CODES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "warnings"),
    [(SEGMENTED, ["looks segmented already", "30,000 words end in '@@'"]), (MARKED, ["byte order mark"]), (PLAIN, [])],
)
@pytest.mark.parametrize("through", ["path", "gzip", "file", "pipe"])
def test_apply_bpe_warns_once_and_writes_the_same(folder: Path, text: str, warnings: list[str], through: str) -> None:
    """The examined beginning of the input, even of a pipe, is segmented too, and each problem is one line on stderr."""
    content = text.encode() * 30_000
    (folder / "text").write_bytes(content)
    (folder / "text.gz").write_bytes(gzip.compress(content, 1))
    command = [*COMMAND, "apply-bpe", "--codes", "codes"]
    if through in ("path", "gzip"):
        command += ["--input", "text" if through == "path" else "text.gz"]
        done = subprocess.run(command, capture_output=True, check=True)
    elif through == "file":
        with open("text", "rb") as stream:
            done = subprocess.run(command, stdin=stream, capture_output=True, check=True)
    else:
        done = subprocess.run(command, input=content, capture_output=True, check=True)
    assert done.stdout.decode() == "".join(BPE(CODES).process_line(line) for line in content.decode().splitlines(True))
    shown = done.stderr.decode().splitlines()
    assert len(shown) == len(warnings) and all(what in line for what, line in zip(warnings, shown, strict=True))


def test_learn_bpe_warns_of_every_input(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each of several texts is examined, and named."""
    (folder / "a").write_text(SEGMENTED * 3, encoding="utf-8")
    (folder / "b").write_text(MARKED * 3, encoding="utf-8")
    assert main("learn-bpe -s 1 -i a b -o out".split()) == 0
    assert main("learn-joint-bpe-and-vocab -s 1 -i a b -o out --write-vocabulary x y".split()) == 0
    error = capsys.readouterr().err
    for warning in ("a: looks segmented already (such as 'lo@@')", "a: line 1: 3 words end", "b: begins with a byte"):
        assert error.count(f"warning: {warning}") == 2
    assert error.count("warning") == 6
    assert main("count-words -i a b -o out".split()) == 0
    assert "warning: a: looks segmented already (such as 'lo@@')" in capsys.readouterr().err


@pytest.mark.parametrize("jsonl", [False, True])
def test_learn_bpe_reads_all_of_a_pipe(folder: Path, jsonl: bool) -> None:
    """The examined beginning of a pipe is learned from too, once."""
    lines = ['{"text": "low low er"}\n' if jsonl else "low low er\n"] * 20_000
    command = [*COMMAND, "learn-bpe", "--symbols", "2", "--min-frequency", "20000"]
    command += ["--format", "jsonl"] if jsonl else []
    done = subprocess.run(command, input="".join(lines), text=True, capture_output=True, check=True)
    (folder / "text").write_text("low low er\n" * 20_000, encoding="utf-8")
    assert main("learn-bpe --symbols 2 --min-frequency 20000 -i text -o out".split()) == 0
    assert done.stdout.encode() == (folder / "out").read_bytes()
    assert done.stderr == ""


def test_apply_bpe_warns_of_empty_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Subwords without a mark cannot be joined again, and an empty glossary is that of an empty variable of a shell."""
    (folder / "text").write_text(PLAIN, encoding="utf-8")
    for option, output, warning in (
        ("--separator=", "low e r\n", "the separator is empty"),
        ("--separator= ", "low e  r\n", "the separator has white space"),
        ("--glossaries=", "l@@ o@@ w e@@ r\n", "a glossary is empty"),
    ):
        assert main(["apply-bpe", "-c", "codes", "-i", "text", "-o", "out", option]) == 0
        assert (folder / "out").read_text() == output
        assert capsys.readouterr().err.count(f"warning: {warning}") == 1
