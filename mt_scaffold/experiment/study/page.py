"""A finished study → its report, one self-contained HTML page: a table per measure, the figures, the configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mt_scaffold.corpus.files import write_text
from mt_scaffold.experiment.report.html.parts import inline, render, text
from mt_scaffold.experiment.study.cells import Cell
from mt_scaffold.experiment.study.configuration import Study
from mt_scaffold.experiment.study.texts import TRAIN, UNSEEN
from mt_scaffold.tables import decimal

PAGE = "report.html"


class _Measure(NamedTuple):
    """A measure of the tables: its name in a cell's measures, a label with its unit, its factor, and decimal places."""

    name: str
    label: str
    factor: float = 1.0
    digits: int = 3


_MEASURES = (
    _Measure("bytes_per_token", "Bytes per token"),
    _Measure("tokens_per_word", "Subwords per word"),
    _Measure("entropy_bits", "Entropy of the tokens, bits"),
    _Measure("renyi_efficiency", "Rényi efficiency, α = 2.5, from 0 to 1"),
    _Measure("share_under_100", "Tokens that occur fewer than 100 times, % of the vocabulary", 100, 1),
    _Measure("typo_cost", "Subwords that one wrong letter in each tenth word adds, %", 100, 2),
    _Measure("gini", "Gini coefficient between the languages"),
    _Measure("boundary_f1", "F1 of morpheme boundaries"),
)
_ON = {TRAIN: "text learned from", UNSEEN: "held-out part"}
_FIGURES = {
    "bytes-per-token": "Bytes per token, and the difference from the baseline in per cent of its bytes per token.",
    "subwords-per-word": "Subwords per word of the tokenised text.",
    "entropy": "Entropy of the tokens, in bits, and the difference from the baseline.",
    "redundancy": "Redundancy: the share of the greatest possible entropy that is missing.",
    "renyi-efficiency": "Rényi efficiency, and the difference from the baseline.",
    "tokens-under-10": "Tokens that occur fewer than 10 times in the text learned from, in per cent of the vocabulary.",
    "tokens-under-100": "Tokens that occur fewer than 100 times there, in per cent of the vocabulary.",
    "whole-words": "Words that stay whole, in per cent of the words of the text.",
    "whole-types": "Distinct words that stay whole, in per cent of the distinct words of the text.",
    "stability-of-vocabulary": "Tokens in codes of both halves of the text, as a share of those in either.",
    "stability-of-words": "Words that codes of two halves of the text segment alike, in per cent of the words.",
    "seconds": "Seconds to learn and to segment.",
    "generalisation": "Subwords of Scaffold-BPE beyond those of BPE, in per cent of BPE's: in all, gained, and lost.",
    "generalisation-by-word": "The same by how often the word occurs in the text learned from.",
    "generalisation-by-token": "The same by how often the token occurs in the text learned from.",
    "generalisation-by-min-frequency": "The same for other minimum frequencies of a pair.",
    "generalisation-by-size": "The same for codes learned from a part of the text.",
}


def write_page(study: Study, cells: Sequence[Cell], figures: Sequence[Path], folder: Path) -> Path:
    """Write the page of a study into its folder, which has ``config.yaml`` and the figures, and return its path."""
    page = folder / PAGE
    found = {(cell.text, cell.method, cell.size): cell for cell in cells if cell.complete}
    tables = [
        {"title": name, "about": f"{measure.label}, {_ON[on]}", "rows": rows}
        for name in study.learned
        for measure in _MEASURES
        for on in ((TRAIN,) if measure.name.startswith("share") else _ON)
        if len(rows := _table(study, found, name, measure, on)) > 1
    ]
    tables += [
        {"title": name, "about": f"codes that were not learned here, {_ON[UNSEEN]}", "rows": rows}
        for name in study.learned
        if len(rows := _imported(study, found, name)) > 1
    ]
    content = render(
        "study.html.jinja",
        name=study.name,
        methods=[*study.methods],
        baseline=study.baseline,
        texts=[*study.learned],
        tables=tables,
        figures=[{"svg": inline(svg), "caption": _FIGURES.get(svg.stem, svg.stem), "wide": True} for svg in figures],
        config_text=text(folder / "config.yaml"),
    )
    write_text(page, content)
    return page


def _table(
    study: Study, cells: Mapping[tuple[str, str, int], Cell], name: str, measure: _Measure, on: str
) -> list[list[str]]:
    """Return a measure on one text, a row per method and a column per N; – if the text is too small for N."""
    rows = [["method", *(f"N = {size:,}" for size in study.sizes)]]
    for method in study.methods:
        values = [_value(cells.get((name, method, size)), measure, on) for size in study.sizes]
        if any(value is not None for value in values):
            shown = [
                "–" if value is None else decimal(measure.factor * value, measure.digits, grouped=True)
                for value in values
            ]
            rows.append([method, *shown])
    return rows


def _imported(study: Study, cells: Mapping[tuple[str, str, int], Cell], name: str) -> list[list[str]]:
    """Return a row per codes file, and a column per measure."""
    rows = [["codes", "N", *(measure.label for measure in _MEASURES)]]
    for (text_name, codes, size), cell in cells.items():
        if text_name == name and codes in study.imported:
            values = [(measure, _value(cell, measure, UNSEEN)) for measure in _MEASURES]
            shown = [
                "–" if value is None else decimal(measure.factor * value, measure.digits, grouped=True)
                for measure, value in values
            ]
            rows.append([codes, f"{size:,}", *shown])
    return rows


def _value(cell: Cell | None, measure: _Measure, on: str) -> float | None:
    measured: Any = None if cell is None else cell.on.get(on)
    value = None if measured is None else getattr(measured, measure.name)
    return None if value is None else float(value)
