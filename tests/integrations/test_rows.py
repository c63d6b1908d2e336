"""The core's part in batches: rows of ids as matrices and lists, against plain Python."""

from __future__ import annotations

import re

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_scaffold._core import fill_rows, list_rows

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
    layers = [(values, before, after, -1), (7, before, after, -2)]
    found = fill_rows(width, offsets, layers, left, 2)
    sevens = [[*before, *[7] * len(row), *after] for row in rows]
    for matrix, filled, fill in zip(found, (whole, sevens), (-1, -2), strict=True):
        padding = [[fill] * (width - len(row)) for row in filled]
        assert matrix.tolist() == [
            some + row if left else row + some for row, some in zip(filled, padding, strict=True)
        ]


@pytest.mark.parametrize("left", [False, True])
def test_several_threads_write_the_same_rows(left: bool) -> None:
    """Their parts meet inside rows, of which some are empty; one row may be everything."""
    generator = numpy.random.default_rng(1)
    for sizes in (generator.integers(0, 400, 3000), numpy.array([1_300_000]), numpy.array([0, 900_000, 0])):
        offsets = numpy.concatenate([[0], numpy.cumsum(sizes)])
        values = numpy.arange(offsets[-1], dtype=numpy.uint32)
        width = int(sizes.max()) + 2
        layers = [(values, [3], [4], -1), (1, [0], [], 2)]
        found = [fill_rows(width, offsets, layers, left, workers) for workers in (1, 5)]
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
        fill_rows(width, numpy.array(offsets, numpy.int64), [(numpy.arange(3), [], [], 0)], False, 1)
    with pytest.raises(TypeError):
        fill_rows(width, numpy.array([0, 2]), [(numpy.zeros(3), [], [], 0)], False, 1)
