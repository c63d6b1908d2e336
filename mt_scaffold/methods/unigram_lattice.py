"""Sample a segmentation of a word from weighted pieces: subword regularisation (Kudo 2018).

SentencePiece samples with one random generator for all threads, so its results depend on everything drawn before. This
module samples from the same distribution with the caller's generator.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

# SentencePiece's penalty for an unknown character, below the lowest score of a piece.
_UNKNOWN_PENALTY = 10.0


@dataclass(frozen=True)
class Pieces:
    """The pieces that words are made of.

    scores: piece → id and natural logarithm of its probability. unknown: the id of a character without a piece.
    """

    scores: Mapping[str, tuple[int, float]]
    unknown: int

    @property
    def longest(self) -> int:
        """The length of the longest piece, in characters."""
        return max(map(len, self.scores), default=1)

    @property
    def unknown_score(self) -> float:
        """The score of a character without a piece."""
        return min((score for _, score in self.scores.values()), default=0.0) - _UNKNOWN_PENALTY


# For each position: the cumulative probabilities of the pieces that can end there, given the text up to it; where each
# begins; its id.
Lattice = list[tuple[list[float], list[int], list[int]]]


def join_unknown(text: str, pieces: Container[str]) -> str:
    """Return a word in which only the first of each run of unknown characters is left, as in SentencePiece."""
    if all(map(pieces.__contains__, text)):
        return text
    runs = itertools.groupby(text, pieces.__contains__)
    return "".join("".join(run) if known else next(run) for known, run in runs)


class LatticeMaker:
    """Makes the lattices of words for one exponent.

    A segmentation x is drawn with the probability P(x)^alpha / Σ P(x')^alpha over all segmentations x' of the word,
    where P(x) is the product of the probabilities of its pieces (Kudo 2018, section 3.3, with l = ∞).
    """

    def __init__(self, pieces: Pieces, alpha: float) -> None:
        self._scores = pieces.scores
        self._unknown = (pieces.unknown, pieces.unknown_score)
        self._longest = pieces.longest
        self._alpha = alpha

    def make(self, text: str) -> Lattice:
        """Return the lattice of a word (with U+2581 before it): forward filtering."""
        text = join_unknown(text, self._scores)
        log_sums = [0.0]
        lattice: Lattice = [([], [], [])]
        for end in range(1, len(text) + 1):
            begins, ids, weights = [], [], []
            for begin in range(max(0, end - self._longest), end):
                found = self._scores.get(text[begin:end])
                if found is None and begin == end - 1:
                    found = self._unknown
                if found is not None:
                    begins.append(begin)
                    ids.append(found[0])
                    weights.append(self._alpha * found[1] + log_sums[begin])
            highest = max(weights)
            total = math.fsum(math.exp(weight - highest) for weight in weights)
            log_sums.append(highest + math.log(total))
            lattice.append(
                ([*itertools.accumulate(math.exp(weight - highest) / total for weight in weights)], begins, ids)
            )
        return lattice


def sample(lattice: Lattice, random: Callable[[], float]) -> list[int]:
    """Return the ids of the pieces of one segmentation: backward sampling; random: draws from [0, 1)."""
    ids = []
    end = len(lattice) - 1
    while end:
        cumulative, begins, pieces = lattice[end]
        # The last sum can fall short of 1 by rounding.
        chosen = bisect(cumulative, random(), 0, len(cumulative) - 1) if len(cumulative) > 1 else 0
        ids.append(pieces[chosen])
        end = begins[chosen]
    ids.reverse()
    return ids
