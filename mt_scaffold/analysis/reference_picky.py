"""The plain Python reference of PickyBPE's segmentation (Chizhov et al. 2024; docs/methods.md).

As in ``reference``, it is written to be checked by eye, not to be fast: a word goes through all events, one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mt_scaffold.analysis.reference import Pair, ReferenceBPE, Survives, always
from mt_scaffold.corpus.text import SEPARATOR


class MergeEvent(NamedTuple):
    """Two tokens are merged wherever they are adjacent at this point in time, but not if they become so later."""

    left: str
    right: str

    @property
    def pair(self) -> Pair:
        """Both tokens."""
        return self.left, self.right


class SplitEvent(NamedTuple):
    """A token leaves the vocabulary: wherever it occurs at this point in time, it becomes its pieces."""

    token: str
    pieces: tuple[str, ...]


Event = MergeEvent | SplitEvent


def split_all(symbols: Sequence[str], event: SplitEvent) -> list[str]:
    """Replace every occurrence of a token by its pieces."""
    return [piece for symbol in symbols for piece in (event.pieces if symbol == event.token else (symbol,))]


class ReferencePickyBPE(ReferenceBPE):
    """Segments words by applying all learned events in order.

    The vocabulary filter is that of ``ReferenceBPE``, which treats a token that is removed at the end as scaffold.
    """

    def __init__(
        self,
        events: Iterable[Event],
        separator: str = SEPARATOR,
        vocabulary: set[str] | None = None,
        end_of_word: bool = True,
    ) -> None:
        self.events = list(events)
        standing: dict[str, bool] = {}
        for event in self.events:
            if isinstance(event, MergeEvent):
                standing[event.left + event.right] = True
            else:
                standing[event.token] = False
        merges = [event.pair for event in self.events if isinstance(event, MergeEvent)]
        removed = {token for token, stands in standing.items() if not stands}
        super().__init__(merges, removed, separator, vocabulary, end_of_word)

    def scaffolding(self, symbols: list[str], survives: Survives = always) -> list[str]:
        """Apply all events. Dropout skips each merge at each place independently, but no split."""
        for event in self.events:
            symbols = replay(symbols, event, survives)
        return symbols

    def replayed(self, symbols: list[str]) -> Iterator[tuple[int, Event, list[str]]]:
        """Yield the events that change the symbols: the number of merges up to it, the event, the symbols after it."""
        merges = 0
        for event in self.events:
            merges += isinstance(event, MergeEvent)
            after = replay(symbols, event)
            if after != symbols:
                yield merges, event, after
            symbols = after


def replay(symbols: list[str], event: Event, survives: Survives = always) -> list[str]:
    """Apply one event to symbols: a split everywhere, a merge from the left at each place where it survives."""
    if isinstance(event, SplitEvent):
        return split_all(symbols, event)
    merged, i = [], 0
    while i < len(symbols):
        if tuple(symbols[i : i + 2]) == event.pair and survives():
            merged.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            merged.append(symbols[i])
            i += 1
    return merged
