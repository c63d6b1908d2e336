"""Ids of many texts in one array → the results of a tokenizer of transformers: padded matrices, or Python's lists."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy

from mt_scaffold._core import list_rows


class Encoded(NamedTuple):
    """The ids of texts: those of text i are ``ids[offsets[i]:offsets[i + 1]]`` (integers).

    spans: i → the beginning and end of each id of text i in its characters (ids × 2). words: i → the number of each
    id's word in text i. Both are functions because they take time and few calls need them.
    """

    ids: Any
    offsets: Any
    spans: Callable[[int], Any]
    words: Callable[[int], Any]


class TextIds(NamedTuple):
    """The ids of texts as in ``Encoded``; spans: the beginning and end of each id in its text (ids × 2), or None."""

    ids: Any
    offsets: Any
    spans: Any = None


@dataclass(frozen=True)
class Padding:
    """Padding of short rows: with ``id``, on the left or the right, to ``width`` or the longest row."""

    id: int
    width: int
    left: bool


def matrices(
    texts: TextIds,
    before: list[int],
    after: list[int],
    padding: Padding | None,
    attention: bool = True,
    special_mask: bool = True,
) -> dict[str, Any]:
    """Return arrays of texts × width, with the ids ``before`` and ``after`` each text.

    Without padding, all texts have the same length. The keys are those of transformers: input_ids; attention_mask and
    special_tokens_mask, if requested; offset_mapping (texts × width × 2; 0, 0 outside texts), if there are spans.
    """
    inside = numpy.diff(texts.offsets)[:, None] + len(before) + len(after)
    width = max(int(inside.max(initial=0)), 0 if padding is None else padding.width)
    # The position of each place within its row, padding on the left not counted.
    place = numpy.arange(width) - (width - inside if padding is not None and padding.left else 0)
    is_text = (place >= len(before)) & (place < inside - len(after))

    ids = numpy.full(is_text.shape, 0 if padding is None else padding.id, numpy.int64)
    ids[is_text] = texts.ids
    for number, special in enumerate(before):
        ids[numpy.broadcast_to(place == number, ids.shape)] = special
    for number, special in enumerate(after, -len(after)):
        ids[numpy.broadcast_to(place == inside + number, ids.shape)] = special
    found = {"input_ids": ids}
    if attention:
        found["attention_mask"] = ((place >= 0) & (place < inside)).astype(numpy.int64)
    if special_mask:
        found["special_tokens_mask"] = (~is_text).astype(numpy.int64)
    if texts.spans is not None:
        found["offset_mapping"] = numpy.zeros((*is_text.shape, 2), numpy.int64)
        found["offset_mapping"][is_text] = texts.spans
    return found


def lists(
    texts: TextIds, before: list[int], after: list[int], attention: bool = True, special_mask: bool = True
) -> dict[str, list[Any]]:
    """Return the same as ``matrices`` as Python's lists, one per text, without padding."""
    ids, pairs = list_rows(texts.ids, texts.offsets, before, after), list(itertools.pairwise(texts.offsets.tolist()))
    found: dict[str, list[Any]] = {"input_ids": ids}
    if attention:
        found["attention_mask"] = [[1] * len(row) for row in ids]
    if special_mask:
        found["special_tokens_mask"] = [
            [1] * len(before) + [0] * (end - begin) + [1] * len(after) for begin, end in pairs
        ]
    if texts.spans is not None:
        spans = list(map(tuple, texts.spans.tolist()))
        found["offset_mapping"] = [
            [(0, 0)] * len(before) + spans[begin:end] + [(0, 0)] * len(after) for begin, end in pairs
        ]
    return found


def byte_spans(text: str, sizes: Any) -> Any:
    """Return the character span of each token of a text (tokens × 2); sizes: the bytes of each token.

    The tokens cover the whole text. A character that several tokens share is in the span of each.
    """
    ends = numpy.cumsum(sizes)
    begins = ends - sizes
    if text.isascii():
        return numpy.stack([begins, ends], axis=1)
    data = numpy.frombuffer(text.encode("utf-8"), numpy.uint8)
    # The index of each byte's character.
    character = numpy.cumsum((data & 0xC0) != 0x80) - 1
    return numpy.stack([character[begins], character[ends - 1] + 1], axis=1)


def word_spans(text: str, pieces: list[str]) -> Any:
    """Return the beginning and end of each piece in a text that consists of them, spaces and line ends.

    Raises ValueError for any other text.
    """
    found = numpy.zeros((len(pieces), 2), numpy.int64)
    place = 0
    for number, piece in enumerate(pieces):
        while not text.startswith(piece, place):
            if text[place : place + 1] not in (" ", "\n", "\r") or place >= len(text):
                raise ValueError(f"'{piece}' is not at character {place} of the text")
            place += 1
        found[number] = place, place + len(piece)
        place += len(piece)
    return found
