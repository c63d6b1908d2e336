"""Tokens and their order, or merges, of another program → the merges that its BPE can apply.

A merge of two symbols is applied only if its token's string, segmented by itself, reaches exactly those two symbols:
merging within a span of text depends on that span alone until something is merged across its ends, and then its token
is not made there. So at most one merge makes a token, whatever other pairs spell it, and the others can be left out. If
every token comes after those that it is made of, merging one place at a time, as these programs do, gives the same
result as merging all places of a rank at once, as codes mean it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TypeVar

Text = TypeVar("Text", str, bytes)


def last_parts(symbols: Sequence[Text], rank: Callable[[Text, Text], int | None]) -> list[Text]:
    """Merge the leftmost pair of the lowest rank, one by one, until two symbols are left or no pair has a rank.

    rank: of the merge of two symbols, None if they do not merge.
    """
    # A part that was merged into its left neighbour becomes empty.
    parts: list[Text] = list(symbols)
    end = remaining = len(parts)
    before, after = list(range(-1, end - 1)), list(range(1, end + 1))
    # Of each part with the next; the heap may also hold outdated ones.
    ranks = [*(rank(left, right) for left, right in pairwise(parts)), None]
    heap = [(each, at) for at, each in enumerate(ranks) if each is not None]
    heapify(heap)
    while remaining > 2 and heap:
        best, at = heappop(heap)
        if ranks[at] != best:
            continue
        taken = after[at]
        parts[at], parts[taken] = parts[at] + parts[taken], parts[taken][:0]
        ranks[at] = ranks[taken] = None
        after[at] = after[taken]
        remaining -= 1
        if after[at] < end:
            before[after[at]] = at
        for left, right in ((before[at], at), (at, after[at])):
            if left >= 0 and right < end:
                found = ranks[left] = rank(parts[left], parts[right])
                if found is not None:
                    heappush(heap, (found, left))
    return [part for part in parts if part]


def merges_of_ranks(
    ranks: Mapping[Text, int], symbols: Callable[[Text], Sequence[Text]]
) -> tuple[list[tuple[Text, Text]], list[Text]]:
    """Return the merges of a program in which any two symbols that spell a token merge, the lowest rank first.

    ranks: of the tokens, including base symbols. symbols: the base symbols of a token.

    Returns the merges in order, and the tokens of several symbols that no merge makes.
    """

    def rank(left: Text, right: Text) -> int | None:
        return ranks.get(left + right)

    merges, unmade = [], []
    for token in sorted(ranks, key=ranks.__getitem__):
        base = symbols(token)
        if len(base) > 1:
            parts = last_parts(base, rank)
            if len(parts) == 2:
                merges.append((parts[0], parts[1]))
            else:
                unmade.append(token)
    return merges, unmade


def applied_merges(merges: Iterable[tuple[str, str]], symbols: Callable[[str], Sequence[str]]) -> list[tuple[str, str]]:
    """Return the merges of a list that are ever applied, in order; symbols: the base symbols of a token."""
    ranks: dict[tuple[str, str], int] = {}
    for pair in merges:
        ranks.setdefault(pair, len(ranks))

    def rank(left: str, right: str) -> int | None:
        return ranks.get((left, right))

    return [(left, right) for left, right in ranks if last_parts(symbols(left + right), rank) == [left, right]]


def first_out_of_order(merges: Iterable[tuple[Text, Text]]) -> tuple[Text, Text] | None:
    """Return the first merge with a symbol that is neither a single one nor made before; None if there is none."""
    made: set[Text] = set()
    for left, right in merges:
        if not all(len(part) == 1 or part in made for part in (left, right)):
            return left, right
        made.add(left + right)
    return None
