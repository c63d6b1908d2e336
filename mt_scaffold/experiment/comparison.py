"""A comparison of systems: what it holds, and its tables for people (text, Markdown) and programs (CSV)."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field

from mt_scaffold.experiment.configuration import Published
from mt_scaffold.experiment.score import COMPARABLE, LABELS, NOT_COMPARABLE
from mt_scaffold.tables import format_table

SYNTHETIC_NOTE = "SYNTHETIC DATA: generated text; these figures say nothing about any real language."


@dataclass(frozen=True)
class Spread:
    """A score over the seeds: mean, standard deviation of the sample (None for one seed), and the score of each."""

    mean: float
    sd: float | None
    by_seed: dict[str, float]


@dataclass(frozen=True)
class Row:
    """One system on one test set.

    Metrics that not every seed has are None. p: metric → seed → p-value of the paired test against the baseline.
    t_test: p-value of Welch's t-test over the seeds; None for the baseline itself, and where it cannot be computed.
    """

    test_set: str
    system: str
    seeds: list[int]
    bleu: Spread | None = field(metadata={"omit_none": True})
    chrf: Spread | None = field(metadata={"omit_none": True})
    tokenised_bleu: Spread | None = field(metadata={"omit_none": True})
    tokenised_bleu_split: Spread | None = field(metadata={"omit_none": True})
    p: dict[str, dict[str, float]]
    t_test: float | None = field(default=None, metadata={"omit_if": "is_untested"})

    @property
    def is_untested(self) -> bool:
        """Whether the row was tested against nothing: the baseline's."""
        return self.t_test is None and not any(self.p.values())

    def metric(self, name: str) -> Spread | None:
        """Return the metric of that name (``bleu``, ``chrf``, ``tokenised_bleu``, ``tokenised_bleu_split``)."""
        spread: Spread | None = getattr(self, name)
        return spread


@dataclass(frozen=True)
class PublishedBeside(Published):
    """A published score with our mean for the system it is shown beside, and ours minus theirs."""

    ours: float | None
    difference: float | None


@dataclass(frozen=True)
class Comparison:
    """All systems on all test sets, the baseline first, with what a reader needs to interpret the scores."""

    title: str
    synthetic: bool
    baseline: str
    bootstrap_samples: int
    rows: list[Row]
    published: list[PublishedBeside]
    signatures: dict[str, str]
    not_comparable: list[str]
    versions: dict[str, str]

    def difference(self, row: Row) -> float | None:
        """Return the mean BLEU of a row minus the baseline's on the same test set; None for the baseline itself."""
        base = next((each for each in self.rows if (each.test_set, each.system) == (row.test_set, self.baseline)), None)
        if base is None or base is row or base.bleu is None or row.bleu is None:
            return None
        return row.bleu.mean - base.bleu.mean

    @property
    def metrics(self) -> list[str]:
        """The metrics that every row has, in the order of LABELS."""
        return [name for name in LABELS if all(row.metric(name) for row in self.rows)]


def as_text(comparison: Comparison, markdown: bool = False) -> str:
    """Return the comparison as a table for people, with the notes they need to interpret it."""
    rows, metrics = comparison.rows, comparison.metrics
    heading = ["test set", "system", "BLEU", "difference", "p", "chrF", "p"]
    heading += [f"{NOT_COMPARABLE[name]} *" for name in metrics if name in NOT_COMPARABLE]
    table = []
    for row in rows:
        difference = comparison.difference(row)
        line = [row.test_set, row.system, _mean(row.bleu), "" if difference is None else f"{difference:+.2f}"]
        line += [_p_values(row, "bleu"), _mean(row.chrf), _p_values(row, "chrf")]
        line += [_mean(row.metric(name)) for name in metrics if name in NOT_COMPARABLE]
        table.append(line)
    drawn = format_table([heading, *table], markdown, figures=False).rstrip("\n")

    seeds = sorted({seed for row in rows for seed in row.seeds})
    notes = [
        f"BLEU and chrF: sacreBLEU on detokenised text against the untouched reference. Seeds: {_listed(seeds)}"
        + (
            "; mean ± standard deviation over them."
            if len(seeds) > 1
            else "; one training does not show how far trainings differ by chance."
        ),
        f"p: paired bootstrap test against {comparison.baseline}, {comparison.bootstrap_samples} resamples"
        + (", one value for each seed." if len(seeds) > 1 else "."),
    ]
    notes += [
        f"{row.test_set}, {row.system} against {comparison.baseline}: Welch's t-test over the seeds' BLEU, "
        f"p {row.t_test:.3f}."
        for row in rows
        if row.t_test is not None
    ]
    if len(metrics) > len(COMPARABLE):
        notes.append("*: not comparable with scores from elsewhere; it depends on the tokeniser.")
    quote = "`" if markdown else ""
    notes += [f"{name}: {quote}{signature}{quote}" for name, signature in comparison.signatures.items()]
    if markdown:
        notes = [f"- {note.replace('*:', chr(92) + '*:')}" for note in notes]
    blocks = [comparison.title] if comparison.title else []
    if comparison.synthetic:
        blocks.append(f"**{SYNTHETIC_NOTE}**" if markdown else SYNTHETIC_NOTE)
    blocks.append(drawn)
    if comparison.published:
        blocks.append("Published elsewhere (THEIRS: copied from the papers, not measured here):")
        blocks.append(_published_table(comparison.published, markdown))
    return "\n\n".join([*blocks, "\n".join(notes)]) + "\n"


def as_csv(comparison: Comparison) -> str:
    """Return the comparison as CSV: one line per test set and system, scores as mean and standard deviation."""
    metrics = [name for name in LABELS if any(row.metric(name) for row in comparison.rows)]
    heading = ["test_set", "system", "baseline", "synthetic", "seeds"]
    heading += [f"{name}_{part}" for name in metrics for part in ("mean", "sd")] + ["p_bleu", "p_chrf"]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heading)
    for row in comparison.rows:
        line: list[object] = [row.test_set, row.system, comparison.baseline, comparison.synthetic]
        line.append(" ".join(map(str, row.seeds)))
        for name in metrics:
            spread = row.metric(name)
            line += ["", ""] if spread is None else [spread.mean, spread.sd]
        line += [" ".join(map(str, row.p[name].values())) for name in COMPARABLE]
        writer.writerow(["" if entry is None else entry for entry in line])
    return stream.getvalue()


def _published_table(published: Sequence[PublishedBeside], markdown: bool) -> str:
    heading = ["test set", "our system", "score", "ours", "THEIRS", "ours - theirs", "who", "their system"]
    table = [
        [
            *(entry.test_set, entry.beside, LABELS[entry.metric]),
            "" if entry.ours is None else f"{entry.ours:.2f}",
            f"{entry.score:.2f}",
            "" if entry.difference is None else f"{entry.difference:+.2f}",
            *(entry.by, entry.system),
        ]
        for entry in published
    ]
    return format_table([heading, *table], markdown, figures=False).rstrip("\n")


def _mean(spread: Spread | None) -> str:
    if spread is None:
        return ""
    return f"{spread.mean:.2f}" + ("" if spread.sd is None else f" ± {spread.sd:.2f}")


def _p_values(row: Row, name: str) -> str:
    return ", ".join(f"{p:.3f}" for p in row.p[name].values())


def _listed(entries: Sequence[object]) -> str:
    return ", ".join(map(str, entries))
