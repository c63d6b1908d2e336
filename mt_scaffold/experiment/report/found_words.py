"""Translations and references → how many words of the references are translated, by their frequency in training.

A word of a reference is found if the translation of its sentence contains it; a word that the reference repeats is
found at most as often as it is in the translation. This is the recall of a class of words in compare-mt (Neubig et al.
2019, *compare-mt: A Tool for Holistic Comparison of Language Generation Systems*). The classes are decades of
frequency; the first is of words that are not in the training text. The test is that of the scores
(``significance.compare_trainings``), over trainings and sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mt_scaffold.corpus.text import words_of
from mt_scaffold.experiment.evaluation.comparison_tables import shown_interval
from mt_scaffold.experiment.evaluation.document_tests import resample_documents
from mt_scaffold.experiment.evaluation.losses.loss_split import DECADES
from mt_scaffold.experiment.evaluation.significance import Difference, compare_trainings, corrected, shown_p
from mt_scaffold.experiment.report.losses import BY_COUNT, Estimate, LossTable, estimate
from mt_scaffold.tables import decimal

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

NOTE = (
    "Words found: of those of all references, the share that the translation of the sentence has as well, in %, with "
    "intervals and p of the same kind."
)
# In fewer, a resample may have no word of the class.
_LEAST_SENTENCES = 30


@dataclass(frozen=True)
class FoundWords:
    """The words of one class, and how many of them one system finds.

    name: the decade of their count in the training text. words: in the references of the test set. percent: found, over
    the seeds. test: of ``percent`` against the baseline; None for the baseline, and if fewer than 30 sentences have
    such words.
    """

    test_set: str
    name: str
    system: str
    baseline: str | None
    words: int
    percent: Estimate
    test: Difference | None = field(metadata={"omit_none": True})


def count_found(
    translation: Sequence[str], reference: Sequence[str], class_of: Callable[[str], int], classes: int
) -> NDArray[numpy.int64]:
    """Count the words of each class in each reference, and how many of them its translation has.

    translation, reference: tokenised sentences. class_of: the number of a word's class. The result is (2, classes,
    sentences).

    >>> count_found(["a b b"], ["b a b b"], {"a": 0, "b": 1}.__getitem__, 2)[:, :, 0].tolist()
    [[1, 3], [1, 2]]
    """
    import numpy

    found = numpy.zeros((2, classes, len(reference)), numpy.int64)
    for number, (own, wanted) in enumerate(zip(translation, reference, strict=True)):
        there = Counter(words_of(own))
        for word, count in Counter(words_of(wanted)).items():
            place = class_of(word)
            found[0, place, number] += count
            found[1, place, number] += min(count, there[word])
    return found


@dataclass(frozen=True)
class Translated:
    """A test set: its tokenised references, and their translations by system and seed."""

    reference: Sequence[str]
    translations: Mapping[str, Mapping[int, Sequence[str]]]


def found_words(
    test_sets: Mapping[str, Translated],
    class_of: Callable[[str], int],
    baseline_of: Callable[[str], str | None],
    samples: int,
) -> list[FoundWords]:
    """Return how many words of each class each system finds; p is corrected over all test sets and classes.

    class_of: the number of a word's decade. baseline_of: the system that a system is tested against, or None. samples:
    the number of bootstrap resamples.
    """
    rows = [
        row for name, texts in test_sets.items() for row in _of_test_set(name, texts, class_of, baseline_of, samples)
    ]
    tests = corrected({place: row.test for place, row in enumerate(rows) if row.test is not None})
    return [replace(row, test=tests.get(place)) for place, row in enumerate(rows)]


def _of_test_set(
    test_set: str,
    texts: Translated,
    class_of: Callable[[str], int],
    baseline_of: Callable[[str], str | None],
    samples: int,
) -> Iterator[FoundWords]:
    import numpy

    counts = {
        system: numpy.stack([count_found(lines, texts.reference, class_of, len(DECADES)) for lines in seeds.values()])
        for system, seeds in texts.translations.items()
    }
    words = next(iter(counts.values()))[0, 0]
    for place, sizes in enumerate(words):
        if not sizes.any():
            continue
        resampled: dict[str, Any] = {}
        if numpy.count_nonzero(sizes) >= _LEAST_SENTENCES:
            found = numpy.concatenate([100.0 * each[:, 1, place] for each in counts.values()])
            drawn = iter(resample_documents(found, sizes.astype(numpy.float64), samples))
            resampled = {system: [next(drawn) for _ in seeds] for system, seeds in texts.translations.items()}
        for system, seeds in texts.translations.items():
            shares = 100 * counts[system][:, 1, place].sum(axis=1) / sizes.sum()
            percent = estimate({str(seed): float(share) for seed, share in zip(seeds, shares, strict=True)})
            baseline = baseline_of(system)
            tested = system in resampled and baseline in resampled
            test = compare_trainings(resampled[system], resampled[str(baseline)]) if tested else None
            yield FoundWords(test_set, DECADES[place], system, baseline, int(sizes.sum()), percent, test)


def found_tables(rows: Sequence[FoundWords]) -> list[LossTable]:
    """Return a table for each test set: a row per class, a column per system."""
    tables = []
    for test_set in dict.fromkeys(row.test_set for row in rows):
        own = [row for row in rows if row.test_set == test_set]
        systems = list(dict.fromkeys(row.system for row in own))
        tested = [name for name in systems if any(row.system == name and row.test is not None for row in own)]
        baselines = {row.system: row.baseline for row in own}
        heading = [BY_COUNT, "words", *(f"{name}, %" for name in systems)]
        for name in tested:
            heading += [f"{name} - {baselines[name]}", "95 % interval", "p, Holm"]
        table = [heading]
        for decade in dict.fromkeys(row.name for row in own):
            chosen = {row.system: row for row in own if row.name == decade}
            line = [decade, f"{chosen[systems[0]].words:,}", *(decimal(chosen[name].percent.mean) for name in systems)]
            for name in tested:
                test = chosen[name].test
                line += (
                    ["", "", ""]
                    if test is None
                    else [decimal(test.difference, signed=True), shown_interval(test), shown_p(test.p_holm)]
                )
            table.append(line)
        tables.append(LossTable(f"Words of the references that are found in the translations: {test_set}", table))
    return tables
