"""The tables of a comparison: for people (text, Markdown) and for programs (CSV)."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TypeVar

from mt_scaffold.corpus.files import PathLike, write_text
from mt_scaffold.experiment.binarise.data_folder import DictionaryUse
from mt_scaffold.experiment.evaluation.comparison import (
    SYNTHETIC_NOTE,
    Checkpoints,
    Compared,
    Comparison,
    PublishedBeside,
    Row,
    Spread,
)
from mt_scaffold.experiment.evaluation.metrics import KINDS, LABELS
from mt_scaffold.experiment.evaluation.significance import Difference, p_columns, shown_p
from mt_scaffold.experiment.runtime.results import write_result
from mt_scaffold.tables import format_table, latex, latex_table

AnyComparison = TypeVar("AnyComparison", bound=Compared)


def as_text(comparison: Comparison, markdown: bool = False) -> str:
    """Return the comparison as tables for people, with the notes they need to interpret it."""
    comparison = comparison.shown
    parts: list[str | Sequence[Sequence[str]]] = [main_table(comparison, name) for name in comparison.main_metrics]
    if comparison.other_metrics or comparison.of_documents:
        parts.append(other_metrics_table(comparison))
    if any(row.checkpoints for row in comparison.rows):
        parts += ["Single checkpoints beside the final model:", checkpoints_table(comparison)]
    if comparison.trainings:
        parts += ["Trainings:", trainings_table(comparison)]
    if comparison.published:
        parts.append("Published elsewhere (THEIRS: copied from the papers, not measured here):")
        parts.append(_published_table(comparison.published))
    about = (comparison.title, comparison.synthetic, comparison.shown_warnings)
    return laid_out(*about, parts, comparison.notes, comparison.signatures, markdown)


def laid_out(
    title: str,
    synthetic: bool,
    warnings: Sequence[str],
    parts: Iterable[str | Sequence[Sequence[str]]],
    notes: Iterable[str],
    signatures: Mapping[str, str] = {},
    markdown: bool = False,
) -> str:
    """Return a comparison as one text: its title, warnings, parts (paragraphs, and tables as rows) and notes."""
    blocks = [title] if title else []
    if synthetic:
        blocks.append(f"**{SYNTHETIC_NOTE}**" if markdown else SYNTHETIC_NOTE)
    if warnings:
        # Markdown would take <unk> for HTML.
        lines = [f"> **Warning:** {line.replace('<', '&lt;')}\n>" for line in warnings]
        blocks.append("\n".join(lines).removesuffix("\n>") if markdown else _warned(warnings))
    blocks += [
        part if isinstance(part, str) else format_table(part, markdown, figures=False).rstrip("\n") for part in parts
    ]
    quote = "`" if markdown else ""
    if markdown:
        notes = [note.replace("*:", r"\*:").replace("<", "&lt;") for note in notes]
    notes = [*notes, *(f"{name}: {quote}{signature}{quote}" for name, signature in signatures.items())]
    if markdown:
        notes = [f"- {note}" for note in notes]
    return "\n\n".join([*blocks, "\n".join(notes)]) + "\n"


def _warned(warnings: Iterable[str]) -> str:
    return "\n".join(f"Warning: {line}" for line in warnings)


def as_latex(comparison: Comparison) -> str:
    """Return the tables of the main metrics, and that of the others, in LaTeX, for the package booktabs.

    What limits the result stands above each, as in the text, and the notes below as comments.
    """
    comparison = comparison.shown
    tables = [(main_table(comparison, name), len(_names(comparison))) for name in comparison.main_metrics]
    if comparison.other_metrics or comparison.of_documents:
        tables.append((other_metrics_table(comparison), len(_names(comparison))))
    above = above_tables(comparison.synthetic, comparison.shown_warnings)
    blocks = []
    for number, (rows, left) in enumerate(tables):
        blocks.append("\\begin{table}\n\\centering")
        if comparison.title and number == 0:
            blocks.append(rf"\caption{{{latex(comparison.title)}}}")
        blocks += above
        blocks += [latex_table(rows, left).rstrip("\n"), r"\end{table}"]
    notes = [*comparison.notes, *(f"{name}: {signature}" for name, signature in comparison.signatures.items())]
    return "\n".join([*blocks, *(f"% {note}" for note in notes)]) + "\n"


def above_tables(synthetic: bool, warnings: Iterable[str]) -> list[str]:
    """Return what limits a result as LaTeX, a paragraph each."""
    lines = [SYNTHETIC_NOTE] if synthetic else []
    lines += [f"Warning: {line}" for line in warnings]
    return [rf"\parbox{{\linewidth}}{{\small {latex(line)}}}\par" for line in lines]


def write_comparison(
    output: PathLike,
    comparison: AnyComparison,
    text: Callable[[AnyComparison, bool], str],
    latex: Callable[[AnyComparison], str],
    csv: Callable[[AnyComparison], str],
) -> None:
    """Write a comparison to ``output.txt``, ``.md``, ``.tex``, ``.csv`` and ``.json``."""
    write_text(f"{output}.txt", text(comparison, False))
    write_text(f"{output}.md", text(comparison, True))
    write_text(f"{output}.tex", latex(comparison))
    write_text(f"{output}.csv", csv(comparison))
    write_result(f"{output}.json", comparison)


def main_table(comparison: Comparison, name: str) -> list[list[str]]:
    """Return the rows of the table of one of the main metrics, with its tests; the first is the heading."""
    kind, units = KINDS[name], "documents" if comparison.of_documents else "sentences"
    columns = p_columns((row.tests[name] for row in comparison.rows if name in row.tests), units)
    more = _document_columns(comparison)
    if not any(row.tests for row in comparison.rows):
        means = [[*_names_of(row, comparison), shown_mean(row.metric(name), kind.digits)] for row in comparison.rows]
        return [[*_names(comparison), kind.heading], *means]
    heading = [kind.heading, "against", "difference", "95 % interval", *columns, *more]
    table = [[*_names(comparison), *heading]]
    for row in comparison.rows:
        test = row.tests.get(name)
        line = [*_names_of(row, comparison), shown_mean(row.metric(name), kind.digits), row.baseline or ""]
        if test is None:
            table.append([*line, "", "", *("" for _ in (*columns, *more))])
            continue
        digits = kind.digits
        interval = f"{test.low:+.{digits}f} to {test.high:+.{digits}f}"
        p_values = [shown_p(getattr(test, attribute)) for attribute in columns.values()]
        line += [f"{test.difference:+.{digits}f}", interval, *p_values]
        table.append([*line, *_document_cells(row, more, digits)])
    return table


def _names(comparison: Comparison) -> list[str]:
    grouped = any(row.group for row in comparison.rows)
    return ["group"] * grouped + ["test set", "system"]


def _names_of(row: Row, comparison: Comparison) -> list[str]:
    grouped = any(each.group for each in comparison.rows)
    return [row.group or ""] * grouped + [row.test_set, row.system]


def _document_columns(comparison: Comparison) -> list[str]:
    """Return the headings of further tests over documents and seeds, as far as there are any."""
    tests = [row.over_documents for row in comparison.rows if row.over_documents is not None]
    if not tests:
        return []
    return ["p, documents", *(["by seed", "p, seeds"] if any(test.over_seeds for test in tests) else [])]


def _document_cells(row: Row, columns: Sequence[str], digits: int) -> list[str]:
    if row.over_documents is None:
        return ["" for _ in columns]
    cells, seeds = [shown_p(row.over_documents.randomisation_p)], row.over_documents.over_seeds
    if len(columns) > 1:
        by_seed = f"{seeds.mean:+.{digits}f} ± {seeds.sd:.{digits}f}" if seeds else ""
        cells += [by_seed, shown_p(seeds.p if seeds else None)]
    return cells


def other_metrics_table(comparison: Comparison) -> list[list[str]]:
    """Return the rows of the table of all other metrics: the scores, and the corrected p-values where tested.

    For language models, also of what the test set is in each system's tokens.
    """
    names = comparison.other_metrics
    columns = {
        name: {
            heading: attribute
            for heading, attribute in p_columns(row.tests[name] for row in comparison.rows if name in row.tests).items()
            if attribute.endswith("_holm")
        }
        for name in names
    }
    table = [_names(comparison)]
    if comparison.of_documents:
        table[0] += ["vocabulary", "documents", "tokens", "bytes", "bytes per token †"]
    for name in names:
        table[0] += [KINDS[name].heading, *columns[name]]
    for row in comparison.rows:
        line = _names_of(row, comparison)
        if row.size is not None:
            counts = (row.size.n_vocab, row.size.documents, row.size.tokens, row.size.bytes)
            line += [*(f"{count:,}" for count in counts), f"{row.size.bytes_per_token:.4f}"]
        for name in names:
            line.append(shown_mean(row.metric(name), KINDS[name].digits))
            test = row.tests.get(name)
            line += [shown_p(getattr(test, attribute) if test else None) for attribute in columns[name].values()]
        table.append(line)
    return table


def checkpoints_table(comparison: Comparison) -> list[list[str]]:
    """Return the rows of the table of single checkpoints' scores beside those of the final models."""
    names = [name for name in comparison.metrics if any(name in row.checkpoints for row in comparison.rows)]
    table = [["test set", "system"]]
    for name in names:
        table[0] += [KINDS[name].heading, "last checkpoints"]
    for row in comparison.rows:
        line = [row.test_set, row.system]
        for name in names:
            found = row.checkpoints.get(name)
            line += [shown_mean(row.metric(name)), f"{shown_mean(found)} ({found.count})" if found else ""]
        table.append(line)
    return table


def trainings_table(comparison: Comparison) -> list[list[str]]:
    """Return the rows of the table of the trainings."""
    grouped = any(row.group for row in comparison.rows)
    subwords = "tokens seen" if comparison.of_documents else "subwords seen"
    table = [["group"] * grouped + ["system", "seed", "parameters", "updates", "epochs", subwords]]
    table[0] += ["text seen, MB", "stopped by", "hours"]
    dictionaries = any(training.dictionary for training in comparison.trainings)
    table[0] += ["entries", "never occur", "<unk> in train", "<unk> in tests"] if dictionaries else []
    for training in comparison.trainings:
        counts = (training.parameters, training.updates, training.epochs, training.subwords)
        # A demonstration of language models reads less than a megabyte.
        digits = 3 if comparison.of_documents and (training.text_bytes or 0) < 10_000_000 else 1
        megabytes = "" if training.text_bytes is None else f"{training.text_bytes / 1e6:,.{digits}f}"
        line = [training.group or ""] * grouped + [training.system, str(training.seed)]
        line += ["" if count is None else f"{count:,}" for count in counts]
        line += [megabytes, training.stop or "", f"{training.hours:.2f}"]
        table.append([*line, *(_dictionary_cells(training.dictionary) if dictionaries else [])])
    return table


def _dictionary_cells(use: DictionaryUse | None) -> list[str]:
    if use is None:
        return [""] * 4
    several = [" + ".join(f"{number:,}" for number in numbers) for numbers in (use.entries, use.unused)]
    return [*several, f"{use.unknown:,}", " + ".join(f"{number:,}" for number in use.unknown_tests.values())]


def as_csv(comparison: Comparison) -> str:
    """Return the comparison as CSV: one line per group, test set and system, every figure of every metric."""
    comparison = comparison.shown
    metrics = [name for name in KINDS if any(row.metric(name) for row in comparison.rows)]
    tested = [name for name in metrics if any(name in row.tests for row in comparison.rows)]
    figures = [entry.name for entry in fields(Difference)]
    rows = []
    for row in comparison.rows:
        line: dict[str, object] = {"group": row.group} if any(each.group for each in comparison.rows) else {}
        line |= {"test_set": row.test_set, "system": row.system, "baseline": row.baseline}
        line |= {"synthetic": comparison.synthetic, "seeds": " ".join(map(str, row.seeds))}
        line |= {entry.name: getattr(row.size, entry.name) for entry in fields(row.size)} if row.size else {}
        for name in metrics:
            spread = row.metric(name)
            line |= {f"{name}_mean": spread and spread.mean, f"{name}_sd": spread and spread.sd}
        for name in tested:
            line |= {f"{name}_{figure}": getattr(row.tests.get(name), figure, None) for figure in figures}
        if comparison.of_documents:
            more = row.over_documents
            line["randomisation_p"] = more and more.randomisation_p
            line |= {f"seeds_{name}": getattr(more and more.over_seeds, name, None) for name in ("mean", "sd", "p")}
        rows.append({key: "" if value is None else value for key, value in line.items()})
    stream = io.StringIO()
    writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
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


def shown_mean(spread: Spread | Checkpoints | None, digits: int = 2) -> str:
    """Return a mean with its standard deviation as the tables show it."""
    if spread is None:
        return ""
    return f"{spread.mean:.{digits}f}" + ("" if spread.sd is None else f" ± {spread.sd:.{digits}f}")
