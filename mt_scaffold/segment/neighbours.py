"""Counted words + codes → the entropy of the symbols next to each token."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from mt_scaffold import _core
from mt_scaffold.codes import AnyMerge, Codes
from mt_scaffold.corpus.text import END_OF_WORD
from mt_scaffold.segment.apply import BPE
from mt_scaffold.segment.frequencies import INSIDE, symbols_of

# By token: how often each symbol occurs next to it.
_Neighbours = Mapping[str, Counter[str]]
# The neighbour where a word begins or ends.
_EDGE = ""


def neighbour_entropies(codes: Codes, counts: _core.WordCounts) -> dict[str, tuple[float, float]]:
    """Return for each token the entropy, in bits, of the base symbol on its left and of that on its right.

    counts: words, to be segmented with ``codes``. All occurrences of a token count, also those inside longer tokens,
    which are followed down their first merges; the edge of a word is one more symbol.
    """
    left, right = _of_subwords(codes, counts)
    _spread(left, right, codes.merges)
    tokens = dict.fromkeys([*left, *right])
    return {token: (entropy(left[token].values()), entropy(right[token].values())) for token in tokens}


def entropy(counts: Iterable[int]) -> float:
    """Return the entropy of counted outcomes in bits.

    >>> entropy([2, 1, 1])
    1.5
    """
    listed = [count for count in counts if count]
    total = sum(listed)
    return max(0.0, math.fsum(count / total * math.log2(total / count) for count in listed)) if total else 0.0


def _of_subwords(codes: Codes, counts: _core.WordCounts) -> tuple[_Neighbours, _Neighbours]:
    """Return the left and right neighbours of the subwords of the segmented text."""
    header = codes.header
    bpe = BPE(codes, separator=INSIDE) if header.end_of_word else BPE(codes)
    left: defaultdict[str, Counter[str]] = defaultdict(Counter)
    right: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for word, count in counts.byte_items():
        tokens, before = [], _EDGE
        for subword in bpe.segment_tokens([word]):
            symbols, final = symbols_of(subword.decode("utf-8", "surrogateescape"), header)
            tokens.append((symbols + END_OF_WORD if final else symbols, symbols))
        for place, (token, symbols) in enumerate(tokens):
            left[token][before] += count
            right[token][tokens[place + 1][1][0] if place + 1 < len(tokens) else _EDGE] += count
            before = symbols[-1]
    return left, right


def _spread(left: _Neighbours, right: _Neighbours, merges: Iterable[AnyMerge]) -> None:
    """Add the neighbours of tokens inside longer ones."""
    parts: dict[str, tuple[str, str]] = {}
    for first, second, _ in merges:
        parts.setdefault(first + second, (first, second))
    for token in sorted(parts, key=len, reverse=True):  # a token before its parts
        first, second = parts[token]
        times = left[token].total()
        left[first].update(left[token])
        right[first][second[0]] += times
        left[second][first[-1]] += times
        right[second].update(right[token])
