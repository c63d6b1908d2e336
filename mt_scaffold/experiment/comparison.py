"""A comparison of systems: what ``compare`` writes, and its tables and the report read."""

from __future__ import annotations

from dataclasses import dataclass, field

from mt_scaffold.experiment.configuration import Published
from mt_scaffold.experiment.metrics import METRICS
from mt_scaffold.experiment.significance import Difference

SYNTHETIC_NOTE = "SYNTHETIC DATA: generated text; these figures say nothing about any real language."


@dataclass(frozen=True)
class Spread:
    """A score over the seeds: mean, standard deviation of the sample (None for one seed), and the score of each."""

    mean: float
    sd: float | None
    by_seed: dict[str, float]


@dataclass(frozen=True)
class Checkpoints:
    """A score over the single checkpoints of a system's trainings.

    sd: of the checkpoints of one training around their mean, pooled over the trainings (None for one checkpoint each).
    count: checkpoints of one training.
    """

    mean: float
    sd: float | None
    count: int


@dataclass(frozen=True)
class Row:
    """One system on one test set.

    baseline: what it was tested against; None for the baseline itself. scores: of the metrics that every seed has.
    tests: by metric; empty where the baseline has no scores on this test set.
    """

    test_set: str
    system: str
    baseline: str | None = field(metadata={"omit_none": True})
    seeds: list[int]
    scores: dict[str, Spread]
    tests: dict[str, Difference]
    checkpoints: dict[str, Checkpoints]

    def metric(self, name: str) -> Spread | None:
        """Return the metric of that name (``bleu``, ``chrf++``, ...), None where a seed lacks it."""
        return self.scores.get(name)


@dataclass(frozen=True)
class Training:
    """What one training cost and saw; None where it is not known.

    subwords, text_bytes: of source and target, seen in training. stop: what ended it (``updates``, ``epochs``,
    ``tokens``, ``text``, ``patience``).
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


@dataclass(frozen=True)
class PublishedBeside(Published):
    """A published score with our mean for the system it is shown beside, and ours minus theirs."""

    ours: float | None
    difference: float | None


@dataclass(frozen=True)
class Comparison:
    """All systems on all test sets, with what a reader needs to interpret the scores.

    baseline: of all systems that have none of their own. bootstrap_samples, random_seed: of the tests. comparisons:
    how many tests in each metric Holm's method corrects for.
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

    @property
    def metrics(self) -> list[str]:
        """The metrics that every row has, in the order of METRICS."""
        return [name for name in METRICS if all(row.metric(name) for row in self.rows)]

    @property
    def main_metric(self) -> str:
        """The metric of the first table: BLEU, or the first that every row has."""
        return self.metrics[0]

    @property
    def seeds(self) -> list[int]:
        """The seeds of all rows."""
        return sorted({seed for row in self.rows for seed in row.seeds})

    @property
    def notes(self) -> list[str]:
        """What a reader must know of the scores and the tests, as sentences."""
        seeds = self.seeds
        spread = "mean ± standard deviation over them" if len(seeds) > 1 else "one training per system"
        notes = [
            "Scores: on detokenised text against the untouched reference, unless marked otherwise. "
            f"{'Seeds' if len(seeds) > 1 else 'Seed'}: {', '.join(map(str, seeds))}; {spread}."
        ]
        if any(METRICS[name].lower_is_better for name in self.metrics):
            notes.append("↓: lower is better.")
        if any(not METRICS[name].comparable for name in self.metrics):
            notes.append("*: not comparable with scores from elsewhere; it depends on the tokeniser.")
        return [*notes, *self._notes_on_tests()]

    def _notes_on_tests(self) -> list[str]:
        tests = [row.tests[self.main_metric] for row in self.rows if self.main_metric in row.tests]
        if not tests:
            return []
        seeds = max(len(row.seeds) for row in self.rows)
        number, label = len(tests), METRICS[self.main_metric].label
        what = "trainings and segments resampled together" if seeds > 1 else "segments resampled"
        notes = [
            f"Difference: from the system under 'against', with its 95 % interval. p: two-sided, Multi-Bootstrap "
            f"(Sellam et al. 2022), {what}, {self.bootstrap_samples} resamples, random seed {self.random_seed}. "
            f"Holm: p corrected for the {number} comparison{'s' if number > 1 else ''} of this table in one metric "
            "(Holm 1979)."
        ]
        least = [f"{size:.2f}" for size in (min(t.detectable for t in tests), max(t.detectable for t in tests))]
        corrected = f", corrected for {number} comparisons" if number > 1 else ""
        notes.append(
            f"Power: a true difference of {least[0] if least[0] == least[1] else ' to '.join(least)} {label} would be "
            f"found with probability 80 % (level 5 %{corrected}; normal approximation); smaller ones more seldom."
        )
        if seeds == 1:
            notes.append("One training per system does not show how far trainings differ by chance: p is about these.")
        elif min(len(row.seeds) for row in self.rows) < 5:
            notes.append("With fewer than 5 seeds the spread between trainings is a rough estimate, and so is p.")
        if number / (self.bootstrap_samples + 1) > 0.05:
            notes.append(
                f"{self.bootstrap_samples} resamples are too few for {number} comparisons: no corrected p can be below "
                "0.05; raise score.bootstrap_samples."
            )
        return notes
