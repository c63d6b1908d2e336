"""The tables of a comparison on tasks: for people (text, Markdown), for papers (LaTeX) and for programs (CSV)."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Sequence
from dataclasses import fields

from mt_scaffold.experiment.evaluation.comparison_tables import above_tables, laid_out, shown_mean
from mt_scaffold.experiment.evaluation.harness.comparison import TaskComparison, TaskRow, main_tests
from mt_scaffold.experiment.evaluation.significance import Difference, p_columns, shown_p
from mt_scaffold.tables import latex_table

OTHERS = "In the other metrics, corrected separately for each:"
PAPER = "The paper's figures (THEIRS: copied from the paper, not measured here):"


def as_text(comparison: TaskComparison, markdown: bool = False) -> str:
    """Return the comparison as tables for people, with the notes they need to interpret it."""
    comparison = comparison.shown
    parts: list[str | Sequence[Sequence[str]]] = []
    for title, table in tables(comparison):
        parts += [title, table] if title else [table]
    about = (comparison.title, comparison.synthetic, comparison.shown_warnings)
    return laid_out(*about, parts, comparison.notes, markdown=markdown)


def as_latex(comparison: TaskComparison) -> str:
    """Return the tables as LaTeX (``booktabs``) below what limits the result, the notes as comments."""
    comparison = comparison.shown
    lines = [f"% {comparison.title}"] if comparison.title else []
    lines += [f"% {note}" for note in comparison.notes]
    blocks = ["\n".join(lines)]
    above = above_tables(comparison.synthetic, comparison.shown_warnings)
    blocks += ["\n".join(above)] if above else []
    blocks += [(f"% {title}\n" if title else "") + latex_table(rows).rstrip("\n") for title, rows in tables(comparison)]
    return "\n\n".join(blocks) + "\n"


def tables(comparison: TaskComparison) -> list[tuple[str, list[list[str]]]]:
    """Return the tables with their titles; the first has none."""
    found = [("", main_table(comparison))]
    if any(metric != row.main for row in comparison.rows for metric in row.tests):
        found.append((OTHERS, others_table(comparison)))
    if comparison.paper:
        found.append((PAPER, paper_table(comparison)))
    return found


def main_table(comparison: TaskComparison) -> list[list[str]]:
    """Return the rows of the table of all tasks, with the tests in the metric of each that is compared first."""
    metrics = comparison.metrics
    columns = p_columns(main_tests(comparison.rows), "questions")
    tested = ["compared", "against", "difference", "95 % interval", *columns]
    if not any(row.tests for row in comparison.rows):
        tested = []
    table = [[*_names(comparison), "questions", *metrics, *tested]]
    for row in comparison.rows:
        scores = [shown_mean(row.scores.get(metric)) for metric in metrics]
        line = [*_names_of(row, comparison), f"{row.questions:,}", *scores]
        if tested:
            line += [row.main, row.baseline or "", *_test_cells(row.tests.get(row.main), columns.values())]
        table.append(line)
    return table


def others_table(comparison: TaskComparison) -> list[list[str]]:
    """Return the rows of the table of the tests in all other metrics."""
    found = [(row, metric) for row in comparison.rows for metric in row.tests if metric != row.main]
    columns = p_columns((row.tests[metric] for row, metric in found), "questions")
    table = [[*_names(comparison), "metric", "against", "difference", "95 % interval", *columns]]
    for row, metric in found:
        cells = _test_cells(row.tests[metric], columns.values())
        table.append([*_names_of(row, comparison), metric, row.baseline or "", *cells])
    return table


def paper_table(comparison: TaskComparison) -> list[list[str]]:
    """Return the rows of the table of the paper's figures, each beside ours, and the differences of the two systems."""
    grouped = any(row.group for row in comparison.rows)
    heading = ["BPE", "THEIRS", "Scaffold-BPE", "THEIRS", "difference", "THEIRS", "table of the paper"]
    table = [["group"] * grouped + ["task", "metric", *heading]]
    for theirs in comparison.paper:
        ours = [comparison.row(theirs.group, theirs.task, name) for name in (theirs.our_bpe, theirs.our_scaffold)]
        bpe, scaffold = (row.scores[row.main].mean for row in ours if row is not None)
        first = next(row for row in ours if row is not None)
        line = [theirs.group or ""] * grouped + [first.paper_name or theirs.task, first.main]
        line += [f"{bpe:.2f}", f"{theirs.bpe:.2f}", f"{scaffold:.2f}", f"{theirs.scaffold:.2f}"]
        table.append([*line, f"{scaffold - bpe:+.2f}", f"{theirs.scaffold - theirs.bpe:+.2f}", theirs.table])
    return table


def _names(comparison: TaskComparison) -> list[str]:
    return ["group"] * any(row.group for row in comparison.rows) + ["task", "system"]


def _names_of(row: TaskRow, comparison: TaskComparison) -> list[str]:
    grouped = any(each.group for each in comparison.rows)
    return [row.group or ""] * grouped + [row.paper_name or row.task, row.system]


def _test_cells(test: Difference | None, attributes: Collection[str]) -> list[str]:
    if test is None:
        return ["", "", *("" for _ in attributes)]
    interval = f"{test.low:+.2f} to {test.high:+.2f}"
    return [f"{test.difference:+.2f}", interval, *(shown_p(getattr(test, attribute)) for attribute in attributes)]


def as_csv(comparison: TaskComparison) -> str:
    """Return the comparison as CSV: one line per group, task, system and metric, with every figure."""
    comparison = comparison.shown
    figures = [entry.name for entry in fields(Difference)]
    stream = io.StringIO()
    names = [
        "task",
        "paper_name",
        "system",
        "baseline",
        "synthetic",
        "seeds",
        "questions",
        "num_fewshot",
        "checkpoints",
    ]
    grouped = any(row.group for row in comparison.rows)
    heading = ["group"] * grouped + [*names, "metric", "compared_first", "mean", "sd", *figures]
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heading)
    for row in comparison.rows:
        for metric, spread in row.scores.items():
            line: list[object] = [row.group] * grouped
            line += [row.task, row.paper_name, row.system, row.baseline, comparison.synthetic]
            line += [" ".join(map(str, row.seeds)), row.questions, " ".join(map(str, row.num_fewshot)), row.checkpoints]
            line += [metric, metric == row.main, spread.mean, spread.sd]
            line += [getattr(row.tests.get(metric), figure, None) for figure in figures]
            writer.writerow("" if value is None else value for value in line)
    return stream.getvalue()
