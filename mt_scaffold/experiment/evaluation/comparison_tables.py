"""The tables of a comparison: for people (text, Markdown) and for programs (CSV)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, fields

from mt_scaffold.experiment.evaluation.comparison import (
    SYNTHETIC_NOTE,
    Checkpoints,
    Comparison,
    PublishedBeside,
    Spread,
)
from mt_scaffold.experiment.evaluation.metrics import LABELS, METRICS
from mt_scaffold.experiment.evaluation.significance import Difference, p_columns, shown_p
from mt_scaffold.tables import format_table

_TRAINING_HEADING = (
    *("system", "seed", "parameters", "updates", "epochs", "subwords seen", "text seen, MB", "stopped by", "hours"),
)


def as_text(comparison: Comparison, markdown: bool = False) -> str:
    """Return the comparison as tables for people, with the notes they need to interpret it."""
    parts: list[str | Sequence[Sequence[str]]] = [main_table(comparison)]
    if len(comparison.metrics) > 1:
        parts.append(other_metrics_table(comparison))
    if any(row.checkpoints for row in comparison.rows):
        parts += ["Single checkpoints beside the final model:", checkpoints_table(comparison)]
    if comparison.trainings:
        parts += ["Trainings:", trainings_table(comparison)]
    if comparison.published:
        parts.append("Published elsewhere (THEIRS: copied from the papers, not measured here):")
        parts.append(_published_table(comparison.published))
    return laid_out(comparison.title, comparison.synthetic, parts, comparison.notes, comparison.signatures, markdown)


def laid_out(
    title: str,
    synthetic: bool,
    parts: Iterable[str | Sequence[Sequence[str]]],
    notes: Iterable[str],
    signatures: Mapping[str, str],
    markdown: bool = False,
) -> str:
    """Return a comparison as one text: its title, its parts (paragraphs, and tables as rows) and its notes."""
    blocks = [title] if title else []
    if synthetic:
        blocks.append(f"**{SYNTHETIC_NOTE}**" if markdown else SYNTHETIC_NOTE)
    blocks += [
        part if isinstance(part, str) else format_table(part, markdown, figures=False).rstrip("\n") for part in parts
    ]
    quote = "`" if markdown else ""
    notes = [*notes, *(f"{name}: {quote}{signature}{quote}" for name, signature in signatures.items())]
    if markdown:
        notes = [f"- {note.replace('*:', chr(92) + '*:')}" for note in notes]
    return "\n\n".join([*blocks, "\n".join(notes)]) + "\n"


def main_table(comparison: Comparison) -> list[list[str]]:
    """Return the rows of the table of the main metric, with its tests; the first is the heading."""
    name = comparison.main_metric
    columns = p_columns(row.tests[name] for row in comparison.rows if name in row.tests)
    table = [["test set", "system", METRICS[name].heading, "against", "difference", "95 % interval", *columns]]
    for row in comparison.rows:
        test = row.tests.get(name)
        line = [row.test_set, row.system, shown_mean(row.metric(name)), row.baseline or ""]
        if test is None:
            table.append([*line, "", "", *("" for _ in columns)])
            continue
        interval = f"{test.low:+.2f} to {test.high:+.2f}"
        p_values = [shown_p(getattr(test, attribute)) for attribute in columns.values()]
        table.append([*line, f"{test.difference:+.2f}", interval, *p_values])
    return table


def other_metrics_table(comparison: Comparison) -> list[list[str]]:
    """Return the rows of the table of all other metrics: the scores, and the corrected p-values where tested."""
    names = comparison.metrics[1:]
    columns = {
        name: {
            heading: attribute
            for heading, attribute in p_columns(row.tests[name] for row in comparison.rows if name in row.tests).items()
            if attribute.endswith("_holm")
        }
        for name in names
    }
    table = [["test set", "system"]]
    for name in names:
        table[0] += [METRICS[name].heading, *columns[name]]
    for row in comparison.rows:
        line = [row.test_set, row.system]
        for name in names:
            line.append(shown_mean(row.metric(name)))
            test = row.tests.get(name)
            line += [shown_p(getattr(test, attribute) if test else None) for attribute in columns[name].values()]
        table.append(line)
    return table


def checkpoints_table(comparison: Comparison) -> list[list[str]]:
    """Return the rows of the table of single checkpoints' scores beside those of the final models."""
    names = [name for name in comparison.metrics if any(name in row.checkpoints for row in comparison.rows)]
    table = [["test set", "system"]]
    for name in names:
        table[0] += [METRICS[name].heading, "last checkpoints"]
    for row in comparison.rows:
        line = [row.test_set, row.system]
        for name in names:
            found = row.checkpoints.get(name)
            line += [shown_mean(row.metric(name)), f"{shown_mean(found)} ({found.count})" if found else ""]
        table.append(line)
    return table


def trainings_table(comparison: Comparison) -> list[list[str]]:
    """Return the rows of the table of the trainings."""
    table = [list(_TRAINING_HEADING)]
    for training in comparison.trainings:
        counts = (training.parameters, training.updates, training.epochs, training.subwords)
        megabytes = "" if training.text_bytes is None else f"{training.text_bytes / 1e6:,.1f}"
        table.append(
            [
                *(training.system, str(training.seed)),
                *("" if count is None else f"{count:,}" for count in counts),
                *(megabytes, training.stop or "", f"{training.hours:.2f}"),
            ]
        )
    return table


def as_csv(comparison: Comparison) -> str:
    """Return the comparison as CSV: one line per test set and system, every figure of every metric."""
    metrics = [name for name in METRICS if any(row.metric(name) for row in comparison.rows)]
    tested = [name for name in metrics if any(name in row.tests for row in comparison.rows)]
    figures = [entry.name for entry in fields(Difference)]
    heading = ["test_set", "system", "baseline", "synthetic", "seeds"]
    heading += [f"{name}_{part}" for name in metrics for part in ("mean", "sd")]
    heading += [f"{name}_{part}" for name in tested for part in figures]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heading)
    for row in comparison.rows:
        line: list[object] = [row.test_set, row.system, row.baseline, comparison.synthetic]
        line.append(" ".join(map(str, row.seeds)))
        for name in metrics:
            spread = row.metric(name)
            line += [None, None] if spread is None else [spread.mean, spread.sd]
        for name in tested:
            line += astuple(row.tests[name]) if name in row.tests else [None] * len(figures)
        writer.writerow(["" if entry is None else entry for entry in line])
    return stream.getvalue()


def _published_table(published: Sequence[PublishedBeside]) -> list[list[str]]:
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
    return [heading, *table]


def shown_mean(spread: Spread | Checkpoints | None) -> str:
    """Return a mean with its standard deviation as the tables show it."""
    if spread is None:
        return ""
    return f"{spread.mean:.2f}" + ("" if spread.sd is None else f" ± {spread.sd:.2f}")
