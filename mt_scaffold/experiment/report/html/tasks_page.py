"""A comparison on tasks → one self-contained HTML page, from ``tasks.html.jinja`` and ``page.css`` in this folder."""

from __future__ import annotations

import itertools
from pathlib import Path

from mt_scaffold.corpus.files import PathLike, write_text
from mt_scaffold.experiment.evaluation.comparison import SYNTHETIC_NOTE
from mt_scaffold.experiment.evaluation.harness.comparison import TaskComparison
from mt_scaffold.experiment.evaluation.harness.tables import tables

# Columns of names, by their headings; the first is aligned to the left in any case.
_NAMES = {"group", "task", "system", "metric", "compared", "against", "table of the paper"}


def tasks_page(comparison: TaskComparison, output: PathLike) -> None:
    """Write the tables of a comparison on tasks, with their notes, as a page."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mt_scaffold.experiment.report.html", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = []
    for title, (heading, *rows) in tables(comparison):
        # A group of rows is a task of a group of systems.
        names = [column for column, name in enumerate(heading) if name in ("group", "task")]
        groups = itertools.groupby(rows, key=lambda row, names=names: [row[column] for column in names])  # type: ignore[misc]
        left = [column for column, name in enumerate(heading) if name in _NAMES]
        shown.append({"title": title, "heading": heading, "groups": [list(group) for _, group in groups], "left": left})
    text = environment.get_template("tasks.html.jinja").render(
        title=comparison.title or "Tasks",
        synthetic_note=SYNTHETIC_NOTE if comparison.synthetic else "",
        tables=shown,
        notes=comparison.notes,
        task_versions=comparison.task_versions,
        versions=comparison.versions,
        css=Path(__file__).with_name("page.css").read_text(encoding="utf-8"),
    )
    write_text(output, text)
