"""``studies.typos``: number and places of the typos, the same for the same seed."""

from __future__ import annotations

import difflib
import gzip
import json
from pathlib import Path

import pytest

from studies.typos import Typos, main

TEXT = "\n".join(" ".join(f"wort{'abcdefgh'[n % 8]}{'xyz'[n % 3]}  Haus, 12 (ein" for n in range(50)) for _ in range(4))


def test_one_letter_in_each_tenth_word() -> None:
    """One of each ten words of four letters or more has one wrong letter; all else stays, including white space."""
    typos = Typos(7)
    changed = typos.text(TEXT)
    words = [word for word in TEXT.split() if sum(map(str.isalpha, word)) >= 4]
    others = [(before, after) for before, after in zip(TEXT.split(), changed.split(), strict=True) if before != after]
    assert len(others) == typos.made == len(words) // 10 == 40
    assert {before for before, _ in others} <= {*words} and all(abs(len(a) - len(b)) <= 1 for a, b in others)
    for before, after in others:
        same = sum(block.size for block in difflib.SequenceMatcher(None, before, after).get_matching_blocks())
        assert same >= len(before) - 1
    assert changed.count("\n") == TEXT.count("\n") and changed.count("  ") == TEXT.count("  ")
    assert changed == Typos(7).text(TEXT) != Typos(8).text(TEXT)


def test_documents_and_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both kinds of files keep everything else; a line that is not a document is named."""
    with gzip.open(tmp_path / "in.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps({"text": TEXT, "name": n}) + "\n" for n in range(2))
    assert main(["--input", f"{tmp_path}/in.jsonl.gz", "--output", f"{tmp_path}/out.jsonl.gz", "--seed", "7"]) == 0
    with gzip.open(tmp_path / "out.jsonl.gz", "rt", encoding="utf-8") as stream:
        documents = [json.loads(line) for line in stream]
    typos = Typos(7)
    assert documents == [{"text": typos.text(TEXT), "name": n} for n in range(2)]
    (tmp_path / "in.de").write_text(TEXT + "\n", encoding="utf-8")
    assert main(["--input", f"{tmp_path}/in.de", "--output", f"{tmp_path}/out.de", "--seed", "7"]) == 0
    assert (tmp_path / "out.de").read_text(encoding="utf-8") == Typos(7).text(TEXT) + "\n"
    for name, content, problem in (
        ("bad.jsonl", b'{"text": "a"}\n{"title": "b"}\n', "not a JSON object with text in the field"),
        ("bad.jsonl", b'{"text": "a"}\n{"text": 1}\n', "not a JSON object with text in the field"),
        ("bad.jsonl", b'{"text": "a"}\ntext\n', "not a JSON object with text in the field"),
        ("bad.de", b"a\n\xff\n", "not UTF-8; convert the file to UTF-8 first"),
    ):
        (tmp_path / name).write_bytes(content)
        capsys.readouterr()
        assert main(["--input", f"{tmp_path}/{name}", "--output", f"{tmp_path}/x"]) == 1
        assert capsys.readouterr().err.startswith(f"studies.typos: {tmp_path}/{name}: line 2: {problem}")
        assert not (tmp_path / "x").exists()
