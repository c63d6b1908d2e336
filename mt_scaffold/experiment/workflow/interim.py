"""Scores while other trainings still run: that of each step, and a table whenever all systems complete a seed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration.layout import Layout
from mt_scaffold.experiment.evaluation.measures import Labelled
from mt_scaffold.experiment.evaluation.metrics import KINDS
from mt_scaffold.experiment.tasks import task_of
from mt_scaffold.tables import decimal, format_table


class Interim:
    """The scores of a running experiment.

    layout: that of the systems to compare. planned: the outputs of all planned steps; files that already exist there
    are from earlier settings.
    """

    def __init__(self, layout: Layout[Any], planned: Iterable[str | Path]) -> None:
        self._layout = layout
        self._measure = task_of(layout.config).measure()
        # A training may be in several groups.
        self._scores = [
            (str(layout.scores(run, test)), group, test, run)
            for group, run in task_of(layout.config).compared(layout)
            for test in layout.config.test_sets
        ]
        self._waiting = {path for path, *_ in self._scores} & {*map(str, planned)}
        self._shown = sum(self._is_scored(seed) for seed in layout.config.seeds)

    def after(self, outputs: Iterable[str | Path]) -> tuple[str, str]:
        """Return the score of a finished step, and a table of all scores if the step completes a seed.

        outputs: those of the step. Both are empty for a step without scores, the table also for the last seed, after
        which the comparison is shown.
        """
        ended = {path for path, *_ in self._scores} & {*map(str, outputs)}
        self._waiting -= ended
        try:
            score = ", ".join(self._score(path) for path in sorted(ended))
            seeds = [seed for seed in self._layout.config.seeds if self._is_scored(seed)]
            if not ended or not self._waiting or len(seeds) <= self._shown:
                return score, ""
            self._shown = len(seeds)
            return score, self._table(seeds)
        except MTScaffoldError:  # the comparison will report it
            return "", ""

    def _is_scored(self, seed: int) -> bool:
        of_seed = [path for path, *_, run in self._scores if int(run.seed) == seed]
        return not self._waiting.intersection(of_seed) and all(Path(path).exists() for path in of_seed)

    def _read(self, path: str) -> tuple[str, float]:
        """Return the main metric of a file of scores, and its value."""
        ((scored, *_), _) = self._measure.read([Labelled("", None, path)])
        values = scored.values
        name = KINDS.in_order(values)[0]
        return name, values[name]

    def _score(self, path: str) -> str:
        name, value = self._read(path)
        return f"{KINDS[name].label} {decimal(value, KINDS[name].digits)}"

    def _table(self, seeds: list[int]) -> str:
        cells: dict[tuple[str, str, str], list[float]] = {}
        name = ""
        for path, group, test, run in self._scores:
            if int(run.seed) in seeds:
                name, value = self._read(path)
                cells.setdefault((group, test, run.system), []).append(value)
        kind, grouped = KINDS[name], any(group for group, *_ in cells)
        rows = [[*["group"] * grouped, "test set", "system", kind.heading]]
        rows += [[*place[not grouped :], decimal(fmean(values), kind.digits)] for place, values in cells.items()]
        what = f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
        synthetic = " (SYNTHETIC DATA)" if self._layout.config.synthetic else ""
        return f"\nSo far, {what} alone{synthetic}:\n\n{format_table(rows, figures=False)}"
