"""``studies.intrinsic``: its measures are those of ``stats``, and its parts add up."""

from __future__ import annotations

import csv
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("yaml", reason="comes with the extra 'workflow'")

from mt_scaffold import BPE, learn_bpe
from mt_scaffold.analysis.stats import stats
from mt_scaffold.codes import Codes
from studies.intrinsic import class_of, main, parts_of, read_parts

CONFIGURATION = """\
sizes: [20, 30, 5000]
texts:
  small: {files: {en: a.en, de: a.de}, held_out: {every: 5, lines: 2}, other: [strange]}
  strange: {files: {en: b.en}}
methods:
  bpe: {algorithm: bpe}
  scaffold: {algorithm: scaffold}
  trimmed: {algorithm: trimmed, below: 0.5, refill: true}
"""


def write_text(path: Path, seed: int, lines: int) -> None:
    """Write a text of words with common stems and endings, so that some merged tokens end up inside longer ones."""
    draw = random.Random(seed)
    stems, ends = ["would", "could", "mould", "fountain", "mountain", "zona", "l"], ["", "s", "ing", "er", "erö"]
    words = [[draw.choice(stems) + draw.choice(ends) for _ in range(draw.randint(1, 9))] for _ in range(lines)]
    path.write_text("".join(" ".join(line) + "\n" for line in words), encoding="utf-8")


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[dict[str, str]]]:
    """The tables of a tiny configuration; its texts are in the same folder."""
    for seed, (name, lines) in enumerate({"a.en": 60, "a.de": 50, "b.en": 8}.items()):
        write_text(tmp_path / name, seed, lines)
    (tmp_path / "study.yaml").write_text(CONFIGURATION, encoding="utf-8")
    files = [str(tmp_path / "study.yaml"), "--texts", str(tmp_path), "--output", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["intrinsic", *files])
    main()
    return {
        path.stem: list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        for path in (tmp_path / "out").glob("*.csv")
    }


def test_measures_are_those_of_stats(tmp_path: Path, tables: dict[str, list[dict[str, str]]]) -> None:
    """The same words have the same figures, whichever program measures them; a text too small for N is marked."""
    lines = {language: (tmp_path / f"a.{language}").read_text("utf-8").splitlines() for language in ("en", "de")}
    train = [line for each in lines.values() for number, line in enumerate(each) if number // 2 % 5 != 4]
    codes = learn_bpe(lines=train, num_symbols=30).codes
    (theirs,) = stats([codes], lines=train)
    key = {"text": "small", "N": "30", "method": "scaffold"}
    (ours,) = (row for row in tables["measures"] if row.items() >= {**key, "on": "train"}.items())
    for name, value in theirs.to_dict().items():
        if name in ours and name != "renyi_efficiency":
            assert float(ours[name]) == pytest.approx(value), name
    assert float(ours["renyi_efficiency"]) == pytest.approx(theirs.renyi_efficiency[2.5])
    assert int(ours["under_100"]) == theirs.frequency_under_100
    bpe = BPE(codes)
    whole = sum(" " not in bpe.segment(word) for line in train for word in line.split())
    assert float(ours["whole_words"]) == pytest.approx(whole / theirs.words)
    assert {row["on"] for row in tables["measures"]} == {"train", "unseen", "strange"}
    assert {row["complete"] for row in tables["learning"] if row["N"] == "5000"} == {"false"}
    (learned,) = (row for row in tables["learning"] if row.items() >= key.items())
    assert learned["merged"] == "30" and learned["complete"] == "true"


def test_additional_subwords_add_up(tables: dict[str, list[dict[str, str]]]) -> None:
    """Gain + cost is the difference of the two methods in every text, and tokens explain the whole cost."""
    tokens = {(row["N"], row["method"], row["on"]): int(row["tokens"]) for row in tables["measures"]}
    gain, cost, by_token = Counter[tuple[str, str]](), Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for row in tables["subwords_by_word"]:
        gain[row["N"], row["on"]] += int(row["gain"])
        cost[row["N"], row["on"]] += int(row["cost"])
    for row in tables["subwords_by_token"]:
        by_token[row["N"], row["on"]] += int(row["cost"])
    assert cost == by_token and max(cost.values()) > 0
    assert {size for size, _ in cost} == {"20", "30"}
    for size, on in cost:
        assert gain[size, on] + cost[size, on] == tokens[size, "scaffold", on] - tokens[size, "bpe", on]


def test_a_text_is_divided_by_lines(tmp_path: Path) -> None:
    """Blocks are held out, and nothing is in two parts."""
    (tmp_path / "text").write_text("".join(f"w{number}\n" for number in range(12)), encoding="utf-8")
    parts = read_parts({"files": {"en": "text"}, "held_out": {"every": 3, "lines": 2}}, tmp_path)
    assert sorted(dict(parts["unseen"].items())) == ["w10", "w11", "w4", "w5"]
    assert len(parts["train"]) == 8
    whole = read_parts({"files": {"en": "text"}}, tmp_path)
    assert len(whole["unseen"]) == 12 and not len(whole["train"])


def test_scaffold_tokens_have_their_parts() -> None:
    """A scaffold token within another counts with all its parts; of two derivations, the shorter wins."""
    codes = b"#version: 0.2\na b scaffold\nc d\nab cd scaffold\nx y\nabcd xy scaffold\nb cd\na bcd scaffold\n"
    assert parts_of(Codes(codes)) == {"ab": 2, "abcd": 2, "abcdxy": 3}
    classes = [class_of(frequency) for frequency in (0, 1, 2, 9, 10, 99, 5000)]
    assert classes == ["0", "1", "2-9", "2-9", "10-99", "10-99", "1000+"]
