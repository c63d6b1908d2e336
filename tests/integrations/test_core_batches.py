"""The core's part in batches: tokens found in texts, rows of ids as matrices and lists; against plain Python."""

from __future__ import annotations

import re

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mt_scaffold._core import fill_rows, find_tokens, list_rows

pytest.importorskip("transformers", reason="comes with the extra 'transformers'")

from transformers.tokenization_python import Trie

# Few characters, so that tokens overlap and hold one another; one for each width that Python stores, a lone surrogate.
CHARACTERS = "ab<é東🙂\ud800"
TOKENS = st.lists(st.text(CHARACTERS, min_size=1, max_size=4), max_size=5, unique=True)


def places_by_hand(text: str, tokens: list[str]) -> list[tuple[int, int]]:
    """Where tokens are: at each place the longest, and on after it."""
    found, place = [], 0
    while place < len(text):
        here = [token for token in tokens if text.startswith(token, place)]
        if here:
            found.append((place, tokens.index(max(here, key=len))))
        place += max(map(len, here), default=1)
    return found


@given(st.lists(st.text(CHARACTERS, max_size=100), max_size=4), TOKENS)
@example(["ab<", "", "b"], ["b", "ab", "b<", "ab<a"])
@example(["a" * 99 + "🙂<" + "a" * 40, "é" * 31 + "<"], ["<", "🙂<a", "🙂"])
def test_tokens_are_found_as_by_hand(texts: list[str], tokens: list[str]) -> None:
    """Overlapping, at both ends, one the beginning of another or inside it, in texts of every width."""
    expected = [(number, *each) for number, text in enumerate(texts) for each in places_by_hand(text, tokens)]
    assert find_tokens(texts, tokens, 1) == expected


@given(st.text(CHARACTERS, max_size=40), TOKENS)
def test_tokens_are_those_of_transformers(text: str, tokens: list[str]) -> None:
    """Its search, character by character, cuts a text at the same places."""
    cuts = [place + end for _, place, token in find_tokens([text], tokens, 1) for end in (0, len(tokens[token]))]
    pieces = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True) if end > begin]
    assert Trie(tokens).split(text) == (pieces)


@pytest.mark.parametrize("character", "aé東🙂")
def test_threads_find_what_one_finds(character: str) -> None:
    """A token that begins in the part of one thread and ends in that of the next, in texts around the middle."""
    half = 1 << 18
    for before in (0, half - 5, half - 4, half - 1, half, 2 * half - 4):
        text = character * before + "<ab>" + character * (2 * half - 4 - before)
        assert find_tokens([text], ["<ab>"], 2) == [(0, before, 0)]
        parts = [text[: half - 2], "", text[half - 2 :]]
        expected = [(number, part.index("<ab>"), 0) for number, part in enumerate(parts) if "<ab>" in part]
        assert find_tokens(parts, ["<ab>"], 2) == expected
    assert find_tokens([character * half * 3, "<ab>"], ["<ab>", "b"], 3) == [(1, 0, 0)]


def test_a_token_without_characters_is_in_no_text() -> None:
    """An endless search otherwise."""
    assert find_tokens(["", "ab"], ["", "b"], 1) == [(1, 1, 1)]
    with pytest.raises((TypeError, RuntimeError)):
        find_tokens([b"ab"], ["b"], 1)  # type: ignore[list-item]


NUMBERS = st.integers(0, 1 << 21)


@given(
    st.lists(st.lists(NUMBERS, max_size=5), min_size=1, max_size=5),
    st.lists(NUMBERS, max_size=2),
    st.lists(NUMBERS, max_size=2),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from([numpy.uint32, numpy.int64]),
)
def test_rows_are_those_of_plain_python(
    rows: list[list[int]], before: list[int], after: list[int], wider: int, left: bool, dtype: type[numpy.generic]
) -> None:
    """On either side filled, with one value in place of the ids as well, by several threads as by one."""
    values, offsets = numpy.array([number for row in rows for number in row], dtype), numpy.cumsum([0, *map(len, rows)])
    whole = [[*before, *row, *after] for row in rows]
    assert list_rows(values, offsets, before, after) == whole
    width = max(map(len, whole)) + wider
    for given_values, filled in ((values, whole), (7, [[*before, *[7] * len(row), *after] for row in rows])):
        into = fill_rows(width, given_values, offsets, before, after, -1, left, 2)
        padded = [[-1] * (width - len(row)) + row if left else row + [-1] * (width - len(row)) for row in filled]
        assert into.tolist() == padded


@pytest.mark.parametrize("left", [False, True])
def test_several_threads_write_the_same_rows(left: bool) -> None:
    """Their parts meet inside rows, of which some are empty; one row may be everything."""
    generator = numpy.random.default_rng(1)
    for sizes in (generator.integers(0, 400, 3000), numpy.array([1_300_000]), numpy.array([0, 900_000, 0])):
        offsets = numpy.concatenate([[0], numpy.cumsum(sizes)])
        values = numpy.arange(offsets[-1], dtype=numpy.uint32)
        width = int(sizes.max()) + 2
        found = [fill_rows(width, values, offsets, [3], [4], -1, left, workers) for workers in (1, 5)]
        assert numpy.array_equal(found[0], found[1])


def test_equal_ids_are_one_object() -> None:
    """What makes lists of millions of ids quick and small."""
    (row,) = list_rows(numpy.array([70000, 5, 70000], numpy.uint32), numpy.array([0, 3]), [], [])
    assert row[0] is row[2]


@pytest.mark.parametrize(
    ("offsets", "width", "says"),
    [
        ([0, 4], 9, "do not fit the values"),
        ([-1, 2], 9, "do not fit the values"),
        ([2, 1], 9, "do not fit the values"),
        ([0, 3], 2, "a row is too long"),
        ([], 9, "one more offset"),
    ],
)
def test_rows_that_do_not_fit_are_refused(offsets: list[int], width: int, says: str) -> None:
    """Nothing is read or written beyond an array."""
    with pytest.raises(ValueError, match=re.escape(says)):
        fill_rows(width, numpy.arange(3), numpy.array(offsets, numpy.int64), [], [], 0, False, 1)
    with pytest.raises(TypeError):
        fill_rows(width, numpy.zeros(3), numpy.array([0, 2]), [], [], 0, False, 1)
