"""``join`` undoes ``apply-bpe``, byte for byte, as the field's sed expression does."""

from __future__ import annotations

import io
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_scaffold import BPE, MTScaffoldError, UsageError, learn_bpe
from mt_scaffold.cli import main
from mt_scaffold.corpus.text import join_subwords, joining
from mt_scaffold.segment.join import join_text

CODES = learn_bpe(lines=["low lower lowest newer"], num_symbols=6).codes


def joined(text: bytes, **options: Any) -> bytes:
    output = io.BytesIO()
    join_text(io.BytesIO(text), output, **options)
    return output.getvalue()


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(lines=st.lists(st.text("lowern \r", max_size=20)), end=st.booleans(), dropout=st.sampled_from([0.0, 0.5]))
def test_join_undoes_segmenting(lines: list[str], end: bool, dropout: float) -> None:
    """Except for runs of spaces inside a line, which segmenting collapses; margins, CRs and a missing last LF stay."""
    text = "\n".join(lines) + "\n" * end
    output = io.BytesIO()
    BPE(CODES).process_file(io.BytesIO(text.encode()), output, dropout, seed=1)
    kept = [re.sub(r"(?<=[^ \r]) +(?=[^ \r])", " ", line) for line in text.split("\n")]
    found = joined(output.getvalue()).decode().split("\n")
    collapsed = [re.sub(" +", " ", line) for line in found]
    assert collapsed == [re.sub(" +", " ", line) for line in kept]


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(text=st.text("a@ \n", max_size=40))
def test_join_is_the_published_expression(text: str) -> None:
    """sed -r 's/(@@ )|(@@ ?$)//g', which the README of subword-nmt gives, line by line."""
    expected = "\n".join(re.sub(r"(@@ )|(@@ ?$)", "", line) for line in text.split("\n"))
    assert joined(text.encode()).decode() == expected


def test_codes_with_a_pretokeniser(tmp_path: Path) -> None:
    """Their subwords are in GPT-2's notation; a character outside it is reported with file and line."""
    codes = learn_bpe(lines=["low lower lowest"], num_symbols=5, pretokenise="gpt2").codes
    text = "löw  lower \n\nend".encode()
    output = io.BytesIO()
    BPE(codes).process_file(io.BytesIO(text), output)
    assert joined(output.getvalue(), codes=codes) == text
    assert joined(output.getvalue() + b"\n", codes=codes) == text + b"\n"
    wrong = tmp_path / "subwords"
    wrong.write_text("l o\n日\n", encoding="utf-8")
    with pytest.raises(MTScaffoldError, match=r"subwords: line 2: "):
        join_text(wrong, io.BytesIO(), codes=codes)


def test_long_lines_and_separators(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Blocks end at line ends, however long the lines; an empty separator is refused; errors are one line."""
    text = b"a@@ b " * 400_000 + b"\nc@@ d"
    assert joined(text) == b"ab " * 400_000 + b"\ncd"
    assert joined(b"a_ b", separator="_") == b"ab"
    with pytest.raises(UsageError, match="an empty separator"):
        joined(b"a", separator="")
    (tmp_path / "text").write_bytes(b"lo@@ w\n")
    assert main(["join", "-i", str(tmp_path / "text"), "-o", str(tmp_path / "words")]) == 0
    assert (tmp_path / "words").read_bytes() == b"low\n"
    assert main(["join", "-i", str(tmp_path / "none")]) == 1
    assert capfd.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("text", ["z@@\n", "z@@\r\n", "a@@ b@@", "a@@ b  \n", "@@ a", "a\n", "", "x @@ y"])
def test_the_method_and_the_command_join_alike(text: str) -> None:
    """A separator before a line end is removed, a space there is not."""
    assert BPE(b"#version: 0.2\na n\n").join(text).encode() == joined(text.encode())


def test_codes_of_the_other_kind_are_warned_of(capfd: pytest.CaptureFixture[str]) -> None:
    """Words would be glued together, or stay apart."""
    gpt2 = b"#version: 0.3 bytes gpt2\na n\n"
    for text, codes, kind in (
        ("lo@@ w", gpt2, "without"),
        ("l ow \u0120l \u0120ow", None, "with"),
        ("a \u0120l", gpt2, ""),
    ):
        join_text(io.BytesIO(text.encode()), io.BytesIO(), codes=codes)
        said = capfd.readouterr().err
        assert f"looks segmented with codes {kind} a pre-tokeniser (such as '" in said if kind else not said


@pytest.mark.parametrize("separator", ["@@", "@", "@_@", "@ @", " ", "  "])
def test_the_fast_path_of_joining_equals_the_pattern(separator: str) -> None:
    """In text without line ends, separators are replaced as strings, which must find the same ones."""
    draw = random.Random(separator)
    for _ in range(3000):
        line = "".join(draw.choices("@ a_", k=draw.randrange(12)))
        assert join_subwords(line, separator) == joining(separator).sub("", line)
