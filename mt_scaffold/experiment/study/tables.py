"""Cells → CSV: a row per text, method, N and measured text, and the tables of the generalisation question."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import write_text
from mt_scaffold.experiment.study.cells import Cell
from mt_scaffold.experiment.study.generalisation import GeneralisationCell
from mt_scaffold.experiment.study.held_out import HeldOutCell
from mt_scaffold.experiment.study.measures import Measures

_DIGITS = 6
_LEARNING = ("merged", "complete", "below", "seconds_to_learn", "seconds_to_apply")
_STABILITY = ("jaccard", "alike_types", "alike_words")


def write_tables(
    cells: Sequence[Cell], compared: Sequence[GeneralisationCell], trials: Sequence[HeldOutCell], folder: Path
) -> None:
    """Write the tables of measures, learning, subwords by word and by token, entropy, and held-out text, as CSV."""
    names = [entry.name for entry in dataclasses.fields(Measures)]
    _write(folder / "measures.csv", ["text", "method", "N", "on", *names], _measures(cells, names))
    _write(
        folder / "learning.csv",
        ["text", "method", "N", *_LEARNING, *_STABILITY],
        _learning(cells),
    )
    compared_by = ["text", "every", "min_frequency", "N", "complete"]
    _write(
        folder / "subwords_by_word.csv",
        [*compared_by, "on", "frequency_in_train", "types", "words", "bpe", "gain", "cost"],
        (
            [*_of(cell), on, label, *dataclasses.astuple(share)]
            for cell in compared
            for on, comparison in cell.on.items()
            for label, share in comparison.by_word.items()
        ),
    )
    _write(
        folder / "subwords_by_token.csv",
        [*compared_by, "on", "words", "bpe", "scaffold", "frequency_in_train", "cost"],
        (
            [*_of(cell), on, comparison.words, comparison.bpe, comparison.scaffold, label, cost]
            for cell in compared
            for on, comparison in cell.on.items()
            for label, cost in comparison.by_token.items()
        ),
    )
    _write(
        folder / "entropy.csv",
        [*compared_by, "tokens_are", "tokens", "share_bpe", "share_scaffold", "bits_bpe", "bits_scaffold"],
        (
            [*_of(cell), label, *dataclasses.astuple(each)]
            for cell in compared
            if cell.fraction == 1
            for label, each in cell.entropy.items()
        ),
    )

    _write(
        folder / "held_out.csv",
        [
            "text",
            "N",
            "complete",
            "scaffold_tokens",
            "least",
            "on",
            "bpe",
            "scaffold",
            "looks_at",
            "returned",
            "subwords",
        ],
        (
            [*_of_trial(cell), on, applied.bpe, applied.scaffold, where, criterion.returned, criterion.subwords]
            for cell in trials
            for on, applied in cell.on.items()
            for where, criterion in applied.criteria.items()
        ),
    )


def _measures(cells: Sequence[Cell], names: Sequence[str]) -> Iterator[list[Any]]:
    for cell in cells:
        for on, measures in cell.on.items():
            yield [cell.text, cell.method, cell.size, on, *(getattr(measures, name) for name in names)]


def _learning(cells: Sequence[Cell]) -> Iterator[list[Any]]:
    for cell in cells:
        learned = (getattr(cell, name) for name in _LEARNING)
        agreement = (getattr(cell.stability, name, None) for name in _STABILITY)
        yield [cell.text, cell.method, cell.size, *learned, *agreement]


def _of(cell: GeneralisationCell) -> list[Any]:
    return [cell.text, cell.fraction, cell.min_frequency, cell.size, cell.complete]


def _of_trial(cell: HeldOutCell) -> list[Any]:
    return [cell.text, cell.size, cell.complete, cell.scaffold_tokens, cell.least]


def _write(path: Path, heading: Sequence[str], rows: Any) -> None:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heading)
    for row in rows:
        writer.writerow([_shown(value) for value in row])
    write_text(path, stream.getvalue())


def _shown(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return round(value, _DIGITS) if isinstance(value, float) else value
