"""The tables of a comparison on tasks: for people (text, Markdown), for papers (LaTeX) and for programs (CSV)."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection
from dataclasses import fields

from mt_scaffold.experiment.evaluation.comparison_tables import (
    Table,
    laid_out,
    latex_tables,
    shown_interval,
    shown_mean,
)
from mt_scaffold.experiment.evaluation.harness.comparison import TaskComparison, TaskRow, main_tests
from mt_scaffold.experiment.evaluation.significance import Difference, p_columns, shown_p
from mt_scaffold.tables import decimal

OTHERS = "In the other metrics, corrected separately for each"
PAPER = "The paper's figures (THEIRS: copied from the paper, not measured here)"


def as_text(comparison: TaskComparison, markdown: bool = False) -> str:
    """Return the comparison for people: the answer, its table and its limits; then the other tables."""
    comparison = comparison.shown
    shown = tables(comparison)
    return laid_out(comparison.title, comparison.answer, comparison.shown_warnings, shown, markdown=markdown)


def as_latex(comparison: TaskComparison) -> str:
    """Return the tables in LaTeX (``booktabs``), each with a caption; the rest as comments."""
    comparison = comparison.shown
    about = (comparison.title, comparison.synthetic, comparison.answer, comparison.shown_warnings)
    return latex_tables(*about, tables(comparison))


def tables(comparison: TaskComparison) -> list[Table]:
    """Return the tables with their notes, that of all tasks first."""
    names = len(_names(comparison))
    found = [Table("Tasks", main_table(comparison), names, comparison.notes)]
    if any(metric != row.main for row in comparison.rows for metric in row.tests):
        found.append(Table(OTHERS, others_table(comparison), names))
    if comparison.paper:
        found.append(Table(PAPER, paper_table(comparison), names, [comparison.note_on_the_paper]))
    return found


def main_table(comparison: TaskComparison) -> list[list[str]]:
    """Return the rows of the table of all tasks, with the tests in each task's main metric."""
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
    """Return the rows of the table of the paper's figures next to ours, with the differences of the two systems."""
    grouped = any(row.group for row in comparison.rows)
    heading = ["BPE", "THEIRS", "Scaffold-BPE", "THEIRS", "difference", "THEIRS", "table of the paper"]
    table = [["group"] * grouped + ["task", "metric", *heading]]
    for theirs in comparison.paper:
        ours = [comparison.row(theirs.group, theirs.task, name) for name in (theirs.our_bpe, theirs.our_scaffold)]
        bpe, scaffold = (row.scores[row.main].mean for row in ours if row is not None)
        first = next(row for row in ours if row is not None)
        line = [theirs.group or ""] * grouped + [first.paper_name or theirs.task, first.main]
        line += [decimal(bpe), decimal(theirs.bpe), decimal(scaffold), decimal(theirs.scaffold)]
        differences = [decimal(each, signed=True) for each in (scaffold - bpe, theirs.scaffold - theirs.bpe)]
        table.append([*line, *differences, theirs.table])
    return table


def _names(comparison: TaskComparison) -> list[str]:
    return ["group"] * any(row.group for row in comparison.rows) + ["task", "system"]


def _names_of(row: TaskRow, comparison: TaskComparison) -> list[str]:
    grouped = any(each.group for each in comparison.rows)
    return [row.group or ""] * grouped + [row.paper_name or row.task, row.system]


def _test_cells(test: Difference | None, attributes: Collection[str]) -> list[str]:
    if test is None:
        return ["", "", *("" for _ in attributes)]
    p_values = [shown_p(getattr(test, attribute)) for attribute in attributes]
    return [decimal(test.difference, signed=True), shown_interval(test), *p_values]


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
