"""The plain Python reference of parity-aware BPE, to be read alongside its paper (Foroutan et al. 2025).

As in ``analysis.reference``, everything is written to be checked by eye, not to be fast: all is recounted in every
iteration. The merges are applied like any BPE codes (``mt_scaffold.analysis.reference.ReferenceBPE``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from mt_scaffold.analysis.reference import LearningText, Pair, base_symbols, pair_frequencies, replace_all


class ParityStep(NamedTuple):
    """One merge: the pair, its frequency in the chosen language, that language, the tokens of each language before it.

    language: counted from 0; None for a global merge, whose frequency is that in all languages together.
    """

    left: str
    right: str
    frequency: int
    language: int | None
    lengths: tuple[int, ...]


@dataclass
class LearnedParity:
    """The result of learning: the steps in order, whether it ended early, and at which language."""

    steps: list[ParityStep] = field(default_factory=list)
    exhausted: bool = False  # no pair of the chosen language reached the minimum frequency
    exhausted_language: int | None = None

    @property
    def merges(self) -> list[Pair]:
        """The merges in order."""
        return [(step.left, step.right) for step in self.steps]


def learn_parity(
    training: Sequence[Mapping[str, int]],
    symbols: int,
    development: Sequence[Mapping[str, int]] | None = None,
    min_frequency: int = 2,
    global_merges: int = 0,
    window: int | None = None,
    alpha: Fraction = Fraction(2),
    end_of_word: bool = True,
) -> LearnedParity:
    """Learn merges from the word counts of each language, each merge for the language that is compressed worst.

    development: the word counts of a text that says the same in each language; None if ``training`` does.
    global_merges: how many of the first merges are those of BPE (the hybrid variant).
    window, alpha: a language is passed over while it has had more than ``alpha`` times its even share of the last
    ``window`` choices (the moving-window variant).
    """
    texts = [_laid_out(counts, end_of_word) for counts in training]
    parallel = texts if development is None else [_laid_out(counts, end_of_word) for counts in development]
    learned = LearnedParity()
    choices: list[int] = []

    while len(learned.steps) < symbols:
        lengths = tuple(sum(len(word) * count for word, count in text) for text in parallel)
        language = None
        if len(learned.steps) >= global_merges:
            recent = Counter(choices[-window:] if window else [])
            allowed = [
                each for each in range(len(texts)) if not window or Fraction(recent[each], window) <= alpha / len(texts)
            ]
            # The texts say the same, so the language with most tokens is compressed worst; ties go to the first.
            language = max(allowed, key=lambda each: (lengths[each], -each))
            choices.append(language)

        pairs: Counter[Pair] = Counter()
        for text in texts if language is None else [texts[language]]:
            pairs.update(pair_frequencies(text))
        head = max(pairs, key=lambda pair: (pairs[pair], pair), default=None)
        if head is None or pairs[head] < min_frequency:
            learned.exhausted, learned.exhausted_language = True, language
            break
        learned.steps.append(ParityStep(*head, pairs[head], language, lengths))
        for text in texts if parallel is texts else [*texts, *parallel]:
            text[:] = [(replace_all(word, head), count) for word, count in text]

    return learned


def _laid_out(counts: Mapping[str, int], end_of_word: bool) -> LearningText:
    return [(base_symbols(word, end_of_word), count) for word, count in counts.items()]
