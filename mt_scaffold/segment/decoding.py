"""Ids in pieces → text: at the end the same as all at once."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mt_scaffold.segment.ids import Ids, TokenIds


class IncrementalDecoder:
    """Decodes ids that arrive one by one or several at a time, without ever returning a part of a character.

    bpe: codes of bytes. errors: as for ``bytes.decode``: what becomes of bytes that are not UTF-8.

    >>> from mt_scaffold import BPE
    >>> decoder = IncrementalDecoder(BPE(b"#version: 0.3 bytes gpt2\\na n\\nb an\\n"))
    >>> decoder.decode([0xC3]), decoder.decode([0xA4, 257])
    ('', 'äban')
    """

    def __init__(self, bpe: TokenIds, errors: str = "replace") -> None:
        self._bpe = bpe
        self._special = set(bpe.special_tokens.values())
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors)
        # The first id that is not special and the last one: what the bytes of the next depend on.
        self._first: list[int] = []
        self._last: list[int] = []

    def decode(self, ids: Ids, final: bool = False) -> str:
        """Return the text that has become certain; final: no ids follow. Raises as ``BPE.decode_bytes`` does."""
        given = [int(number) for number in ids]
        before = [*self._first, *self._last]
        data = self._bpe.decode_bytes([*before, *given])[len(self._bpe.decode_bytes(before)) :]
        lengths = self._bpe.tokens
        shown = [number for number in given if lengths[number]]  # without padding
        self._first = self._first or [number for number in shown if number not in self._special][:1]
        self._last = shown[-1:] or self._last
        text = self._decoder.decode(data, final)
        if final:
            self._first, self._last = [], []
            self._decoder.reset()
        return text


def decoded_pieces(decoder: IncrementalDecoder, ids: Iterable[int]) -> Iterator[str]:
    """Yield the text of ids as it becomes certain, never an empty string; at their end also what is not UTF-8."""
    for number in ids:
        if text := decoder.decode([number]):
            yield text
    if text := decoder.decode([], final=True):
        yield text
