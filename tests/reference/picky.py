"""The plain Python reference of learning PickyBPE, to be read alongside its paper (Chizhov et al. 2024).

It is written to be checked by eye, not to be fast: frequencies are recounted in every iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mt_scaffold.analysis.reference import Pair, base_symbols, pair_frequencies, replace_all, token_frequencies
from mt_scaffold.analysis.reference_picky import Event, MergeEvent, SplitEvent, replay, split_all
from mt_scaffold.corpus.text import END_OF_WORD, is_base_symbol
from mt_scaffold.methods.trace import Step


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
