"""The split losses of all trainings → tables that show where one system's loss is lower than another's.

The bits of every part are divided by all bytes of the test set, so that the parts of a system add up to its bits per
byte and their differences to the difference. The tests are those of the scores (``significance.compare_trainings``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Literal

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.evaluation.comparison_tables import shown_interval
from mt_scaffold.experiment.evaluation.document_tests import resample_documents
from mt_scaffold.experiment.evaluation.losses.loss_split import (
    ACROSS,
    DECADES,
    END,
    FREQUENT,
    OTHER,
    LossSplit,
    Part,
    TokenClass,
    decade,
    token_classes,
)
from mt_scaffold.experiment.evaluation.significance import (
    LEVEL,
    TRAININGS_FOR_P,
    Difference,
    compare_trainings,
    corrected,
    shown_p,
    t_quantile,
)
from mt_scaffold.experiment.runtime.results import read_result
from mt_scaffold.tables import decimal

NOTE = (
    "Bits per byte of the words of each class, and what the class adds to the difference in bits per byte of the whole "
    "text: the differences of one partition add up to that of the scores."
)
LEFT_OUT_NOTE = (
    "References with <unk> in the dictionary of any system are left out of the losses of words, as of the scores: {}."
)
TOKENS_NOTE = (
    "Tokens are those of each system, so that classes of two systems hold different text. Removed: tokens of {bpe} "
    "that the other system lacks; new: the reverse. Occurrences: in an epoch of the text that the model learns to "
    "write, with resampling if it has any. Means over the seeds with their 95 % intervals."
)
_RANK, BY_COUNT = "frequency", "occurrences in the training text"
_PARTITIONS: dict[str, Sequence[str]] = {_RANK: [FREQUENT, OTHER], BY_COUNT: DECADES}
SHARED, REMOVED, NEW = "shared", "removed", "new"


@dataclass(frozen=True)
class Estimate:
    """A figure over the seeds: its mean, the 95 % interval of the mean (None for one seed), and its value per seed."""

    mean: float
    low: float | None
    high: float | None
    by_seed: dict[str, float]


@dataclass(frozen=True)
class WordRow:
    """One class of words in the loss of one system.

    partition: the criterion of the classes. words: occurrences in the test set. bytes: of these words. bits_per_byte:
    their bits by their own bytes; None for the ends. share: their bits by all bytes of the test set. test: of ``share``
    against the baseline; None for the baseline itself, and for a test set of one segment.
    """

    group: str
    test_set: str
    partition: str
    name: str
    system: str
    baseline: str | None
    words: int
    bytes: int
    bits_per_byte: Estimate | None
    share: Estimate
    test: Difference | None = field(metadata={"omit_none": True})


@dataclass(frozen=True)
class TokenRow:
    """One class of tokens in the loss of one system.

    partition: the decades of their occurrences, or the system that its vocabulary is compared with. kinds: distinct
    tokens of the vocabulary. share: their bits by all bytes of the test set. bits_per_token: None if none occurs.
    """

    group: str
    test_set: str
    system: str
    partition: str
    name: str
    kinds: int
    occurrences: int
    bits_per_token: Estimate | None
    share: Estimate


@dataclass(frozen=True)
class LossTables:
    """The split losses of all systems.

    unit: the resampled unit of the tests. without_words: why ``words`` is incomplete, or None. left_out: test set → how
    many of its references have ``<unk>`` in a system; ``words`` does not count them.
    """

    unit: Literal["document", "sentence"]
    words: list[WordRow]
    tokens: list[TokenRow]
    without_words: str | None = field(metadata={"omit_none": True})
    left_out: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TokensOfSystem:
    """The vocabulary of a system: the token of each id, and how often the model learns to write it in an epoch."""

    names: Mapping[int, str]
    counts: Mapping[int, float]


@dataclass(frozen=True)
class Training:
    """The file of the split loss of one training. group: of systems that are compared with each other; may be empty."""

    group: str
    system: str
    path: Path


def loss_tables(
    trainings: Sequence[Training],
    vocabularies: Mapping[str, TokensOfSystem],
    baseline_of: Callable[[str], str | None],
    samples: int,
) -> LossTables:
    """Return the tables of the split losses of an experiment.

    vocabularies: of each system. baseline_of: the system that a system is tested against; None for the baseline itself.
    samples: the number of bootstrap resamples.

    Raises MTScaffoldError if a file is missing or malformed, or the splits of one test set are of different text.
    """
    cells: dict[tuple[str, str], dict[str, list[LossSplit]]] = {}
    for training in trainings:
        split = read_result(LossSplit, training.path)
        systems = cells.setdefault((training.group, split.test_set), {})
        first = next(iter(systems.values()))[0] if systems else split
        if (split.data_sha256, split.signature) != (first.data_sha256, first.signature):
            raise MTScaffoldError(
                f"{training.path}: of other text than the losses of {first.system}, or computed differently; run the "
                "step that writes it again"
            )
        systems.setdefault(training.system, []).append(split)
    words: list[WordRow] = []
    tokens: list[TokenRow] = []
    lacking = set()
    left_out = {}
    for (group, test_set), systems in cells.items():
        undivided = [name for name, splits in systems.items() if any(each.by_rank is None for each in splits)]
        lacking.update(undivided)
        several = [each for splits in systems.values() for each in splits]
        unknown = {number for each in several for number in each.unknown or ()}
        kept = [number for number in range(len(several[0].sizes)) if number not in unknown]
        if unknown:
            left_out[_titled(group, test_set)] = f"{len(unknown):,} of {len(several[0].sizes):,}"
        if kept and not undivided:
            for partition, order in _PARTITIONS.items():
                words += _word_rows(group, test_set, partition, order, systems, kept, baseline_of, samples)
        for name, splits in systems.items():
            for partition, class_of, order in _token_partitions(name, systems, vocabularies, baseline_of):
                tokens += _token_rows(group, test_set, name, partition, class_of, order, splits)
    tests = corrected({place: row.test for place, row in enumerate(words) if row.test is not None})
    words = [replace(row, test=tests.get(place)) for place, row in enumerate(words)]
    unit = next(iter(next(iter(cells.values())).values()))[0].unit if cells else "document"
    missing = f"{', '.join(sorted(lacking))}: the codes do not say which bytes a word is" if lacking else None
    return LossTables(unit, words, tokens, missing, left_out)


def _titled(group: str, test_set: str) -> str:
    return ", ".join(filter(None, (group, test_set)))


def _parts(split: LossSplit, partition: str) -> dict[str, Part]:
    found = split.by_rank if partition == _RANK else split.by_count
    assert found is not None
    return found


def _word_rows(
    group: str,
    test_set: str,
    partition: str,
    order: Sequence[str],
    systems: Mapping[str, Sequence[LossSplit]],
    kept: Sequence[int],
    baseline_of: Callable[[str], str | None],
    samples: int,
) -> list[WordRow]:
    """Return the rows of one partition. kept: the indices of the documents or sentences to count."""
    import numpy

    sizes = numpy.array(next(iter(systems.values()))[0].sizes, numpy.float64)[kept]
    text_size = float(sizes.sum())
    rows = []
    for name in (*order, END, ACROSS):
        # All systems have the same words; tokens across words may occur in one system only.
        parts = {system: [_parts(each, partition).get(name) for each in splits] for system, splits in systems.items()}
        words, own_sizes = {}, {}
        for system, own in parts.items():
            words[system] = 0 if own[0] is None else int(numpy.array(own[0].words)[kept].sum())
            own_sizes[system] = 0 if own[0] is None else int(numpy.array(own[0].bytes)[kept].sum())
        if not any(words.values()):
            continue
        empty = [0.0] * len(sizes)
        bits: dict[str, Any] = {
            system: numpy.array(
                [empty if each is None else numpy.array(each.bits)[kept] for each in own], numpy.float64
            )
            for system, own in parts.items()
        }
        drawn = None
        if len(sizes) > 1:
            drawn = iter(resample_documents(numpy.concatenate([*bits.values()]), sizes, samples))
        resampled = {system: [next(drawn) for _ in own] if drawn else [] for system, own in bits.items()}
        for system, splits in systems.items():
            size = own_sizes[system]
            sums = {str(each.seed): float(row.sum()) for each, row in zip(splits, bits[system], strict=True)}
            baseline = baseline_of(system)
            tested = baseline in systems and drawn is not None
            rows.append(
                WordRow(
                    group,
                    test_set,
                    partition,
                    name,
                    system,
                    baseline,
                    words[system],
                    size,
                    estimate({seed: total / size for seed, total in sums.items()}) if size else None,
                    estimate({seed: total / text_size for seed, total in sums.items()}),
                    compare_trainings(resampled[system], resampled[str(baseline)]) if tested else None,
                )
            )
    return rows


def _token_partitions(
    system: str,
    systems: Mapping[str, Sequence[LossSplit]],
    vocabularies: Mapping[str, TokensOfSystem],
    baseline_of: Callable[[str], str | None],
) -> Iterable[tuple[str, dict[int, str], Sequence[str]]]:
    """Yield the partitions of a system's tokens: name, class of each id, order of the classes."""
    own = vocabularies[system]
    if (baseline := baseline_of(system)) in systems:
        others = [(str(baseline), NEW)]
    else:
        others = [(other, REMOVED) for other in systems if baseline_of(other) == system]
    for other, name in others:
        known = set(vocabularies[other].names.values())
        # Systems with the same vocabulary have nothing to show.
        if known != set(own.names.values()):
            classes = {number: SHARED if token in known else name for number, token in own.names.items()}
            yield f"against {other}", classes, [SHARED, name]
    yield BY_COUNT, {number: DECADES[_decade(own.counts[number])] for number in own.names}, DECADES


def _decade(occurrences: float) -> int:
    """Return the class of a mean number of occurrences; a token that occurs at all is not among those that never do."""
    return decade(max(1, round(occurrences)) if occurrences else 0)


def _token_rows(
    group: str,
    test_set: str,
    system: str,
    partition: str,
    class_of: Mapping[int, str],
    order: Sequence[str],
    splits: Sequence[LossSplit],
) -> list[TokenRow]:
    by_seed = {str(split.seed): token_classes(split.tokens, class_of, order) for split in splits}
    sizes = {str(split.seed): split.bytes for split in splits}
    rows = []
    for name, first in next(iter(by_seed.values())).items():
        found: dict[str, TokenClass] = {seed: classes[name] for seed, classes in by_seed.items()}
        per_token = {seed: each.bits / each.occurrences for seed, each in found.items() if each.occurrences}
        share = estimate({seed: each.bits / sizes[seed] for seed, each in found.items()})
        shown = estimate(per_token) if per_token else None
        rows.append(TokenRow(group, test_set, system, partition, name, first.kinds, first.occurrences, shown, share))
    return rows


def estimate(by_seed: dict[str, float]) -> Estimate:
    """Return the mean of a figure over the seeds, with its 95 % interval by Student's t if there are several."""
    mean = fmean(by_seed.values())
    if len(by_seed) == 1:
        return Estimate(mean, None, None, by_seed)
    margin = t_quantile(1 - LEVEL / 2, len(by_seed) - 1) * stdev(by_seed.values()) / len(by_seed) ** 0.5
    return Estimate(mean, mean - margin, mean + margin, by_seed)


# -- as rows of text


@dataclass(frozen=True)
class LossTable:
    """A table to show: its title and its rows, of which the first is the heading."""

    title: str
    rows: list[list[str]]


def word_tables(tables: LossTables) -> list[LossTable]:
    """Return a table of words for each group and test set: a row per class, a column per system."""
    places = dict.fromkeys((row.group, row.test_set) for row in tables.words)
    return [
        LossTable(
            f"Words by their frequency in the training text: {_titled(*place)}",
            _word_table([row for row in tables.words if (row.group, row.test_set) == place]),
        )
        for place in places
    ]


def _word_table(rows: Sequence[WordRow]) -> list[list[str]]:
    systems = list(dict.fromkeys(row.system for row in rows))
    tested = [name for name in systems if any(row.system == name and row.test is not None for row in rows)]
    baselines = {row.system: row.baseline for row in rows}
    heading = ["", "class", "words", "% of bytes", *systems]
    for name in tested:
        heading += [f"{name} - {baselines[name]}", "95 % interval", "p, Holm"]
    table = [heading]
    total = sum(row.bytes for row in rows if row.partition == _RANK and row.system == systems[0])
    for partition, name in dict.fromkeys((row.partition, row.name) for row in rows):
        chosen = {row.system: row for row in rows if (row.partition, row.name) == (partition, name)}
        first = chosen[systems[0]]
        line = [partition, name, f"{max(row.words for row in chosen.values()):,}", f"{100 * first.bytes / total:.1f}"]
        line += ["" if (each := chosen[system].bits_per_byte) is None else decimal(each.mean, 4) for system in systems]
        for system in tested:
            if (test := chosen[system].test) is None:
                line += ["", "", ""]
            else:
                line += [decimal(test.difference, 4, signed=True), shown_interval(test, 4), shown_p(test.p_holm)]
        table.append(line)
    return table


def token_tables(tables: LossTables) -> list[LossTable]:
    """Return a table of tokens for each group and test set: a row for each class of each system."""
    places = dict.fromkeys((row.group, row.test_set) for row in tables.tokens)
    found = []
    for place in places:
        heading = ["system", "partition", "class", "tokens", "occurrences", "bits per token", "bits per byte of text"]
        rows = [
            [row.system, row.partition, row.name, f"{row.kinds:,}", f"{row.occurrences:,}",
             _shown(row.bits_per_token, 3), _shown(row.share, 4)]
            for row in tables.tokens
            if (row.group, row.test_set) == place
        ]  # fmt: skip
        found.append(LossTable(f"Tokens: {_titled(*place)}", [heading, *rows]))
    return found


def _shown(estimate: Estimate | None, places: int) -> str:
    if estimate is None:
        return ""
    mean = decimal(estimate.mean, places)
    if estimate.low is None or estimate.high is None:
        return mean
    return f"{mean} ({decimal(estimate.low, places)} to {decimal(estimate.high, places)})"


def _of_intervals(tests: Sequence[Difference], units: str) -> str:
    if any(test.p is not None for test in tests):
        return (
            f"With their 95 % intervals, over trainings and {units}; p by Holm's method over all classes of the table."
        )
    if any(test.freedom is not None for test in tests):
        return (
            f"With their 95 % intervals over trainings and {units}, too narrow where trainings differ more than "
            f"{units} do; p takes {TRAININGS_FOR_P} trainings of each system."
        )
    if tests:
        return f"With 95 % intervals over {units} alone: they are about these models, not about other trainings."
    return ""


def notes(tables: LossTables) -> list[str]:
    """Return the notes to print above the tables."""
    words = []
    if tables.words:
        tests = [row.test for row in tables.words if row.test is not None]
        words.append(" ".join(filter(None, (NOTE, _of_intervals(tests, f"{tables.unit}s")))))
    if tables.left_out:
        listed = "; ".join(f"{place} ({many})" for place, many in tables.left_out.items())
        words.append(LEFT_OUT_NOTE.format(listed))
    if tables.without_words:
        words.append(f"Without a table of words ({tables.without_words}).")
    baselines = ", ".join(
        dict.fromkeys(row.partition.removeprefix("against ") for row in tables.tokens if row.name == NEW)
    )
    return [*words, *([TOKENS_NOTE.format(bpe=baselines)] if baselines else [])]
