"""The control for Scaffold-BPE: BPE's merges, and as many scaffold tokens, chosen at random."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from awkward_words import word_counts
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.random_trimming import control
from segmenting import MODE_NAMES, MODES, Mode, reference_codes, reference_of, rich_text

from mt_scaffold import BPE, UsageError, count_words, learn
from mt_scaffold.cli import main
from mt_scaffold.corpus.text import bytes_to_notation
from mt_scaffold.methods import PlainBPE, RandomlyTrimmed, Scaffold

LINES = rich_text(3, 300, [*"abcdef", "ä", "ss"])


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
@given(counts=word_counts, symbols=st.integers(1, 12), min_frequency=st.integers(1, 3), draw=st.integers(0, 3))
def test_it_equals_the_reference(counts: dict[str, int], symbols: int, min_frequency: int, draw: int) -> None:
    """BPE's merges, and as many scaffold tokens as Scaffold-BPE has, drawn and taken apart as in plain Python."""
    lines = [" ".join([word] * count) for word, count in counts.items()]
    learned = learn(lines=lines, method=RandomlyTrimmed(symbols, min_frequency, draw=draw))
    codes = reference_codes(control(counts, symbols, draw, min_frequency))
    assert learned.text == codes
    if learned.merges:
        bpe, plain = BPE(codes), reference_of(codes)
        assert [bpe.segment(word) for word in counts] == [plain.segment(word) for word in counts]


@pytest.mark.parametrize("mode", MODES, ids=MODE_NAMES)
def test_it_equals_the_reference_on_longer_text(mode: Mode) -> None:
    """Also with bytes as symbols, where the draw depends on the notation of the codes file."""
    learned = learn(lines=LINES, method=RandomlyTrimmed(60, draw=7), **mode.options)
    encoding = "latin-1" if mode.byte_level else "utf-8"
    counted = count_words(lines=LINES, pretokenise="spaces" if mode.end_of_word else "gpt2").byte_items()
    counts = Counter({word.decode(encoding): count for word, count in counted})

    def written(token: str) -> str:
        return bytes_to_notation(token.encode("latin-1")) if mode.byte_level else token

    expected = control(counts, 60, 7, end_of_word=mode.end_of_word, written=written)
    assert learned.text == reference_codes(expected, mode)
    assert learned.scaffold == len(expected.scaffold) > 10 and len(learned.codes.normal) == 60


def test_only_the_choice_of_tokens_differs_from_scaffold_bpe() -> None:
    """The same merges, sizes and kinds of codes; other tokens with each draw, the same ones for the same draw."""
    scaffold = learn(lines=LINES, method=Scaffold(60)).codes
    bpe = learn(lines=LINES, method=PlainBPE(len(scaffold.merges))).codes
    draws = [learn(lines=LINES, method=RandomlyTrimmed(60, draw=draw)).codes for draw in (1, 2, 2)]
    for codes in draws:
        assert codes.with_scaffold([]).text == scaffold.with_scaffold([]).text == bpe.text
        assert len(codes.scaffold) == len(scaffold.scaffold) and codes.scaffold != scaffold.scaffold
    assert draws[0].scaffold != draws[1].scaffold == draws[2].scaffold


def test_there_are_no_steps_to_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trace of Scaffold-BPE would name tokens that the codes do not mark."""
    with pytest.raises(UsageError, match="no steps to trace"):
        learn(lines=LINES, method=RandomlyTrimmed(9), trace=tmp_path / "trace")
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in LINES))
    files = ["--input", str(tmp_path / "text"), "--output", str(tmp_path / "codes")]
    assert main(["learn-bpe", "--algorithm", "random", "--draw", "-1", "-s", "9", *files]) == 2
    assert "draw must be 0 or more" in capsys.readouterr().err
    assert main(["learn-bpe", "--algorithm", "random", "--draw", "4", "-s", "9", *files]) == 0
    assert (tmp_path / "codes").read_bytes() == learn(lines=LINES, method=RandomlyTrimmed(9, draw=4)).text
