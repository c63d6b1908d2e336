"""The plain Python reference of PickyBPE, to be read alongside its paper (Chizhov et al. 2024) and docs/methods.md.

As in ``reference``, everything is written to be checked by eye, not to be fast: frequencies are recounted
in every iteration, and a word goes through all events, one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mt_scaffold.analysis.reference import (
    Pair,
    ReferenceBPE,
    Survives,
    always,
    base_symbols,
    pair_frequencies,
    replace_all,
    token_frequencies,
)
from mt_scaffold.corpus.text import END_OF_WORD, SEPARATOR, is_base_symbol
from mt_scaffold.methods.trace import Step


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


@dataclass
class LearnedPicky:
    """The result of learning: merges and splits in order, every step, and the merged tokens that remain at the end."""

    events: list[Event] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    vocabulary: set[str] = field(default_factory=set)  # without the base symbols
    restored: int = 0
    exhausted: bool = False  # no pair reached the minimum frequency before N was reached


def learn_picky(
    word_counts: Mapping[str, int],
    symbols: int,
    threshold: float = 0.9,
    min_frequency: int = 2,
    end_of_word: bool = True,
    given: Iterable[Event] = (),
) -> LearnedPicky:
    """Learn merges and splits from word counts until there are ``symbols`` merged tokens (section 3 of the paper).

    threshold: a part of a merge is removed if at least this share of its occurrences is in the merge. given: earlier
    events, perhaps from another text; tokens that exist after them are neither counted nor removed.
    """
    text = [(base_symbols(word, end_of_word), count) for word, count in word_counts.items()]
    learned = LearnedPicky()
    vocabulary = learned.vocabulary
    last_merge: dict[str, Pair] = {}  # of every token that was ever made
    old: set[str] = set()
    for event in given:
        text = [(replay(word, event), count) for word, count in text]
        learned.events.append(event)
        if isinstance(event, MergeEvent):
            last_merge[event.left + event.right] = event.pair
            old.add(event.left + event.right)
        else:
            old.remove(event.token)

    def take_apart(token: str) -> list[str]:
        """Return the parts of the merge that last made a token; those not in the vocabulary are taken apart as well."""
        known = [part in vocabulary | old or is_base_symbol(part, end_of_word) for part in last_merge[token]]
        pairs = zip(last_merge[token], known, strict=True)
        return [piece for part, is_known in pairs for piece in ([part] if is_known else take_apart(part))]

    while len(vocabulary) < symbols:
        pairs = pair_frequencies(text)
        allowed = [pair for pair in pairs if not (end_of_word and spells_out_end_of_word(pair))]
        head = max(allowed, key=lambda pair: (pairs[pair], pair), default=None)
        if head is None or pairs[head] < min_frequency:
            learned.exhausted = True
            break
        a, b = head
        t = a + b
        before = token_frequencies(text)
        text = [(replace_all(word, head), count) for word, count in text]
        after = token_frequencies(text)
        learned.events.append(MergeEvent(a, b))
        returned = (t, after[t]) if t in last_merge and t not in vocabulary | old else None
        learned.restored += returned is not None
        last_merge[t] = head
        vocabulary |= {t} - old

        # Intersection over self: the share of a part that is now in the merge. Base symbols are not in `vocabulary`.
        intermediate = [
            part
            for part in dict.fromkeys(head)
            if part in vocabulary and (before[part] - after[part]) / before[part] >= threshold
        ]
        removed = []
        for part in intermediate:
            vocabulary.remove(part)
            removed.append((part, token_frequencies(text)[part]))
            event = SplitEvent(part, tuple(take_apart(part)))
            learned.events.append(event)
            text = [(split_all(word, event), count) for word, count in text]
        learned.steps.append(Step(a, b, pairs[head], None, tuple(removed), returned))

    return learned


def spells_out_end_of_word(pair: Pair) -> bool:
    """Return whether letters of the text would make a token that looks word-final; such a pair is never merged."""
    return (pair[0] + pair[1]).endswith(END_OF_WORD) and not pair[1].endswith(END_OF_WORD)


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

    def dropout_distribution(self, word: str, dropout: float) -> dict[tuple[str, ...], float]:
        """Return every segmentation of a (short) word under BPE-dropout, with its exact probability."""
        states: dict[tuple[str, ...], float] = {tuple(base_symbols(word, self.end_of_word)): 1.0}
        for event in self.events:
            following: Counter[tuple[str, ...]] = Counter()
            for symbols, probability in states.items():
                for after, share in _outcomes(list(symbols), event, dropout):
                    following[after] += probability * share  # type: ignore[assignment]
            states = dict(following)
        result: Counter[tuple[str, ...]] = Counter()
        for symbols, probability in states.items():
            result[(*symbols[:-1], self._without_mark(symbols[-1]))] += probability  # type: ignore[assignment]
        return dict(result)


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
