"""Rows of ids as matrices and lists, compared with plain Python."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_scaffold._core import list_rows
from mt_scaffold.integrations.rows import Padding, TextIds, lists, matrices

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
    """Padded on either side, with both masks and the place of each id in its text."""
    values, offsets = numpy.array([number for row in rows for number in row], dtype), numpy.cumsum([0, *map(len, rows)])
    whole = [[*before, *row, *after] for row in rows]
    width = max(map(len, whole)) + wider
    spans = numpy.arange(2 * len(values)).reshape(-1, 2)
    found = matrices(TextIds(values, offsets, spans), before, after, Padding(9, width, left))

    def filled(rows: list[list[Any]], fill: Any) -> list[list[Any]]:
        return [[fill] * (width - len(row)) + row if left else row + [fill] * (width - len(row)) for row in rows]

    assert found["input_ids"].tolist() == filled(whole, 9)
    assert found["attention_mask"].tolist() == filled([[1] * len(row) for row in whole], 0)
    marks = [[1] * len(before) + [0] * len(row) + [1] * len(after) for row in rows]
    assert found["special_tokens_mask"].tolist() == filled(marks, 1)
    listed = lists(TextIds(values, offsets, spans), before, after)
    assert listed["input_ids"] == whole
    assert listed["attention_mask"] == [[1] * len(row) for row in whole]
    assert listed["special_tokens_mask"] == marks
    in_text = [[list(span) for span in row] for row in listed["offset_mapping"]]
    assert found["offset_mapping"].tolist() == filled(in_text, [0, 0])


@pytest.mark.parametrize("offsets", [[0, 4], [-1, 2], [2, 1]])
def test_rows_that_do_not_fit_are_refused(offsets: list[int]) -> None:
    """Nothing is read beyond an array."""
    with pytest.raises(ValueError, match="do not fit the values"):
        list_rows(numpy.arange(3), numpy.array(offsets, numpy.int64), [], [])
    with pytest.raises(TypeError):
        list_rows(numpy.zeros(3), numpy.array([0, 2]), [], [])
