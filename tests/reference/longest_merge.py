"""The plain Python reference of longest-merge inference: at each step the merge that makes the longest token."""

from __future__ import annotations

from mt_scaffold.analysis.reference import ReferenceBPE
from mt_scaffold.corpus.text import END_OF_WORD


class LongestMergeBPE(ReferenceBPE):
    """Segments words, applying the merge of the most base symbols first; only the steps of scaffolding differ.

    >>> LongestMergeBPE([("a", "b"), ("c", "d"), ("ab", "c")]).segment("abcde")
    'abc@@ d@@ e'
    """

    def _step(self, symbols: list[str], candidates: list[tuple[int, int]]) -> list[str]:
        """Replace one candidate: that of the longest token, then of the lowest rank, then the leftmost."""

        def order(candidate: tuple[int, int]) -> tuple[int, int, int]:
            rank, i = candidate
            return -self._length(symbols[i] + symbols[i + 1]), rank, i

        _, i = min(candidates, key=order)
        return [*symbols[:i], symbols[i] + symbols[i + 1], *symbols[i + 2 :]]

    def _length(self, token: str) -> int:
        """Return the number of base symbols of a token, without the end-of-word marker."""
        return len(token.removesuffix(END_OF_WORD) if self.end_of_word else token)
