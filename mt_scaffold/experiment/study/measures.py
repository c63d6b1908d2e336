"""Segmented words → measures. docs/results/intrinsic defines each, with its source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass

from mt_scaffold.analysis.stats import TokenFigures, gini, is_utf8, renyi_efficiency
from mt_scaffold.analysis.words import boundaries, typo_cost
from mt_scaffold.experiment.study.methods import Learned, Subwords
from mt_scaffold.experiment.study.texts import Words

RENYI_POWER = 2.5


@dataclass(frozen=True)
class Measures(TokenFigures):
    """The measures of a segmented text, with those of ``stats``.

    under_10, under_100: tokens of the vocabulary that occur less often, or never; the shares are of the vocabulary.
    whole_types, whole_words: the share of distinct words, and of words, that are one subword. Only for some:
    not_utf8, not_utf8_share: imported codes. gini: parallel texts. typo_cost: text that was not learned from.
    boundary_precision, boundary_recall, boundary_f1: codes, on texts with a file of morphemes.
    """

    renyi_efficiency: float
    under_10: int
    under_100: int
    share_under_10: float
    share_under_100: float
    whole_types: float
    whole_words: float
    not_utf8: int | None = None
    not_utf8_share: float | None = None
    gini: float | None = None
    typo_cost: float | None = None
    boundary_precision: float | None = None
    boundary_recall: float | None = None
    boundary_f1: float | None = None


@dataclass(frozen=True)
class Stability:
    """Agreement of two vocabularies, learned from the even and from the odd lines of a text.

    jaccard: merged tokens in both / in either, 1 if neither has any. alike_types, alike_words: the share of distinct
    words, and of words, of the held-out text that both segment in the same way.
    """

    jaccard: float
    alike_types: float
    alike_words: float


def token_frequencies(words: Mapping[str, int], segmented: Sequence[Subwords]) -> Counter[str]:
    """Return how often each subword occurs. words: word → count. segmented: the subwords of each word, in order."""
    frequencies: Counter[str] = Counter()
    for count, subwords in zip(words.values(), segmented, strict=True):
        for subword in subwords:
            frequencies[subword] += count
    return frequencies


def measure(
    learned: Learned,
    text: Words,
    segmented: Sequence[Subwords],
    languages: Sequence[Words] = (),
    morphemes: Sequence[Sequence[str]] = (),
    typos: Mapping[tuple[str, str], int] | None = None,
) -> Measures:
    """Measure words that ``learned`` segmented.

    languages: the same text in each language. morphemes: of one word each. typos: ``with_typos`` of the text.
    """
    frequencies = token_frequencies(text.counts, segmented)
    vocabulary = learned.vocabulary(text.counts) | frequencies.keys()
    values = [frequencies[token] for token in vocabulary]
    figures = TokenFigures.of(values, text.total, text.bytes)
    under_10, under_100 = (sum(1 for value in values if value < limit) for limit in (10, 100))
    whole = [len(subwords) == 1 for subwords in segmented]
    sizes = dict(zip(text.counts, map(len, segmented), strict=True))
    costs = [sum(sizes[word] * count for word, count in each.counts.items()) for each in languages]
    incomplete = [token for token in vocabulary if not is_utf8(token)] if learned.bytes else None
    agreed = boundaries(morphemes, learned.segmenter) if morphemes and learned.segmenter is not None else None
    return Measures(
        **asdict(figures),
        renyi_efficiency=renyi_efficiency(values, RENYI_POWER),
        under_10=under_10,
        under_100=under_100,
        share_under_10=under_10 / figures.vocabulary_size,
        share_under_100=under_100 / figures.vocabulary_size,
        whole_types=sum(whole) / len(whole),
        whole_words=_share(text.counts.values(), whole),
        not_utf8=None if incomplete is None else len(incomplete),
        not_utf8_share=None if incomplete is None else sum(frequencies[token] for token in incomplete) / figures.tokens,
        gini=gini(costs) if costs else None,
        typo_cost=None if typos is None else typo_cost(text.counts, typos, learned.segment),
        boundary_precision=None if agreed is None else agreed.precision,
        boundary_recall=None if agreed is None else agreed.recall,
        boundary_f1=None if agreed is None else agreed.f1,
    )


def stability(even: Learned, odd: Learned, unseen: Words) -> Stability:
    """Compare the vocabularies learned from the two halves of a text."""
    words = list(unseen.counts)
    both, either = even.merged & odd.merged, even.merged | odd.merged
    alike = [one == other for one, other in zip(even.segment(words), odd.segment(words), strict=True)]
    return Stability(
        jaccard=len(both) / len(either) if either else 1.0,
        alike_types=sum(alike) / len(alike),
        alike_words=_share(unseen.counts.values(), alike),
    )


def _share(counts: Collection[int], chosen: Sequence[bool]) -> float:
    return sum(count for count, each in zip(counts, chosen, strict=True) if each) / sum(counts)
