"""A comparison of systems, as ``compare`` writes it and its tables and the report read it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from mt_scaffold.experiment.binarise.data_folder import DictionaryUse
from mt_scaffold.experiment.configuration import Primary, Published
from mt_scaffold.experiment.evaluation.metrics import KINDS, REFERENCE_BITS, MetricKind
from mt_scaffold.experiment.evaluation.significance import LEVEL, RANDOM_SEED, TRAININGS_FOR_P, Difference
from mt_scaffold.experiment.runtime.result_warnings import (
    GRAVE,
    ResultWarning,
    lines_of,
    of_generated_text,
)
from mt_scaffold.experiment.runtime.result_warnings import (
    KINDS as WARNINGS,
)
from mt_scaffold.tables import decimal

# Keys of ``notes_by_table`` for the tables besides those of a metric.
EACH, OTHERS, TRAININGS = "each test set", "other metrics", "trainings"
# With more significant differences, only the largest is named.
_NAMED = 4
SYNTHETIC_NOTE = "SYNTHETIC DATA: generated text; these figures say nothing about any real language."


@dataclass(frozen=True)
class Spread:
    """A score over the seeds: mean, standard deviation of the sample (None for one seed), and the score of each."""

    mean: float
    sd: float | None
    by_seed: dict[str, float]

    @classmethod
    def of(cls, by_seed: Mapping[int, float]) -> Spread:
        """Return the spread of the scores of one system."""
        values = list(by_seed.values())
        sd = statistics.stdev(values) if len(values) > 1 else None
        return cls(statistics.fmean(values), sd, {str(seed): value for seed, value in by_seed.items()})


@dataclass(frozen=True)
class ScoreInterval:
    """The 95 % interval of the score of one system.

    over: ``trainings`` for Student's t around their mean; for one training ``sentences`` or ``documents``, as in
    sacreBLEU's bootstrap: the mean of the resamples plus or minus half the distance between their percentiles.
    """

    low: float
    high: float
    over: str


@dataclass(frozen=True)
class TestSetSize:
    """The size of a test set in the tokens of a language model; bytes and documents are the same for all."""

    __test__ = False

    n_vocab: int
    tokens: int
    bytes: int
    documents: int
    bytes_per_token: float


@dataclass(frozen=True)
class Row:
    """One system on one test set, in one group of systems that are compared (None: there are no groups).

    baseline: the system it was tested against; None for the baseline itself. scores: of the metrics that every seed
    has. tests: by metric; empty if the baseline has no scores on this test set, or for a test set of few segments;
    without those in which neither system translates (``untranslated``).
    intervals: of the scores, by metric; for a single training, only of the tested metrics.
    size: for language models only.
    """

    group: str | None = field(metadata={"omit_none": True})
    test_set: str
    system: str
    baseline: str | None = field(metadata={"omit_none": True})
    seeds: list[int]
    scores: dict[str, Spread]
    tests: dict[str, Difference]
    size: TestSetSize | None = field(default=None, metadata={"omit_none": True})
    intervals: dict[str, ScoreInterval] = field(default_factory=dict)

    def metric(self, name: str) -> Spread | None:
        """Return the metric of that name (``bleu``, ``chrf++``, ...), or None if a seed lacks it."""
        return self.scores.get(name)


@dataclass(frozen=True)
class FarRow:
    """One system on the sentences of a test set that are far from the training text.

    left_out: the number of the ``lines`` sentences whose source or target is, at least nearly, in the training text.
    scores, tests: by metric, as in a ``Row``; corrected as one family, apart from the tests of whole test sets.
    """

    group: str | None = field(metadata={"omit_none": True})
    test_set: str
    system: str
    baseline: str | None = field(metadata={"omit_none": True})
    lines: int
    left_out: int
    scores: dict[str, Spread]
    tests: dict[str, Difference]


@dataclass(frozen=True)
class Training:
    """The cost of one training and the amount of text it saw; None if unknown.

    subwords, text_bytes: seen in training, of source and target together. stop: what ended it (``updates``, ``epochs``,
    ``tokens``, ``text``, ``patience``). dictionary: how its dictionaries fit the text.
    """

    system: str
    seed: int
    parameters: int
    updates: int
    epochs: int
    subwords: int | None
    text_bytes: int | None
    stop: str | None
    hours: float
    group: str | None = field(default=None, metadata={"omit_none": True})
    dictionary: DictionaryUse | None = field(default=None, metadata={"omit_none": True})


@dataclass(frozen=True)
class PublishedBeside(Published):
    """A published score with our mean for the system it is shown next to, and ours minus theirs."""

    ours: float | None
    difference: float | None


@dataclass(frozen=True)
class Comparison:
    """All systems on all test sets, with the facts that a reader needs to interpret the scores.

    baseline: of the systems that name no other. bootstrap_samples, random_seed: of the tests. comparisons: the number
    of tests that are corrected together, by metric. warnings: the limits of the result, from all steps. far: of test
    sets that overlap with the training text. primary: the measure, with the metric filled in. means: over its test
    sets, or all of them, for the systems that have scores on all; tested if the primary measure is a mean.
    """

    title: str
    synthetic: bool
    baseline: str
    bootstrap_samples: int
    random_seed: int
    comparisons: dict[str, int]
    rows: list[Row]
    trainings: list[Training]
    published: list[PublishedBeside]
    signatures: dict[str, str]
    not_comparable: list[str]
    versions: dict[str, str]
    warnings: list[ResultWarning] = field(default_factory=list)
    far: list[FarRow] = field(default_factory=list)
    primary: Primary = field(default_factory=Primary)
    means: list[Row] = field(default_factory=list)

    @property
    def shown(self) -> Comparison:
        """The part that tables show: for synthetic data no tests, losses, published scores or warnings on real text."""
        if not self.synthetic:
            return self
        left_out = {REFERENCE_BITS} - {self.main_metric}

        def without(row: Row) -> Row:
            scores = {name: spread for name, spread in row.scores.items() if name not in left_out}
            return replace(row, scores=scores, tests={}, intervals={})

        unsigned = {KINDS[name].label for name in left_out}
        signatures = {label: each for label, each in self.signatures.items() if label not in unsigned}
        not_comparable = [name for name in self.not_comparable if name not in left_out]
        return replace(
            self,
            rows=[*map(without, self.rows)],
            means=[*map(without, self.means)],
            signatures=signatures,
            not_comparable=not_comparable,
            published=[],
            far=[],
            warnings=of_generated_text(self.warnings),
        )

    @property
    def answer(self) -> str:
        """The result in the primary measure, as one sentence."""
        if self.synthetic:
            return SYNTHETIC_NOTE
        kind = KINDS[self.main_metric]
        tested = [
            Contrast(
                row.system,
                row.baseline,
                ", ".join(filter(None, (row.group, row.test_set))),
                row.tests.get(self.main_metric),
            )
            for row in self.primary_rows
            if row.baseline is not None
        ]
        if tested and (judge := untranslated(self.main_metric, map(_means, self.primary_rows))):
            return f"Nothing may be concluded: every system is {_limit(judge)}."
        unit = Unit(kind.label, kind.label, kind.digits, kind.lower_is_better)
        if self.units == "questions":
            unit = Unit("", "points")
        return conclusion(tested, unit, self.warnings)

    @property
    def effects(self) -> list[str]:
        """The differences in the primary measure with their intervals and numbers of trainings, as sentences."""
        kind, found = KINDS[self.main_metric], []
        trainings = {(row.group, row.test_set, row.system): len(row.seeds) for row in self.primary_rows}
        for row in self.primary_rows:
            if (test := row.tests.get(self.main_metric)) is None or row.baseline is None:
                continue
            ends = (decimal(end, kind.digits, signed=True) for end in (test.low, test.high))
            numbers = [trainings[row.group, row.test_set, system] for system in (row.system, row.baseline)]
            place = ", ".join(filter(None, (row.group, row.test_set)))
            found.append(
                f"{row.system} against {row.baseline} on {place}: {decimal(test.difference, kind.digits, signed=True)} "
                f"{kind.heading}, 95 % interval {' to '.join(ends)}, over {' and '.join(map(str, numbers))} trainings."
            )
        return found

    @property
    def grave(self) -> bool:
        """Whether one of the warnings puts the result in doubt."""
        return any(warning.kind in GRAVE for warning in self.warnings)

    @property
    def shown_warnings(self) -> list[str]:
        """The limits of the result, as sentences to show below the first table."""
        return lines_of(self.warnings)

    @property
    def metrics(self) -> list[str]:
        """The metrics that any row has, in the order of KINDS."""
        return KINDS.in_order({name for row in self.rows for name in row.scores})

    @property
    def common_metrics(self) -> list[str]:
        """The metrics that every row has, in the order of KINDS."""
        return KINDS.in_order(set[str].intersection(*(set(row.scores) for row in self.rows)))

    @property
    def main_metric(self) -> str:
        """The metric of the first table: the primary measure's, or else the first that every row has."""
        return self.primary.metric or self.common_metrics[0]

    @property
    def primary_rows(self) -> list[Row]:
        """The rows of the first table: the means over test sets, or each test set."""
        return self.means if self.primary.of_mean else self.rows

    @property
    def main_metrics(self) -> list[str]:
        """The metrics with a separate table: the main one, and the bits per byte of the reference."""
        return [name for name in self.metrics if name in (self.main_metric, REFERENCE_BITS)]

    @property
    def other_metrics(self) -> list[str]:
        """The metrics that share a table."""
        return [name for name in self.metrics if name not in self.main_metrics]

    @property
    def seeds(self) -> list[int]:
        """The seeds of all rows."""
        return sorted({seed for row in self.rows for seed in row.seeds})

    @property
    def of_documents(self) -> bool:
        """Whether language models are compared, on documents, rather than translations of sentences."""
        return self.units == "documents"

    @property
    def units(self) -> str:
        """The name of a test set's segments."""
        named = {"documents": "documents", "tokens": "documents", "questions": "questions"}
        return named.get(KINDS[self.main_metric].input, "sentences")

    @property
    def notes(self) -> list[str]:
        """The notes on all tables, as sentences."""
        return [note for notes in self.notes_by_table.values() for note in notes]

    @property
    def notes_by_table(self) -> dict[str, list[str]]:
        """The notes on each table, as sentences: by main metric, OTHERS and TRAININGS."""
        if self.units == "questions":
            return self._notes_on_questions()
        return self._notes_on_documents() if self.of_documents else self._notes_on_sentences()

    def _notes_on_sentences(self) -> dict[str, list[str]]:
        seeds = ", ".join(map(str, self.seeds))
        what = "on detokenised text against the untouched reference, unless marked otherwise"
        if len(self.seeds) > 1:
            notes = [f"Scores: {what}. Seeds: {seeds}; mean ± standard deviation over them."]
        else:
            notes = [f"Scores: {what}. Seed: {seeds}; one training per system."]
        found = {self.main_metric: [*notes, *_legend([self.main_metric])], EACH: []}
        if self.primary.of_mean:
            over = self.primary.over.tests_of_mean(list(dict.fromkeys(row.test_set for row in self.rows)))
            found[self.main_metric].append(f"{self.means[0].test_set}: the mean over {', '.join(over)}.")
            found[EACH] = [*power_lines([*self._tests(self.main_metric, self.rows)], KINDS[self.main_metric])]
        if REFERENCE_BITS in self.metrics:
            several = found.setdefault(REFERENCE_BITS, _legend([REFERENCE_BITS]))
            several.append(
                "Bits per byte of the reference: -log2 p of one segmentation of it, its end included, by forced "
                "decoding, by its raw bytes; an upper bound of what the model needs, and no measure of how good "
                "translations are."
            )
            if self.main_metric != REFERENCE_BITS:
                kind, of_bits = KINDS[REFERENCE_BITS], [*self._tests(REFERENCE_BITS, self.rows)]
                # The tests are explained below the first table that has any.
                explained = any(self._tests(self.main_metric, self.primary_rows))
                power = power_lines(of_bits, kind)
                several += power if explained else self._notes_on_tests(REFERENCE_BITS, self.rows)
        found[self.main_metric] += [
            *self._notes_on_intervals(self.main_metric),
            *self._notes_on_low_scores(),
            *self._notes_on_tests(self.main_metric, self.primary_rows),
        ]
        return found | {OTHERS: _legend(self.other_metrics), TRAININGS: self._notes_on_dictionaries()}

    def _notes_on_intervals(self, name: str) -> list[str]:
        over = dict.fromkeys(row.intervals[name].over for row in self.primary_rows if name in row.intervals)
        said = {"trainings": "Student's t over trainings"}
        if not over:
            return []
        how = "; ".join(said.get(each, f"of one training, sacreBLEU's bootstrap over {each}") for each in over)
        return [f"In brackets: the 95 % interval of a score, {how}. Systems are compared by the tests, not by these."]

    def _notes_on_low_scores(self) -> list[str]:
        means = {(row.group, row.test_set, row.system): _means(row) for row in self.rows}
        low: dict[str, list[str]] = {}
        for group, test_set, system in means if not self.synthetic else ():
            baseline = next(row.baseline for row in self.rows if row.system == system)
            sides = [means.get((group, test_set, each or "")) for each in (system, baseline)]
            judge = untranslated(self.main_metric, [side for side in sides if side]) if all(sides) else None
            if judge is not None:
                low.setdefault(judge, []).append(f"{system} and {baseline} on {test_set}")
        return [
            f"Not tested, because both systems are {_limit(judge)}: {'; '.join(which)}." for judge, which in low.items()
        ]

    def _tests(self, name: str, rows: Iterable[Row]) -> Iterator[Difference]:
        return (row.tests[name] for row in rows if name in row.tests)

    def _notes_on_dictionaries(self) -> list[str]:
        uses = {each.system: each.dictionary for each in self.trainings if each.dictionary is not None}
        if not uses:
            return []
        notes = [
            (
                "Entries: of each dictionary, without fairseq's own symbols and padding; never occur: of them, in the "
                "training text without resampling, in which <unk> is counted, too."
            )
        ]
        bound = [system for system, use in uses.items() if use.unknown]
        if bound:
            notes.append(f"A limit of the dictionary binds (binarise): {', '.join(bound)}.")
        return notes

    def _notes_on_documents(self) -> dict[str, list[str]]:
        what = "-log2 p of all tokens, the end of each document included, by the bytes of the raw documents"
        spread = "; mean ± standard deviation over the seeds" if len(self.seeds) > 1 else "; one training per system"
        notes = [f"Bits per byte (↓: lower is better): {what}. Seeds: {', '.join(map(str, self.seeds))}{spread}."]
        notes += self._notes_on_intervals(self.main_metric)
        notes += self._notes_on_tests(self.main_metric, self.primary_rows)
        others = [
            "*: per token, not comparable between vocabularies.",
            "†: the end of each document (</s>) is a token here; statistics and the paper leave it out.",
        ]
        return {self.main_metric: notes, OTHERS: others, TRAININGS: self._notes_on_dictionaries()}

    def _notes_on_questions(self) -> dict[str, list[str]]:
        spread = "; mean ± standard deviation over the seeds" if len(self.seeds) > 1 else "; one training per system"
        notes = [f"Percent of the questions. Seeds: {', '.join(map(str, self.seeds))}{spread}."]
        notes += self._notes_on_intervals(self.main_metric)
        notes += self._notes_on_tests(self.main_metric, self.primary_rows)
        others = ["Tests in each of these metrics are corrected separately."] if self.other_metrics else []
        return {self.main_metric: notes, OTHERS: others, TRAININGS: self._notes_on_dictionaries()}

    def _notes_on_tests(self, name: str, rows: Sequence[Row]) -> list[str]:
        kind, tests, fewest = KINDS[name], [*self._tests(name, rows)], min(len(row.seeds) for row in rows)
        kind = replace(kind, label="points") if self.units == "questions" else kind
        notes = _notes_on_tests(tests, kind, self.bootstrap_samples, fewest, units=self.units)
        sizes = {row.test_set: test.segments for row in rows if (test := row.tests.get(name)) is not None}
        on = "; ".join(f"{test_set} ({size:,})" for test_set, size in sizes.items() if size is not None)
        return notes + ([f"Tests rest on this number of {self.units}: {on}."] if on else [])


def _legend(metrics: Iterable[str]) -> list[str]:
    """Return the meaning of the marks in the headings of these metrics, as sentences."""
    kinds = [KINDS[name] for name in metrics]
    lower = ["↓: lower is better."] if any(kind.lower_is_better for kind in kinds) else []
    if any(not kind.comparable for kind in kinds):
        return [*lower, "*: not comparable with scores from elsewhere; it depends on the tokeniser."]
    return lower


def untranslated(name: str, sides: Iterable[Mapping[str, float]]) -> str | None:
    """Return the metric by which none of several systems translates, or None if one does, or if that is not known.

    sides: the mean scores of each. BLEU decides if all have it, and otherwise the metric itself.
    """
    sides = list(sides)
    judge = "bleu" if all("bleu" in side for side in sides) else name
    return judge if all(judge in side and KINDS[judge].is_hopeless(side[judge]) for side in sides) else None


def _means(row: Row) -> dict[str, float]:
    return {name: spread.mean for name, spread in row.scores.items()}


def _limit(name: str) -> str:
    """Return the limit of a metric in words."""
    kind = KINDS[name]
    return f"{'above' if kind.lower_is_better else 'below'} {kind.limit:g} {kind.label}"


def _notes_on_tests(
    tests: Sequence[Difference], kind: MetricKind, samples: int, fewest: int, *, units: str = "sentences"
) -> list[str]:
    """Return the notes on tests that are corrected together, as sentences.

    kind: of the metric. fewest: the fewest trainings of a system. units: the name of the segments of this test set.
    """
    if not tests:
        return []
    drawn = f"{samples} resamples, random seed {RANDOM_SEED}"
    notes = ["Difference: from the system under 'against', with its 95 % interval, not corrected."]
    over_trainings = [test for test in tests if test.p is not None]
    over_segments = [test for test in tests if test.segments_p is not None]
    if over_trainings:
        notes += [
            f"p: two-sided, of Student's t (Welch, Satterthwaite) over trainings and {units} together, {drawn}.",
            f"p, Holm: corrected for the {_comparisons(over_trainings)} of this table in one metric (Holm 1979).",
        ]
        if fewest < 5:
            notes.append(
                "With fewer than 5 seeds, p errs in up to 8 % instead of 5 % of comparisons where the trainings of one "
                "system differ far more than the other's."
            )
    if len(over_trainings) + len(over_segments) < len(tests):
        notes.append(
            "Two trainings of a system give a difference and its interval, too narrow where trainings differ more than "
            f"{units} do; p takes {TRAININGS_FOR_P}."
        )
    if over_segments:
        holm = f"; Holm: corrected for the {_comparisons(over_segments)} of its kind"
        notes.append(f"{units} only: two-sided p of the paired bootstrap over {units} (Koehn 2004), {drawn}{holm}.")
        notes.append(
            "One training of a system does not show how far trainings differ by chance: p and interval are about these "
            "models, not about other trainings."
        )
        if len(over_segments) / (samples + 1) > LEVEL:
            notes.append(
                f"{samples} resamples are too few for {_comparisons(over_segments)}: no corrected p can reach {LEVEL}; "
                "raise bootstrap_samples."
            )
    return notes + power_lines(tests, kind, units=units)


def power_lines(tests: Sequence[Difference], kind: MetricKind, *, units: str = "sentences") -> list[str]:
    """Return sentences on the size of the difference that the tests of one metric would find (``detectable``)."""
    over_trainings = [test for test in tests if test.p is not None]
    over_segments = [test for test in tests if test.segments_p is not None]
    notes = []
    for which in (over_trainings, over_segments):
        if not which:
            continue
        found = " to ".join(
            dict.fromkeys(decimal(size(test.detectable for test in which), kind.digits) for size in (min, max))
        )
        about = "" if which is over_trainings else f" over {units} alone"
        many = f", corrected for {_comparisons(which)}" if len(which) > 1 else ""
        notes.append(
            f"Power{about}: with probability 80 %, a true difference of {found} {kind.label} would be found (level 5 %"
            f"{many}); a smaller one more seldom."
        )
    return notes


def _comparisons(tests: Sequence[Difference]) -> str:
    return f"{len(tests)} comparison{'s' if len(tests) > 1 else ''}"


class Contrast(NamedTuple):
    """A system with a baseline, on one test set; test: None if none was possible."""

    system: str
    baseline: str
    place: str
    test: Difference | None


class Unit(NamedTuple):
    """The unit of a difference: its name in a sentence on all differences (may be empty), and after a figure."""

    of: str
    label: str
    digits: int = 2
    lower_is_better: bool = False


def conclusion(tested: Sequence[Contrast], unit: Unit, warnings: Iterable[ResultWarning]) -> str:
    """Return the result of the tests, corrected for their number, as one sentence with the gravest warning."""
    kinds = {warning.kind for warning in warnings}
    grave = next((WARNINGS[kind] for kind in WARNINGS if kind in kinds & GRAVE), None)
    found = _shown_by(tested, unit)
    return f"{found}." if grave is None else f"{found}; but {grave[0].lower()}{grave[1:]}."


def _shown_by(tested: Sequence[Contrast], unit: Unit) -> str:
    if not tested:
        return "Nothing is compared: no system has a baseline here"
    tests = [each.test for each in tested if each.test is not None]
    of = f" in {unit.of}" if unit.of else ""
    if not tests:
        return f"Nothing may be concluded: no difference{of} could be tested"
    if any(test.p is not None for test in tests):
        return _sentence(tested, "p_holm", unit, f"No difference{of} is significant", "")
    if any(test.segments_p is not None for test in tests):
        none = f"No difference{of} is significant between these models; other trainings may differ"
        return _sentence(tested, "segments_p_holm", unit, none, "Of these models alone: ")
    return f"Nothing may be concluded: a test takes {TRAININGS_FOR_P} trainings of each system"


def _sentence(tested: Sequence[Contrast], p: str, unit: Unit, none: str, opening: str) -> str:
    found: dict[tuple[str, str], list[str]] = {}
    largest, number, count = ("", 0.0), 0, 0
    for each in tested:
        value = None if each.test is None else getattr(each.test, p)
        if each.test is None or value is None:
            continue
        count += 1
        if value >= LEVEL:
            continue
        number += 1
        ahead = (each.test.difference < 0) == unit.lower_is_better
        pair = (each.system, each.baseline) if ahead else (each.baseline, each.system)
        size = abs(each.test.difference)
        shown = f"{decimal(size, unit.digits)} {unit.label} on {each.place}"
        found.setdefault(pair, []).append(shown)
        largest = max(largest, (f"{pair[0]} is ahead of {pair[1]} by {shown}", size), key=lambda one: one[1])
    if not found:
        return none
    if number > _NAMED:
        return f"{opening}{number} of {count} differences are significant; the largest: {largest[0]}"
    parts = [f"{first} is ahead of {second} by {' and '.join(shown)}" for (first, second), shown in found.items()]
    rest = "; no other difference is significant" if count > number else ""
    return f"{opening}{'; '.join(parts)}{rest}"
