"""The files of a comparison: tables for people (text, Markdown, LaTeX) and for programs (CSV, JSON)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields

from mt_scaffold.corpus.files import PathLike, write_text
from mt_scaffold.experiment.binarise.data_folder import DictionaryUse
from mt_scaffold.experiment.evaluation.comparison import (
    EACH,
    OTHERS,
    TRAININGS,
    Comparison,
    PublishedBeside,
    Row,
    Spread,
)
from mt_scaffold.experiment.evaluation.metrics import KINDS
from mt_scaffold.experiment.evaluation.significance import LEVEL, Difference, p_columns, shown_p
from mt_scaffold.experiment.runtime.result_warnings import limits
from mt_scaffold.experiment.runtime.results import COMPARISON_KINDS, comparison_file, write_result
from mt_scaffold.tables import decimal, format_table, latex, latex_table


@dataclass(frozen=True)
class Table:
    """A table of a comparison. rows: the first is the heading. names: the number of first columns that hold names."""

    title: str
    rows: list[list[str]]
    names: int
    notes: list[str] = field(default_factory=list)


def score_tables(comparison: Comparison) -> list[Table]:
    """Return the tables of the scores, the main metric's first. comparison: as ``shown``."""
    notes, names = comparison.notes_by_table, len(_names(comparison))
    tables = []
    for name in comparison.main_metrics:
        label = KINDS[name].label
        title, rows = label if label.startswith("chrF") else f"{label[0].upper()}{label[1:]}", comparison.rows
        if name == comparison.main_metric and comparison.primary.of_mean:
            means = comparison.means
            tables.append(
                Table(f"{title}, {means[0].test_set}", main_table(comparison, name, means), names, notes[name])
            )
            title = f"{title} on each test set"
        key = EACH if tables and name == comparison.main_metric else name
        tables.append(Table(title, main_table(comparison, name, rows), names, notes.get(key, [])))
    if comparison.other_metrics or comparison.of_documents:
        tables.append(Table("Other metrics", other_metrics_table(comparison), names, notes[OTHERS]))
    tables += far_tables(comparison)
    return tables


def published_tables(comparison: Comparison) -> list[Table]:
    """Return the table of published scores, if there are any."""
    if not comparison.published:
        return []
    title = "Published elsewhere (THEIRS: copied from the papers, not measured here)"
    return [Table(title, _published_table(comparison.published), 2)]


def as_text(comparison: Comparison, markdown: bool = False) -> str:
    """Return the comparison for people: the answer, its table and its limits; then the other tables."""
    comparison = comparison.shown
    tables = score_tables(comparison)
    if comparison.trainings:
        rows, notes = trainings_table(comparison), comparison.notes_by_table[TRAININGS]
        tables.append(Table("Trainings", rows, len(_names(comparison)), notes))
    tables += published_tables(comparison)
    answer, warnings = comparison.answer, comparison.shown_warnings
    blocks = [_shown(comparison.title, markdown)] if comparison.title else []
    blocks.append(f"**{_shown(answer, markdown)}**" if markdown else answer)
    for number, table in enumerate(tables):
        if number:
            blocks.append(f"{table.title}:")
        blocks.append(format_table(table.rows, markdown, figures=False).rstrip("\n"))
        if not number and warnings:
            lines = [f"{limits(warnings)}:", *([""] if markdown else []), *_listed(warnings, markdown)]
            blocks.append("\n".join(f"> {line}".rstrip() if markdown else line for line in lines))
        if table.notes:
            blocks.append("\n".join(_listed(table.notes, markdown) if markdown else table.notes))
    quote = "`" if markdown else ""
    computed = [f"{name}: {quote}{signature}{quote}" for name, signature in comparison.signatures.items()]
    if computed:
        blocks.append("\n".join([f"- {line}" for line in computed] if markdown else computed))
    return "\n\n".join(blocks) + "\n"


def _listed(lines: Iterable[str], markdown: bool) -> list[str]:
    return [f"- {_shown(line, markdown)}" for line in lines]


def _shown(line: str, markdown: bool) -> str:
    # Markdown would treat <unk> as HTML.
    return line.replace("*:", "\\*:").replace("<", "&lt;") if markdown else line


def as_latex(comparison: Comparison) -> str:
    """Return the tables of the scores in LaTeX, for the package booktabs, each with a caption; the rest as comments."""
    comparison = comparison.shown
    tables = score_tables(comparison)
    synthetic, answer = comparison.synthetic, comparison.answer
    lines = _said_above(comparison)
    for number, table in enumerate(tables):
        caption = ": ".join(filter(None, (comparison.title, table.title)))
        # A table is copied without the text around it.
        caption += (f". {answer}" if number == 0 else " (synthetic data)") if synthetic else ""
        lines += [r"\begin{table}", r"\centering", rf"\caption{{{latex(caption)}}}"]
        lines += [
            latex_table(table.rows, table.names).rstrip("\n"),
            r"\end{table}",
            *(f"% {note}" for note in table.notes),
        ]
    signatures = (f"% {name}: {signature}" for name, signature in comparison.signatures.items())
    return "\n".join([*lines, *signatures]) + "\n"


def _said_above(comparison: Comparison) -> list[str]:
    """Return the answer and what limits it, as comments in LaTeX."""
    lines = [] if comparison.synthetic else [comparison.answer]
    if warnings := comparison.shown_warnings:
        lines += [f"{limits(warnings)}:", *_listed(warnings, markdown=False)]
    return [f"% {line}" for line in lines]


def as_paper_table(comparison: Comparison) -> str:
    """Return the primary measure as papers print it, in LaTeX: systems by test sets, a mean that is it last."""
    comparison = comparison.shown
    metric = comparison.main_metric
    groups = dict.fromkeys(row.group for row in comparison.rows)
    lines = ["% Needs \\usepackage{booktabs}.", *_said_above(comparison)]
    for group in groups:
        rows = [*comparison.rows, *(comparison.means if comparison.primary.of_mean else ())]
        cells = {(row.system, row.test_set): row for row in rows if row.group == group}
        systems, columns = ([*dict.fromkeys(key[place] for key in cells)] for place in (0, 1))
        table = [["", *map(_stacked, columns)]]
        for system in systems:
            line = [_stacked(system)]
            for column in columns:
                row = cells.get((system, column))
                line.append("" if row is None else _paper_cell(row, metric))
            table.append(line)
        heading, *others = (" & ".join(line) + r" \\" for line in table)
        name = "-".join(filter(None, (comparison.title.partition(":")[0], group))) or "comparison"
        lines += [
            *(r"\begin{table}", r"\centering\footnotesize", r"\setlength{\tabcolsep}{2pt}"),
            rf"\begin{{tabular}}{{@{{}}l{'c' * len(columns)}@{{}}}}",
            *(r"\toprule", heading, r"\midrule", *others, r"\bottomrule", r"\end{tabular}"),
            rf"\caption{{{latex(_paper_caption(comparison, group))}}}",
            rf"\label{{tab:{re.sub('[^A-Za-z0-9-]+', '-', name)}}}",
            r"\end{table}",
        ]
    return "\n".join(lines) + "\n"


def _stacked(name: str) -> str:
    """Return a name in LaTeX, a long one in several lines."""
    parts = re.split(r"(?<=[_ -])|(?=\+)", name) if len(name) > 10 else [name]
    stacked = r"\\".join(map(latex, parts))
    return stacked if len(parts) == 1 else rf"\shortstack[l]{{{stacked}}}"


def _paper_cell(row: Row, metric: str) -> str:
    spread, digits = row.metric(metric), KINDS[metric].digits
    if spread is None:
        return ""
    sd = "" if spread.sd is None else rf"{{\tiny$\pm${decimal(spread.sd, digits)}}}"
    return f"{decimal(spread.mean, digits)}{sd}" + (r"\rlap{$^{*}$}" if _is_significant(row, metric) else "")


def _is_significant(row: Row, metric: str) -> bool:
    test = row.tests.get(metric)
    p = None if test is None else test.segments_p_holm if test.p_holm is None else test.p_holm
    return p is not None and p < LEVEL


def _paper_caption(comparison: Comparison, group: str | None) -> str:
    kind, rows = KINDS[comparison.main_metric], [row for row in comparison.rows if row.group == group]
    seeds = sorted({len(row.seeds) for row in rows})
    many = " to ".join(dict.fromkeys(map(str, (seeds[0], seeds[-1]))))
    trainings = "of one training" if seeds == [1] else f"mean ± standard deviation over {many} trainings"
    parts = [": ".join(filter(None, (comparison.title, group))), f"{kind.heading.removesuffix(' *')}, {trainings}"]
    caption = f"{'. '.join(filter(None, parts))}."
    if comparison.synthetic:
        return f"{caption} {comparison.answer}"
    tested = [row for row in (*rows, *comparison.means) if row.group == group and comparison.main_metric in row.tests]
    baselines = [*dict.fromkeys(str(row.baseline) for row in tested)]
    against = baselines[0] if len(baselines) == 1 else f"its baseline ({', '.join(baselines)})"
    over = comparison.units if seeds[0] == 1 else f"trainings and {comparison.units}"
    if any(_is_significant(row, comparison.main_metric) for row in tested):
        return f"{caption} *: differs from {against}, p < {LEVEL:g} (two-sided, over {over}, Holm)."
    return f"{caption} No difference from {against} is significant." if tested else f"{caption} Not tested."


def write_comparison(output: PathLike, comparison: Comparison) -> None:
    """Write a comparison to the files of ``comparison_files``."""
    plain, markdown, paper, tex, result, table = comparison_files(output)
    write_text(plain, as_text(comparison))
    write_text(markdown, as_text(comparison, markdown=True))
    write_text(paper, as_paper_table(comparison))
    write_text(tex, as_latex(comparison))
    write_text(table, as_csv(comparison))
    write_result(result, comparison)


def comparison_files(output: PathLike) -> list[str]:
    """Return the files of a comparison: ``output.txt`` and so on."""
    return [comparison_file(output, kind) for kind in COMPARISON_KINDS]


def main_table(comparison: Comparison, name: str, rows: Sequence[Row]) -> list[list[str]]:
    """Return the table of a main metric on these rows of the comparison, with its tests; the first is the heading."""
    kind = KINDS[name]
    columns = p_columns((row.tests[name] for row in rows if name in row.tests), comparison.units)
    if not any(name in row.tests for row in rows):
        means = [[*_names_of(row, comparison), _score_cell(row, name)] for row in rows]
        return [[*_names(comparison), kind.heading], *means]
    heading = [kind.heading, "against", "difference", "95 % interval", *columns]
    table = [[*_names(comparison), *heading]]
    for row in rows:
        test = row.tests.get(name)
        line = [*_names_of(row, comparison), _score_cell(row, name), row.baseline or ""]
        if test is None:
            table.append([*line, "", "", *("" for _ in columns)])
            continue
        digits = kind.digits
        interval = shown_interval(test, digits)
        p_values = [shown_p(getattr(test, attribute)) for attribute in columns.values()]
        table.append([*line, decimal(test.difference, digits, signed=True), interval, *p_values])
    return table


def _score_cell(row: Row, name: str) -> str:
    """Return a score with its standard deviation, and in brackets its interval."""
    digits, interval = KINDS[name].digits, row.intervals.get(name)
    shown = shown_mean(row.metric(name), digits)
    ends = "" if interval is None else f" ({decimal(interval.low, digits)} to {decimal(interval.high, digits)})"
    return shown + ends


def far_tables(comparison: Comparison) -> list[Table]:
    """Return the table of the test sentences that are far from the training text, if some are near it."""
    if not comparison.far:
        return []
    metrics = KINDS.in_order({name for row in comparison.far for name in row.scores})
    metrics.sort(key=lambda name: name != comparison.main_metric)
    names = _names(comparison)
    table = [[*names, "left out", "against"]]
    for name in metrics:
        table[0] += [KINDS[name].heading, f"difference, {KINDS[name].label}", "95 % interval"]
    for row in comparison.far:
        line = [row.group or ""] * (len(names) - 2) + [row.test_set, row.system]
        line += [f"{row.left_out:,} of {row.lines:,}", row.baseline or ""]
        for name in metrics:
            test, digits = row.tests.get(name), KINDS[name].digits
            line.append(shown_mean(row.scores.get(name), digits))
            line += (
                ["", ""]
                if test is None
                else [decimal(test.difference, digits, signed=True), shown_interval(test, digits)]
            )
        table.append(line)
    note = (
        "Left out: sentences of which the training text has the source or the target, or one that differs in case and "
        "numbers or in one word of four or more."
    )
    return [Table("Without test sentences nearly in the training text", table, len(names), [note])]


def _names(comparison: Comparison) -> list[str]:
    grouped = any(row.group for row in comparison.rows)
    return ["group"] * grouped + ["test set", "system"]


def _names_of(row: Row, comparison: Comparison) -> list[str]:
    grouped = any(each.group for each in comparison.rows)
    return [row.group or ""] * grouped + [row.test_set, row.system]


def other_metrics_table(comparison: Comparison) -> list[list[str]]:
    """Return the rows of the table of all other metrics: the scores, and the corrected p-values if tested.

    For language models, also the size of the test set in each system's tokens.
    """
    names = comparison.other_metrics
    rows = [*(comparison.means if comparison.primary.of_mean else []), *comparison.rows]
    columns = {
        name: {
            heading: attribute
            for heading, attribute in p_columns(row.tests[name] for row in rows if name in row.tests).items()
            if attribute.endswith("_holm")
        }
        for name in names
    }
    table = [_names(comparison)]
    if comparison.of_documents:
        table[0] += ["vocabulary", "documents", "tokens", "bytes", "bytes per token †"]
    for name in names:
        table[0] += [KINDS[name].heading, *columns[name]]
    for row in rows:
        line = _names_of(row, comparison)
        if row.size is not None:
            counts = (row.size.n_vocab, row.size.documents, row.size.tokens, row.size.bytes)
            line += [*(f"{count:,}" for count in counts), decimal(row.size.bytes_per_token, 4)]
        for name in names:
            line.append(shown_mean(row.metric(name), KINDS[name].digits))
            test = row.tests.get(name)
            line += [shown_p(getattr(test, attribute) if test else None) for attribute in columns[name].values()]
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
        # The demonstration of language models reads less than a megabyte.
        digits = 3 if comparison.of_documents and (training.text_bytes or 0) < 10_000_000 else 1
        megabytes = "" if training.text_bytes is None else f"{training.text_bytes / 1e6:,.{digits}f}"
        line = [training.group or ""] * grouped + [training.system, str(training.seed)]
        line += ["" if count is None else f"{count:,}" for count in counts]
        line += [megabytes, training.stop or "", decimal(training.hours)]
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
    metrics = KINDS.in_order({name for row in comparison.rows for name in row.scores})
    tested = [name for name in metrics if any(name in row.tests for row in (*comparison.rows, *comparison.means))]
    figures = [entry.name for entry in fields(Difference)]
    rows = []
    for row in (*comparison.rows, *(comparison.means if comparison.primary.of_mean else ())):
        line: dict[str, object] = {"group": row.group} if any(each.group for each in comparison.rows) else {}
        line |= {"test_set": row.test_set, "system": row.system, "baseline": row.baseline}
        line |= {"synthetic": comparison.synthetic, "seeds": " ".join(map(str, row.seeds))}
        line |= {entry.name: getattr(row.size, entry.name) for entry in fields(row.size)} if row.size else {}
        for name in metrics:
            spread = row.metric(name)
            line |= {f"{name}_mean": spread and spread.mean, f"{name}_sd": spread and spread.sd}
            if any(name in each.intervals for each in comparison.rows):
                interval = row.intervals.get(name)
                line |= {f"{name}_score_{end}": interval and getattr(interval, end) for end in ("low", "high")}
        for name in tested:
            line |= {f"{name}_{figure}": getattr(row.tests.get(name), figure, None) for figure in figures}
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
            *(entry.test_set, entry.beside, KINDS[entry.metric].label),
            "" if entry.ours is None else decimal(entry.ours),
            decimal(entry.score),
            "" if entry.difference is None else decimal(entry.difference, signed=True),
            *(entry.by, entry.system),
        ]
        for entry in published
    ]
    return [heading, *table]


def shown_mean(spread: Spread | None, digits: int = 2) -> str:
    """Return a mean with its standard deviation as the tables show it."""
    if spread is None:
        return ""
    return decimal(spread.mean, digits) + ("" if spread.sd is None else f" ± {decimal(spread.sd, digits)}")


def shown_interval(test: Difference, digits: int = 2) -> str:
    """Return the interval of a difference as the tables show it."""
    return f"{decimal(test.low, digits, signed=True)} to {decimal(test.high, digits, signed=True)}"
