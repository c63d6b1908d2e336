"""Cells → figures: one per measure, with all methods; and those of the generalisation question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mt_scaffold.corpus.files import make_folder
from mt_scaffold.experiment.report.figures import Panel, grid_over_sizes
from mt_scaffold.experiment.study.cells import OTHER, Cell
from mt_scaffold.experiment.study.configuration import Study
from mt_scaffold.experiment.study.generalisation import CLASSES, Comparison, GeneralisationCell
from mt_scaffold.experiment.study.texts import TRAIN, UNSEEN

_ON = {TRAIN: "text learned from", UNSEEN: "held-out part", OTHER: "other text"}


class _Row(NamedTuple):
    """A row of panels, one per text, with one measure ``on`` one part.

    relative: "" for the value itself, "%" for the difference from the baseline in per cent of it, "-" for the
    difference itself, times ``factor``.
    """

    measure: str
    label: str
    on: str = TRAIN
    relative: str = ""
    factor: float = 1.0
    logarithmic: bool = False


def _with_differences(measure: str, label: str, relative: str, unit: str, factor: float = 1.0) -> list[_Row]:
    """Return rows with the value on the training text, and with the difference from the baseline on each part."""
    rows = [_Row(measure, label, factor=factor)]
    return rows + [_Row(measure, f"± {unit}", on, relative, factor) for on in _ON]


_FIGURES = {
    "bytes-per-token": _with_differences("bytes_per_token", "bytes per token", "%", "% of {}"),
    "subwords-per-word": [_Row("tokens_per_word", "subwords per word", on) for on in _ON],
    "entropy": _with_differences("entropy_bits", "entropy H, bits", "-", "bits from {}"),
    "redundancy": _with_differences("redundancy", "redundancy", "-", "redundancy from {}"),
    "renyi-efficiency": _with_differences("renyi_efficiency", "Rényi efficiency, α = 2.5", "-", "efficiency from {}"),
    "tokens-under-10": [_Row("share_under_10", "% of V under 10", factor=100)],
    "tokens-under-100": [_Row("share_under_100", "% of V under 100", factor=100)],
    "whole-words": _with_differences("whole_words", "% of words whole", "-", "% points from {}", 100),
    "whole-types": _with_differences("whole_types", "% of distinct words whole", "-", "% points from {}", 100),
    "stability-of-vocabulary": [_Row("jaccard", "tokens in common / in either")],
    "stability-of-words": [
        _Row("alike_words", "% of words alike", UNSEEN, factor=100),
        _Row("alike_types", "% of distinct words alike", UNSEEN, factor=100),
    ],
    "seconds": [
        _Row("seconds_to_learn", "seconds to learn", logarithmic=True),
        _Row("seconds_to_apply", "seconds to segment"),
    ],
}
_OF_STABILITY = {"jaccard", "alike_words", "alike_types"}


def draw(study: Study, cells: Sequence[Cell], compared: Sequence[GeneralisationCell], folder: Path) -> list[Path]:
    """Draw all figures into a folder and return the SVGs. Sizes for which a text is too small are left out."""
    make_folder(folder)
    found = {(cell.text, cell.method, cell.size): cell for cell in cells if cell.complete}
    drawn = []
    for name, rows in _FIGURES.items():
        panels = [[_panel(study, found, row, text, first=row is rows[0]) for text in study.learned] for row in rows]
        drawn.append(grid_over_sizes(panels, folder / name))
    return drawn + _draw_generalisation(study, compared, folder)


def _panel(study: Study, cells: Mapping[tuple[str, str, int], Cell], row: _Row, text: str, first: bool) -> Panel:
    series: dict[str, list[tuple[int, float]]] = {}
    for method in study.methods:
        points = series.setdefault(method, [])
        for size in study.sizes:
            value = _value(cells.get((text, method, size)), row)
            baseline = _value(cells.get((text, study.baseline, size)), row)
            if value is None or (row.relative and baseline is None):
                continue
            if row.relative and baseline is not None:
                value = 100 * (value / baseline - 1) if row.relative == "%" else row.factor * (value - baseline)
            else:
                value *= row.factor
            points.append((size, value))
    label = row.label.format(study.baseline) if "{}" in row.label else row.label
    place = _ON[row.on] if row.measure not in _OF_STABILITY else ""
    title = f"{text}: {place}" if place else text
    return Panel(series, label, title, bool(row.relative), row.logarithmic)


def _value(cell: Cell | None, row: _Row) -> float | None:
    if cell is None:
        return None
    if row.measure in _OF_STABILITY:
        return None if cell.stability is None else float(getattr(cell.stability, row.measure))
    if hasattr(cell, row.measure):
        return float(getattr(cell, row.measure))
    return float(getattr(cell.on[row.on], row.measure)) if row.on in cell.on else None


def _draw_generalisation(study: Study, compared: Sequence[GeneralisationCell], folder: Path) -> list[Path]:
    own = (1, study.min_frequency)
    least = [(1, each) for each in (study.min_frequency, *study.generalisation.min_frequencies)]
    fractions = [own, *((each, study.min_frequency) for each in study.generalisation.fractions)]
    parts: dict[str, Callable[[Comparison], float]] = {
        "all": lambda each: each.scaffold - each.bpe,
        "gain": lambda each: sum(share.gain for share in each.by_word.values()),
        "cost": lambda each: sum(share.cost for share in each.by_word.values()),
    }
    by_word = {f"word {label} times": _of_word(label) for label in CLASSES.values()}
    by_token = {f"token {label} times": _of_token(label) for label in CLASSES.values()}
    figures = {
        "generalisation": {name: (own, value) for name, value in parts.items()},
        "generalisation-by-word": {name: (own, value) for name, value in by_word.items()},
        "generalisation-by-token": {name: (own, value) for name, value in by_token.items()},
        "generalisation-by-min-frequency": {f"min-frequency {each[1]}": (each, parts["all"]) for each in least},
        "generalisation-by-size": {
            f"one line in {each[0]}" if each[0] > 1 else "whole text": (each, parts["all"]) for each in fractions
        },
    }
    found = {(cell.text, cell.fraction, cell.min_frequency, cell.size): cell for cell in compared if cell.complete}
    drawn = []
    for name, lines in figures.items():
        rows = []
        for text, settings in study.learned.items():
            row = []
            for on in (TRAIN, UNSEEN, *settings.other[:1]):
                series = {}
                for line, ((fraction, minimum), value) in lines.items():
                    of_sizes = [(size, found.get((text, fraction, minimum, size))) for size in study.sizes]
                    series[line] = [
                        (size, 100 * value(cell.on[on]) / cell.on[on].bpe)
                        for size, cell in of_sizes
                        if cell and on in cell.on
                    ]
                row.append(Panel(series, "subwords, ± % of BPE", f"{text}: {_ON.get(on, on)}", from_zero=True))
            rows.append(row)
        drawn.append(grid_over_sizes(rows, folder / name))
    return drawn


def _of_word(label: str) -> Callable[[Comparison], float]:
    return lambda each: each.by_word[label].gain + each.by_word[label].cost


def _of_token(label: str) -> Callable[[Comparison], float]:
    return lambda each: each.by_token[label]
