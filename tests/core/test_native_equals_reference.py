"""The native core against the plain Python reference, on cases that hypothesis makes as awkward as it can."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest
from awkward_words import ALPHABETS, LONGEST_SHORT_WORD, word_counts, words
from hypothesis import given, settings
from hypothesis import strategies as st
from learning import learn_with
from segmenting import dictionary_lines, hard_text, learn_with_reference, lines_at_lf, reference_of

from mt_scaffold import BPE, _core, learn_bpe
from mt_scaffold.analysis import reference as reference_module
from mt_scaffold.corpus.text import END_OF_WORD
from mt_scaffold.methods.trace import format_step

thousands = settings(max_examples=1000, derandomize=True, deadline=None, database=None)
hundreds = settings(max_examples=300, derandomize=True, deadline=None, database=None)


@pytest.mark.parametrize("algorithm", ["scaffold", "bpe"])
@thousands
@given(counts=word_counts, symbols=st.integers(1, 12), min_frequency=st.integers(1, 4))
def test_learning(algorithm: str, counts: dict[str, int], symbols: int, min_frequency: int) -> None:
    """Both take the same steps and end alike: merges, marks, frequencies, returns, the same early end."""
    reference, codes = learn_with_reference(counts, symbols, min_frequency, algorithm)
    trace = io.BytesIO()
    native = learn_with(
        None, None, symbols, min_frequency, is_dict=True, algorithm=algorithm, lines=dictionary_lines(counts),
        trace=trace,
    )  # fmt: skip
    assert native.text == codes
    _, *lines = trace.getvalue().decode("utf-8").split("\n")
    assert lines == [*(format_step(number, step)[:-1] for number, step in enumerate(reference.steps, 1)), ""]
    marked = {left + right for left, right in reference.merges} & reference.scaffold
    assert (native.merges, native.scaffold) == (len(reference.merges), len(marked))
    assert (native.restored, native.exhausted) == (reference.restored, reference.exhausted)
    BPE(native.text)  # what learning writes, applying reads


@pytest.mark.parametrize("algorithm", ["scaffold", "bpe"])
def test_tokens_end_at_the_same_length(algorithm: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A pair whose token would have more than 2,048 bytes is passed over, and others are merged after it."""
    assert reference_module.LONGEST_TOKEN == _core.LONGEST_TOKEN
    counts = {"\u00e9" * 1500: 9, "\u00e9" * 1021 + "xx": 7, "ab" * 1022 + "c": 5, "cd": 2}
    reference, codes = learn_with_reference(counts, 60, 1, algorithm)
    native = learn_with(None, None, 60, 1, is_dict=True, algorithm=algorithm, lines=dictionary_lines(counts))
    assert native.text == codes and (native.restored, native.exhausted) == (reference.restored, reference.exhausted)
    longest = max(len((left + right).encode()) for left, right in reference.merges)
    assert 1500 < longest <= _core.LONGEST_TOKEN and ("c", "d</w>") in reference.merges
    assert "more than 2,048 bytes" in capsys.readouterr().err


@st.composite
def codes_of(draw: st.DrawFn, alphabet: str) -> bytes:
    """Draw codes that no corpus need lead to: strings made in several ways, merges that repeat or never apply."""
    made = [*alphabet, *(letter + END_OF_WORD for letter in alphabet)]
    base = set(made)
    marks: dict[str, bool] = {}
    lines = []
    for _ in range(draw(st.integers(0, 14))):
        left = draw(st.sampled_from([token for token in made if not token.endswith(END_OF_WORD)]))
        right = draw(st.sampled_from(made))
        token = left + right
        if len(token) > 30:
            continue
        scaffold = marks.setdefault(token, token not in base and draw(st.booleans()))
        made.append(token)
        lines.append(f"{left} {right}" + " scaffold" * scaffold)
    return "\n".join(["#version: 0.2", *lines, ""]).encode("utf-8")


@st.composite
def cases(draw: st.DrawFn, min_size: int = 1, max_size: int = 12) -> tuple[bytes, int, str, set[str] | None, str]:
    """Draw codes, the number of merges to use, a separator, perhaps a vocabulary, and a line of text."""
    alphabet = draw(st.sampled_from(ALPHABETS))
    codes = draw(codes_of(alphabet))
    merges = draw(st.just(-1) | st.integers(0, 14))
    separator = draw(st.sampled_from(["@@", "@@", "~", "￭", "</w>"]))
    with_unknown = words(alphabet, min_size, max_size) | words(alphabet + "xü", min_size, max_size)
    some_words = draw(st.lists(with_unknown, min_size=1, max_size=6))
    spaces = st.sampled_from(["", " ", "  ", "\r", " \r", "\r\n", "\n"])
    line = draw(spaces) + draw(st.sampled_from([" ", "   "])).join(some_words) + draw(spaces)
    vocabulary = None
    if draw(st.booleans()):
        forms = sorted(set(BPE(codes, separator=separator).surface_forms()) | set(some_words))
        vocabulary = draw(st.sets(st.sampled_from(forms), max_size=len(forms)))
    return codes, merges, separator, vocabulary, line


def check(codes: bytes, merges: int, separator: str, vocabulary: set[str] | None, line: str) -> None:
    reference = reference_of(codes, merges, separator, vocabulary)
    bpe = BPE(codes, merges, separator, vocabulary)
    expected = reference.process_line(line)
    assert bpe.process_line(line) == expected
    assert bpe.process_line(line) == expected  # from the table of words, the second time


@thousands
@given(case=cases())
def test_applying(case: tuple[bytes, int, str, set[str] | None, str]) -> None:
    """Both agree on scaffolding, demolishing, the vocabulary filter, ``--merges``, separators and margins."""
    check(*case)


@hundreds
@given(case=cases(LONGEST_SHORT_WORD - 3, LONGEST_SHORT_WORD + 3))
def test_applying_to_words_at_the_limit_of_the_short_way(
    case: tuple[bytes, int, str, set[str] | None, str],
) -> None:
    """Both algorithms for a word agree around the length at which one takes over from the other."""
    check(*case)


@hundreds
@given(case=cases(LONGEST_SHORT_WORD + 1, 6 * LONGEST_SHORT_WORD))
def test_applying_to_long_words(case: tuple[bytes, int, str, set[str] | None, str]) -> None:
    """The algorithm for long words agrees too, including words too long to be cached."""
    check(*case)


@hundreds
@given(counts=word_counts, symbols=st.integers(1, 20), data=st.data())
def test_learning_then_applying(counts: dict[str, int], symbols: int, data: st.DataObject) -> None:
    """Codes as learned are applied to words made of the same letters; no scaffold token comes out."""
    learned, codes = learn_with_reference(counts, symbols, 1)
    alphabet = "".join(sorted(set("".join(counts))))
    line = " ".join(data.draw(st.lists(words(alphabet, 1, 12), min_size=1, max_size=6)))
    check(codes, -1, "@@", None, line)
    pieces = BPE(codes).segment(line).split(" ")
    assert not {piece.removesuffix("@@") if piece.endswith("@@") else piece + END_OF_WORD for piece in pieces} & (
        learned.scaffold
    )


def test_hard_text_with_learned_codes() -> None:
    """A text with every kind of line and letter is counted, learned from and segmented as by the reference."""
    text = hard_text(3, 4000)
    lines = lines_at_lf(text)
    counts = _core.count_words([("text", text.encode("utf-8"))])
    reference, codes = learn_with_reference(dict(counts.items()), 60)
    learned = learn_bpe(io.BytesIO(text.encode("utf-8")), num_symbols=60)
    assert learned.text == codes
    assert reference.scaffold, "a text without scaffold tokens shows nothing"
    output = io.BytesIO()
    BPE(learned.text).process_file(io.BytesIO(text.encode("utf-8")), output)
    segmenter = reference_of(codes)
    assert output.getvalue().decode("utf-8") == "".join(segmenter.process_line(line) for line in lines)


@pytest.fixture(scope="module")
def many_words() -> tuple[bytes, list[str], str]:
    """Codes, lines of 50,000 distinct words in all, and the first of them as the reference segments them."""
    generator = random.Random(1)
    distinct = ["".join(generator.choice("abcde") for _ in range(generator.randint(4, 40))) for _ in range(50_000)]
    lines = [" ".join(generator.choice(distinct[i : i + 5000]) for _ in range(6)) for i in range(0, 45_000, 5)]
    codes = learn_with_reference(dict.fromkeys(distinct[:60], 1), 30)[1]
    reference = reference_of(codes)
    return codes, lines, "\n".join(reference.segment(line) for line in lines[:500])


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    "limits",
    [{"max_bytes": 1 << 18}, {"max_words": 1}, {"max_words": 1, "max_bytes": 3 << 17}, {"max_bytes": 0}],
    ids=str,
)
def test_the_table_of_words_is_replaced_when_full(
    many_words: tuple[bytes, list[str], str], limits: dict[str, Any], workers: int
) -> None:
    """With far more distinct words than the table can hold, the output is still the same."""
    codes, lines, expected = many_words
    text = "\n".join(lines).encode("utf-8")
    segmenter = _core.Segmenter(codes, "@@")
    unlimited = io.BytesIO()
    _core.Applier(segmenter).apply(("text", text), ("out", unlimited))
    applier = _core.Applier(segmenter, **limits)
    for _ in range(2):  # the second time with a table that has been replaced before
        output = io.BytesIO()
        applier.apply(("text", text), ("out", output), workers)
        assert output.getvalue() == unlimited.getvalue()
        assert applier.segment_line(lines[0]) == expected.split("\n")[0]
    assert unlimited.getvalue().decode("utf-8").startswith(expected)
