"""The subwords that resampling can make of words, compared with every outcome enumerated in plain Python."""

from __future__ import annotations

import pytest
from awkward_words import word_counts
from hypothesis import given
from hypothesis import strategies as st
from learning import learn_with
from reference.distribution import dropout_distribution
from segmenting import CHARACTERS, MODE_NAMES, MODES, Mode, reference_of

from mt_scaffold import BPE, count_words
from mt_scaffold.corpus.text import END_OF_WORD
from mt_scaffold.segment.draw import Draw

SEPARATOR = "@@"


def forms(segmentation: tuple[str, ...]) -> set[str]:
    """The subwords of a word as text shows them."""
    *inner, last = segmentation
    return {*(piece + SEPARATOR for piece in inner), last.removesuffix(END_OF_WORD)}


def enumerated(codes: bytes, words: list[str], dropout: float) -> set[str]:
    """Every subword of every outcome of dropout, each merge at each step dropped or not."""
    reference = reference_of(codes)
    outcomes = (outcome for word in words for outcome in dropout_distribution(reference, word, dropout).items())
    return {form for outcome, probability in outcomes if probability for form in forms(outcome)}


def reached(codes: bytes, words: list[str], draw: Draw, **options: object) -> set[str]:
    return {*BPE(codes, **options).reachable_by(draw, count_words(lines=[" ".join(words)]))}  # type: ignore[arg-type]


@given(
    word_counts.filter(lambda counts: max(map(len, counts)) <= 6 and "<" not in "".join(counts)),
    st.integers(1, 12),
    st.sampled_from(["bpe", "scaffold", "picky"]),
)
def test_dropout_makes_these_subwords_and_no_others(counts: dict[str, int], symbols: int, algorithm: str) -> None:
    """So dictionaries need no <unk> for them, and have no entries that never occur."""
    text = " ".join(word for word, count in counts.items() for _ in range(count))
    codes = learn_with(lines=[text], num_symbols=symbols, min_frequency=1, algorithm=algorithm).text
    words = [*counts]
    assert reached(codes, words, Draw("dropout", 0.3)) == enumerated(codes, words, 0.3)
    assert reached(codes, words, Draw("dropout", 1)) == enumerated(codes, words, 1)


@given(
    st.lists(st.tuples(st.text("ab", min_size=1, max_size=3), st.text("ab", min_size=1, max_size=2)), max_size=6),
    st.lists(st.text("ab", min_size=1, max_size=6), min_size=1, max_size=2),
    st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_codes_in_any_order_and_with_tokens_that_nothing_makes(
    pairs: list[tuple[str, str]], words: list[str], final: list[bool]
) -> None:
    """Codes of other programs may have a line whose left side no other line makes; it is never followed."""
    lines = [
        f"{left} {right}{END_OF_WORD if last else ''}\n" for (left, right), last in zip(pairs, final, strict=False)
    ]
    codes = f"#version: 0.2\n{''.join(dict.fromkeys(lines))}".encode()
    assert reached(codes, words, Draw("dropout", 0.5)) == enumerated(codes, words, 0.5)


def test_a_merge_may_make_what_looks_like_the_end_of_a_word() -> None:
    """In a word that spells out "</w>", it is a subword like any other."""
    codes = b"#version: 0.2\n< /\n</ w\n</w >\nw </w>\n"
    assert BPE(codes).segment("w</w>>") == "w</w>@@ >"
    assert reached(codes, ["w</w>>"], Draw("dropout", 0.5)) == enumerated(codes, ["w</w>>"], 0.5)
    assert "w@@" not in reached(codes, ["w"], Draw("dropout", 0.5))


def test_vocabulary_and_glossaries_are_those_of_segmenting() -> None:
    """A split subword is not reached, a glossary entry stays whole, and what ends before one does not end a word."""
    codes = b"#version: 0.2\na b\nab a\nb a</w>\nab ab</w>\naba b</w>\n"
    words = ["abab", "abaXba", "Xab", "bXX"]
    options = {"vocab": ["ab@@", "ba", "aba@@", "X@@"], "glossaries": ["X"]}
    bpe = BPE(codes, **options)  # type: ignore[arg-type]
    drawn = {form for word in words for seed in range(400) for form in bpe.segment(word, 0.4, seed).split()}
    assert reached(codes, words, Draw("dropout", 0.4), **options) == drawn
    assert "X@@" in drawn and "abab" not in drawn


@pytest.mark.parametrize("mode", MODES, ids=MODE_NAMES)
def test_sampled_text_holds_nothing_else(mode: Mode) -> None:
    """Every subword drawn is listed, also of bytes, of words that spell out </w> and of characters in no merge."""
    lines = ["low</w>er lower 日本 äöü lowest", "new</w> newer </w>"] * 3
    codes = learn_with(lines=lines, num_symbols=25, min_frequency=1, algorithm="scaffold", **mode.options).text
    text = [*lines[:2], "lowew zzz 🙂"]
    bpe = BPE(codes)
    found = set(bpe.reachable(count_words(lines=text, **({} if mode.end_of_word else mode.options)), 0.5))
    for seed in range(300):
        for line in text:
            assert {*bpe.segment(line, 0.5, seed).split()} <= found
    assert (mode != CHARACTERS) or {"🙂", "z@@", "z"} <= found
