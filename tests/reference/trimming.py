"""The plain Python reference of marking tokens as scaffold (``methods.trimming``), with ``analysis.reference``.

Written to be checked by eye: the text is segmented word by word in every round, and merges are recounted at each step.
A word is a string, as in ``mt_scaffold.analysis.reference``.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from mt_scaffold.analysis.reference import Pair, ReferenceBPE, base_symbols, replace_all
from mt_scaffold.corpus.text import END_OF_WORD, is_base_symbol


def trimmed(word: str, merges: Sequence[Pair], kept: set[str], end_of_word: bool = True) -> list[str]:
    """Segment a word with vocabulary trimming: BPE first, then each subword that is not kept is taken apart again.

    kept: the remaining vocabulary. A subword outside it becomes the two symbols of the (first) merge that made it,
    recursively, until each part is in the vocabulary or a base symbol (Cognetta et al. 2024).

    >>> trimmed("low", [("l", "o"), ("lo", "w</w>")], {"lo"})
    ['lo', 'w</w>']
    """
    made_by: dict[str, Pair] = {}
    for pair in merges:
        made_by.setdefault(pair[0] + pair[1], pair)

    def taken_apart(subword: str) -> list[str]:
        if subword in kept or subword not in made_by or is_base_symbol(subword, end_of_word):
            return [subword]
        left, right = made_by[subword]
        return taken_apart(left) + taken_apart(right)

    symbols = ReferenceBPE(merges, end_of_word=end_of_word).scaffolding(base_symbols(word, end_of_word))
    return [part for symbol in symbols for part in taken_apart(symbol)]


def frequencies(
    word_counts: Mapping[str, int], merges: Sequence[Pair], scaffold: set[str], end_of_word: bool = True
) -> Counter[str]:
    """Return how often each token occurs in the text as these codes segment it; word-final ones carry ``</w>``."""
    bpe = ReferenceBPE(merges, scaffold, end_of_word=end_of_word)
    found: Counter[str] = Counter()
    for word, count in word_counts.items():
        *inner, last = bpe.segment_word(word)
        for token in [*inner, last + END_OF_WORD * end_of_word]:
            found[token] += count
    return found


def inside(token: str, merges: Sequence[Pair]) -> Counter[str]:
    """Count the parts of a token, by the first merge that makes it and, recursively, those of its parts."""
    for left, right in merges:
        if left + right == token:
            return Counter([left, right]) + inside(left, merges) + inside(right, merges)
    return Counter()


def places(token: str, merges: Sequence[Pair]) -> list[tuple[str, int, int]]:
    """Return a token and each of its parts, by the first merges, with the range of its symbols (first, end)."""
    for left, right in merges:
        if left + right == token:
            before, after = places(left, merges), places(right, merges)
            cut = before[0][2]
            shifted = [(part, begin + cut, end + cut) for part, begin, end in after]
            return [(token, 0, shifted[0][2]), *before, *shifted]
    return [(token, 0, 1)]


def neighbour_entropies(
    word_counts: Mapping[str, int], merges: Sequence[Pair], scaffold: set[str], end_of_word: bool = True
) -> dict[str, tuple[float, float]]:
    """Return token → the entropy in bits of its left and of its right neighbours within words, wherever it occurs."""
    bpe = ReferenceBPE(merges, scaffold, end_of_word=end_of_word)
    left: dict[str, Counter[str]] = {}
    right: dict[str, Counter[str]] = {}
    for word, count in word_counts.items():
        *inner, last = bpe.segment_word(word)
        begin = 0
        for token in [*inner, last + END_OF_WORD * end_of_word]:
            inside_it = places(token, merges)
            for part, first, end in inside_it:
                before = word[begin + first - 1] if begin + first else ""
                left.setdefault(part, Counter())[before] += count
                right.setdefault(part, Counter())[word[begin + end : begin + end + 1]] += count
            begin += inside_it[0][2]

    def entropy(counts: Counter[str]) -> float:
        total = counts.total()
        return math.fsum(count / total * math.log2(total / count) for count in counts.values())

    return {token: (entropy(left[token]), entropy(right[token])) for token in left}


def mark(
    word_counts: Mapping[str, int],
    merges: Sequence[Pair],
    scaffold: Iterable[str] = (),
    below: int | None = None,
    ratio: float | None = None,
    tokens: Iterable[str] = (),
    end_of_word: bool = True,
    entropy: float | None = None,
) -> set[str]:
    """Return all scaffold tokens afterwards: those from before, those listed, and those that a rule marks."""
    marked = {*scaffold, *tokens}
    own = frequencies(word_counts, merges, marked, end_of_word)
    sides = {} if entropy is None else neighbour_entropies(word_counts, merges, marked, end_of_word)
    total = Counter(own)
    for token, count in own.items():
        for part, times in inside(token, merges).items():
            total[part] += times * count
    for token in {left + right for left, right in merges} - marked:
        if is_base_symbol(token, end_of_word):
            continue
        rare = below is not None and own[token] < below
        wasted = ratio is not None and total[token] > 0 and own[token] / total[token] < ratio
        if wasted and entropy is not None:
            wasted = max(sides[token]) <= entropy
        if rare or wasted:
            marked.add(token)
    return marked


def learn_on(
    word_counts: Mapping[str, int],
    merges: Sequence[Pair],
    more: int,
    min_frequency: int = 2,
    end_of_word: bool = True,
) -> tuple[list[Pair], bool]:
    """Replay ``merges`` and learn more; return all merges, and whether learning stopped early for lack of pairs."""
    text = [(base_symbols(word, end_of_word), count) for word, count in word_counts.items()]
    learned = list(merges)
    for pair in merges:
        text = [(replace_all(word, pair), count) for word, count in text]
    for _ in range(more):
        pairs: Counter[Pair] = Counter()
        for word, count in text:
            for found in itertools.pairwise(word):
                pairs[found] += count
        best = max(pairs, key=lambda pair: (pairs[pair], pair), default=None)
        if best is None or pairs[best] < min_frequency:
            return learned, True
        text = [(replace_all(word, best), count) for word, count in text]
        learned.append(best)
    return learned, False


def refill(
    word_counts: Mapping[str, int],
    merges: Sequence[Pair],
    symbols: int,
    scaffold: Iterable[str] = (),
    below: int | None = None,
    ratio: float | None = None,
    tokens: Iterable[str] = (),
    min_frequency: int = 2,
    end_of_word: bool = True,
) -> tuple[list[Pair], set[str]]:
    """Mark, then learn as many merges as normal tokens are missing, and repeat until there are ``symbols`` of them."""
    made, marked, exhausted = list(merges), {*scaffold, *tokens}, False
    while True:
        marked = mark(word_counts, made, marked, below, ratio, (), end_of_word)
        normal = {a + b for a, b in made if not is_base_symbol(a + b, end_of_word)} - marked
        if exhausted or len(normal) >= symbols:
            return made, marked
        least = max(min_frequency, below or 0)
        made, exhausted = learn_on(word_counts, made, symbols - len(normal), least, end_of_word)
