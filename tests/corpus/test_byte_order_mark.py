"""A byte order mark: removed from vocabularies, codes and scored text, and reported if any other text has one."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from mt_scaffold import BPE
from mt_scaffold.cli import main
from mt_scaffold.codes import Codes
from mt_scaffold.corpus.documents import Documents
from mt_scaffold.corpus.inputs import core_input, readable
from mt_scaffold.corpus.text import read_lines
from mt_scaffold.corpus.vocabulary_file import read_dictionary, read_vocabulary

MARK = "\ufeff"
CODES, BYTE_CODES = "#version: 0.2\nl o\nlo w</w>\n", "#version: 0.3 bytes gpt2\nl o\nlo w\n"
KEPT = "warning: {}: begins with a byte order mark (U+FEFF), which becomes part of the first word\n"
REMOVED = "warning: {}: removed a byte order mark (U+FEFF)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with codes, and text with a mark."""
    for name, content in {"codes": CODES, "bytes": BYTE_CODES, "text": f"{MARK}low er\nlow\n"}.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "text.gz").write_bytes(gzip.compress((tmp_path / "text").read_bytes()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "get-vocab",
        "join",
        "apply-bpe -c codes",
        "count-words",
        "stats --codes codes",
        "learn-bpe -s 1",
        "learn-joint-bpe-and-vocab -s 1 --write-vocabulary vocab",
        "encode -c bytes -o ids.bin",
        "extend codes --symbols 1",
        "trim codes --below 100",
        "compare-vocab codes codes",
    ],
)
@pytest.mark.parametrize("name", ["text", "text.gz"])
def test_every_command_warns_once_of_a_text(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str, name: str
) -> None:
    """Its output keeps the mark, as that of subword-nmt's commands does."""
    options = [] if " -o " in command or command.startswith(("stats", "compare")) else ["-o", "out"]
    assert main([*command.split(), "-i", name, *options]) == 0
    error = capsys.readouterr().err
    assert error.count("byte order mark") == 1 and KEPT.format(name) in error


@pytest.mark.parametrize("command", ["get-vocab", "count-words", "learn-bpe -s 1", "join"])
def test_a_pipe_is_read_whole(folder: Path, command: str) -> None:
    """The bytes that are examined are read too."""
    content = ("text", f"{MARK}low er\n" * 30_000)[1].encode()
    done = subprocess.run(
        [sys.executable, "-m", "mt_scaffold", *command.split()], input=content, capture_output=True, check=True
    )
    assert done.stderr.decode().startswith(KEPT.format("standard input"))
    (folder / "whole").write_bytes(content)
    assert main([*command.split(), "-i", "whole", "-o", "out"]) == 0
    assert done.stdout == (folder / "out").read_bytes()


def test_clean_warns_of_each_side(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pairs are copied byte for byte."""
    pytest.importorskip("numpy")
    command = "clean --source text --target text.gz --output-source a --output-target b"
    assert main(command.split()) == 0
    assert (folder / "a").read_bytes() == (folder / "text").read_bytes()
    error = capsys.readouterr().err
    assert KEPT.format("text") in error and KEPT.format("text.gz") in error


def test_open_files_and_lines_are_looked_at(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A text that a program passes is read by the core like one that a command names."""
    text = (folder / "text").read_bytes()
    with open("text", encoding="utf-8") as unread, open("text", encoding="utf-8") as begun:
        assert begun.read(1) == MARK
        for source, warns in ((io.BytesIO(text), 1), (io.StringIO(text.decode()), 1), (unread, 1), (begun, 0)):
            with core_input(source) as (_, opened):
                assert readable(opened).read() == (text if warns else text[3:])
            assert capsys.readouterr().err.count("byte order mark") == warns


def test_vocabularies_lose_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It would change the most frequent subword, which would then be split in the text."""
    (folder / "vocab").write_text(f"{MARK}low 3\ner 2\n", encoding="utf-8")
    for byte_level in (False, True):
        assert read_vocabulary("vocab", byte_level=byte_level) == {"low", "er"}
    assert read_dictionary(folder / "vocab") == [("low", 3), ("er", 2)]
    assert capsys.readouterr().err.count(REMOVED.format("vocab")) == 2
    (folder / "words").write_text("low\n", encoding="utf-8")
    assert main("apply-bpe -c codes --vocabulary vocab -i words -o out".split()) == 0
    assert (folder / "out").read_text(encoding="utf-8") == "low\n"


def test_codes_lose_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An editor may have put it before the header."""
    (folder / "marked").write_text(f"{MARK}{CODES}", encoding="utf-8")
    with open("marked", "rb") as stream:
        assert Codes.read("marked").text == Codes.read(stream).text == CODES.encode()
    assert BPE("marked").process_line("low") == "low"
    assert capsys.readouterr().err == REMOVED.format("marked") * 3


def test_jsonl_loses_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is not part of the JSON, whether Python reads the lines or the core; an error still counts its bytes."""
    (folder / "a.jsonl").write_text(f'{MARK}{{"text": "low"}}\n{{"text": "er"}}\n', encoding="utf-8")
    assert list(Documents(["a.jsonl"])) == [b"low", b"er"]
    assert capsys.readouterr().err == REMOVED.format("a.jsonl")
    assert main("encode -c bytes -i a.jsonl -o ids.bin".split()) == 0
    assert capsys.readouterr().err == REMOVED.format("a.jsonl")
    with pytest.raises(Exception, match="line 1: not JSON"):
        list(Documents([io.BytesIO(f"{MARK}{MARK}{{}}".encode())], format="jsonl"))
    with pytest.raises(Exception, match="line 1, byte offset 13: 0xE4 is not UTF-8"):
        list(Documents([io.BytesIO(MARK.encode() + b'{"text": "\xe4"}\n')], format="jsonl"))


def test_lines_of_a_scored_file_lose_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only at the start of the file; an error still counts its bytes."""
    assert read_lines("text") == ["low er", "low"]
    assert capsys.readouterr().err == REMOVED.format("text")
    (folder / "text").write_bytes(f"low\n{MARK}er\n".encode())
    assert read_lines("text") == ["low", f"{MARK}er"] and not capsys.readouterr().err
    (folder / "text").write_bytes(f"{MARK}low\n".encode() + b"\xe4\n")
    with pytest.raises(Exception, match="line 2, byte offset 7: 0xE4"):
        read_lines("text")


@pytest.mark.parametrize("marked", ["hypothesis", "reference"])
def test_scores_are_those_without_it(folder: Path, capsys: pytest.CaptureFixture[str], marked: str) -> None:
    """It is reported and not scored: it would cost a short reference seven points of chrF."""
    pytest.importorskip("sacrebleu", reason="needs the extra 'workflow'")
    sentences = {"hypothesis": "the cat sat on a mat\n", "reference": "the cat sat on the mat\n"}
    found = []
    for mark in ("", MARK):
        for side, sentence in sentences.items():
            (folder / side).write_text((mark if side == marked else "") + sentence, encoding="utf-8")
        command = "score --hypothesis hypothesis --reference reference --metrics bleu chrf ter --output scores.json"
        assert main(command.split()) == 0
        assert capsys.readouterr().err == (REMOVED.format(marked) if mark else "")
        metrics = json.loads((folder / "scores.json").read_text(encoding="utf-8"))["metrics"]
        found.append({name: metric["score"] for name, metric in metrics.items()})
    assert found[0] == found[1]
