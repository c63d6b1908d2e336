"""The common interface of segmenters, from words to subwords and ids, whatever the method."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from mt_scaffold.segment.draw import NO_DRAW, Draw

if TYPE_CHECKING:
    from mt_scaffold._core import WordCounts


class CountedSubwords(Protocol):
    """Subwords and their counts."""

    def items(self) -> ItemsView[str, int] | list[tuple[str, int]]:
        """Each subword with its count."""

    def total(self) -> int:
        """The sum of all counts."""


class SentenceEncoder(Protocol):
    """Segments sentences straight into ids."""

    def ids_of(
        self, sentences: Sequence[str] | Sequence[bytes], draw: Draw = NO_DRAW, indices: Sequence[int] = ()
    ) -> tuple[memoryview, memoryview]:
        """Return the ids of all sentences (int32), and their offsets (int64), one more than there are sentences.

        The segmentation of a sentence depends only on ``draw`` and on its index, which is its position unless
        ``indices`` are given.
        """


class Segmenter(Protocol):
    """Segments words into subwords, which are written as in a text of subwords, separated by spaces."""

    def segment(self, sentence: str) -> str:
        """Return the subwords of a sentence."""

    def surface_forms(self) -> list[str]:
        """Return every subword that can come out, except characters that were not in the text learned from."""

    def count_subwords(self, counts: WordCounts) -> CountedSubwords:
        """Count the subwords of counted words."""

    def reachable_by(self, draw: Draw, counts: WordCounts) -> Iterable[str]:
        """Return every subword with an id that this draw can make of counted words, and no other."""

    def can_have_id(self, subword: str) -> bool:
        """Return whether a subword that ``segment`` gives can be in a dictionary; others are unknown by nature."""

    def encoder(self, dictionary: Mapping[str, int], unknown: int) -> SentenceEncoder:
        """Return an encoder into ids; dictionary: subword → id; unknown: the id of every other subword."""
