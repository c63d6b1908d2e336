"""The exact probability of every segmentation of a word under BPE-dropout, by enumerating what may be skipped."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from mt_scaffold.analysis.reference import ReferenceBPE, base_symbols
from mt_scaffold.analysis.reference_picky import Event, ReferencePickyBPE, SplitEvent, split_all


def dropout_distribution(reference: ReferenceBPE, word: str, dropout: float) -> dict[tuple[str, ...], float]:
    """Return the segmentations of a (short) word, each with its probability."""
    symbols, result = tuple(base_symbols(word, reference.end_of_word)), Counter[tuple[str, ...]]()
    if isinstance(reference, ReferencePickyBPE):
        found = _of_events(reference, symbols, dropout)
    else:
        found = _of_merges(reference, symbols, dropout)
    for last, probability in found:
        # Splits are events of PickyBPE; its tokens are not demolished.
        picky = isinstance(reference, ReferencePickyBPE)
        pieces = [*last] if picky else [piece for symbol in last for piece in reference.demolish(symbol)]
        result[(*pieces[:-1], reference.without_mark(pieces[-1]))] += probability  # type: ignore[assignment]
    return dict(result)


def _of_merges(
    reference: ReferenceBPE, symbols: tuple[str, ...], dropout: float
) -> Iterator[tuple[tuple[str, ...], float]]:
    pairs = reference.pairs_in_codes([*symbols])
    for outcomes in itertools.product([True, False], repeat=len(pairs)):
        weight = 1.0
        for survives in outcomes:
            weight *= (1 - dropout) if survives else dropout
        candidates = list(itertools.compress(pairs, outcomes))
        if not weight:
            continue
        if not candidates:
            yield symbols, weight
            continue
        # One step of scaffolding with these outcomes; then all outcomes are drawn again.
        for found, share in _of_merges(reference, tuple(reference.step([*symbols], candidates)), dropout):
            yield found, weight * share


def _of_events(
    reference: ReferencePickyBPE, symbols: tuple[str, ...], dropout: float
) -> Iterator[tuple[tuple[str, ...], float]]:
    states = {symbols: 1.0}
    for event in reference.events:
        following = Counter[tuple[str, ...]]()
        for state, probability in states.items():
            for after, share in _outcomes([*state], event, dropout):
                following[after] += probability * share  # type: ignore[assignment]
        states = dict(following)
    yield from states.items()


def _outcomes(symbols: list[str], event: Event, dropout: float) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield each possible result of an event under dropout, with its probability."""
    if isinstance(event, SplitEvent):
        yield tuple(split_all(symbols, event)), 1.0
        return
    places = [i for i in range(len(symbols) - 1) if tuple(symbols[i : i + 2]) == event.pair]
    if not places:
        yield tuple(symbols), 1.0
        return
    i = places[0]
    for rest, share in _outcomes(symbols[i + 2 :], event, dropout):
        yield (*symbols[:i], symbols[i] + symbols[i + 1], *rest), (1 - dropout) * share
    for rest, share in _outcomes(symbols[i + 1 :], event, dropout):
        yield (*symbols[: i + 1], *rest), dropout * share
