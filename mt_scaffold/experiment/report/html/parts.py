"""Parts that the pages of all tasks share: rendering of templates, inlined figures, tables and texts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import open_input, shown
from mt_scaffold.corpus.text import decode
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration.layout import Layout
from mt_scaffold.experiment.evaluation.comparison_files import Table
from mt_scaffold.experiment.report.figures import NOTE_ID
from mt_scaffold.experiment.report.statistics import Figure
from mt_scaffold.experiment.runtime.result_warnings import limits
from mt_scaffold.tables import decimal

_SECTIONS = ("differences", "scores", "training", "vocabularies", "embeddings")
# Headings of further columns that hold names, not figures.
_NAMES = {"against", "who", "their system"}
# Parts of an inlined SVG that a browser would run.
_RUNS = re.compile(r"<\s*(?:script|foreignobject)|<[^<>]*(?:\son\w+\s*=|javascript:)", re.IGNORECASE)
# The note below a figure, as matplotlib writes it; removed because the page has it once.
_NOTE = re.compile(rf'<g id="{NOTE_ID}">.*?</g>\s*', re.DOTALL)


def render(template: str, **values: Any) -> str:
    """Return a page rendered from a template of this folder, with its styles."""
    import jinja2

    here = Path(__file__).parent
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(here),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Globals, so that imported macros have them too.
    environment.globals |= {"decimal": decimal, "limits_line": limits}
    return environment.get_template(template).render(css=text(here / "page.css"), **values)


def text(path: Path) -> str:
    """Return the text of a file; raise MTScaffoldError if it is not UTF-8."""
    with open_input(path) as stream:
        return decode(stream.read(), shown(path))


def systems_table(rows: Sequence[dict[str, str]]) -> dict[str, Any]:
    """Return the table of an experiment's systems, without empty columns. rows: column → cell, of each system."""
    heading = [column for column in rows[0] if any(row[column] for row in rows)]
    cells = [[row[column] for column in heading] for row in rows]
    return {"heading": heading, "groups": [cells], "left": tuple(range(len(heading)))}


def options_text(options: Mapping[str, Any]) -> str:
    """Return options of fairseq-train as one line."""
    return ", ".join(f"{name}: {value}" for name, value in options.items())


def tables_of(tables: Sequence[Table]) -> list[dict[str, Any]]:
    """Return tables for the page: title, heading, rows in groups, the columns that hold names, and notes."""
    shown = []
    for table in tables:
        heading, *rows = table.rows
        # Rows of a group differ in the system or the metric.
        place = [column for column, name in enumerate(heading[: table.names]) if name in ("group", "test set")]
        groups = itertools.groupby(rows, key=lambda row, place=place: [row[column] for column in place])  # type: ignore[misc]
        left = [column for column, name in enumerate(heading) if column < table.names or name in _NAMES]
        shown.append(
            {
                "title": table.title,
                "heading": heading,
                "groups": [list(group) for _, group in groups],
                "left": left,
                "notes": table.notes,
            }
        )
    return shown


def figures(layout: Layout[Any], figures: Sequence[Figure]) -> dict[str, list[dict[str, Any]]]:
    """Return the figures of each section of the page: SVGs to inline, with their captions.

    ``differences``, next to the first table, are those of its metric; without any, there is no figure.
    """
    return {
        section: [
            {"svg": inline(layout.folder / figure.file), "caption": figure.caption, "wide": figure.wide}
            for figure in figures
            if figure.section == section
        ]
        for section in _SECTIONS
    }


def inline(svg: Path) -> Any:
    """Return an SVG to inline in the page: in the colour of the page's text, and with ids that are unique there.

    Raises MTScaffoldError if it holds a script.
    """
    from markupsafe import Markup

    content = text(svg)
    if _RUNS.search(content):
        raise MTScaffoldError(
            f"{svg}: holds a script, which no figure of ours does; remove it, and draw the figures again"
        )
    content = _NOTE.sub("", content[content.index("<svg") :]).replace("#000000", "currentColor")
    # matplotlib leaves text without a colour, which means black.
    content = content.replace("<svg ", '<svg role="img" fill="currentColor" ', 1)
    name = re.sub(r"\W", "-", svg.stem)
    content = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", content)
    return Markup(content)
