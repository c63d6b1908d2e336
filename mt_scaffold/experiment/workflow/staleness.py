"""The steps of an experiment that a changed configuration repeats, and the trainings that it must not.

Snakemake repeats a step whose inputs are newer than its outputs, or whose parameters have changed, among them the value
of ``depends_on``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration.layout import TRAINED_ON, Layout, Run
from mt_scaffold.experiment.tasks import task_of
from mt_scaffold.experiment.training.start import changes, check_resumable, ended_with, not_resumable, read_start

AnyLayout = Layout[Any]


def depends_on(layout: AnyLayout, step: str, *names: str | Run) -> str:
    """Return, as text, the values of the configuration on which a step depends; a change repeats the step.

    names: the arguments of the step: a run, a test set or parts.
    """
    settings = task_of(layout.config).depends.get(step)
    return json.dumps(None if settings is None else settings(layout, *names), sort_keys=True)


def shown_systems(layout: AnyLayout, chosen: Sequence[str]) -> list[str]:
    """Return the systems that results include: those chosen to run, and the others that are finished.

    Raises UsageError if the baseline of one of them is not among these.
    """
    others = {name for name in layout.config.systems if name not in chosen and is_finished(layout, name)}
    shown = [name for name in layout.config.systems if name in chosen or name in others]
    for name in shown:
        # The table cannot include a system without its baseline.
        for baseline in (layout.config.baseline, layout.config.baseline_of(name)):
            if baseline is not None and baseline not in shown:
                what = f"the baseline of {name}" if baseline != layout.config.baseline else "the baseline"
                raise UsageError(f"only: {baseline} is {what}, and not finished; name it as well")
    return shown


def is_finished(layout: AnyLayout, system: str) -> bool:
    """Return whether all trainings of a system have ended and been scored with its current settings."""
    task, whole = task_of(layout.config), layout.of_systems([system])
    wanted = [*whole.every_run(whole.training_report), *whole.every_run(whole.averaged), *whole.every_scores()]
    if not all(path.exists() for path in wanted):
        return False
    for run in whole.runs:
        try:
            start = task.plan_start(layout, run, 0)
            if start is not None and not ended_with(layout.training(run), start):
                return False
        except MTScaffoldError:  # a run would report it
            return False
    return True


def check_trainings(layout: AnyLayout, planned: Iterable[tuple[Run, int]], elsewhere: bool = False) -> None:
    """Raise MTScaffoldError if a planned training was started with settings from which it cannot resume.

    planned: runs, each with its total number of GPUs (0: all of the machine that trains). elsewhere: whether another
    machine trains. Snakemake deletes the report of a training before it runs it, and only then would the training
    itself refuse. A training whose settings are not known yet is not checked.
    """
    for run, gpus in planned:
        folder = layout.training(run)
        if read_start(folder) is None:
            continue
        if (start := task_of(layout.config).plan_start(layout, run, gpus)) is None:
            continue
        if elsewhere and not gpus:
            start = dataclasses.replace(start, processes=None)
        check_resumable(folder, start)


def changed_trainings(layout: AnyLayout) -> list[str]:
    """Return a line for each group of trainings that cannot resume with their current settings, by equal changes.

    A finished training counts only if its settings differ from those of the last run, so that Snakemake would repeat
    it. Settings that depend on the number of processes are not compared.
    """
    try:
        last = layout.read(layout.folder)
    except MTScaffoldError:  # never run, or by another version
        last = None
    found: dict[tuple[str, ...], list[Run]] = {}
    for run in layout.runs:
        if (started := read_start(layout.training(run))) is None:
            continue
        if layout.training_report(run).exists() and (last is None or not _repeated(last, layout, run)):
            continue
        try:
            # For as many processes as before, because the machine that trains may have other GPUs than this one.
            start = task_of(layout.config).plan_start(layout, run, 0, started.processes)
        except UsageError:  # this number does not divide the batch; only the machine that trained knows the right one
            continue
        if start is not None:
            different = changes(layout.training(run), dataclasses.replace(start, processes=None))
            found.setdefault(tuple(different), []).append(run)
    found.pop((), None)
    return [
        f"{layout.training(runs[0])}{f' and {len(runs) - 1} more' if len(runs) > 1 else ''}: "
        f"{not_resumable(different)}; {_remove(layout, runs)}, or choose another folder (--output)"
        for different, runs in found.items()
    ]


def _remove(layout: AnyLayout, runs: Iterable[Run]) -> str:
    """Return the advice to remove the folders of trainings."""
    return f"to train from scratch, remove {' '.join(str(layout.training(run)) for run in runs)}"


def _repeated(last: AnyLayout, layout: AnyLayout, run: Run) -> bool:
    """Return whether the settings of a training differ from those of the last run."""
    if run not in last.runs:
        return True
    same_data = last.binarised_of(run.system) == layout.binarised_of(run.system)
    return not same_data or depends_on(last, "train", run) != depends_on(layout, "train", run)


def check_rebuilding(layout: AnyLayout, planned: Iterable[str]) -> None:
    """Raise MTScaffoldError if a plan would rebuild the data of a training, even if the training itself is not planned.

    planned: the outputs of all planned jobs. The training could not resume on other data, and the files next to its
    model would no longer describe it.
    """
    outputs, task = {*map(str, planned)}, task_of(layout.config)
    found, rebuilt = list[Run](), list[Path]()
    for run in layout.runs:
        if read_start(layout.training(run)) is None:
            continue
        made_of = task.binarised_from(layout, layout.data_of(run.system), *TRAINED_ON)
        if stale := [path for path in [layout.binarised_of(run.system), *made_of] if str(path) in outputs]:
            found.append(run)
            rebuilt += stale
    if found:
        raise MTScaffoldError(
            f"{rebuilt[0]}: would be rebuilt, but {layout.training(found[0])} was trained on it: the configuration has "
            f"changed, or another version of mt-scaffold made the folder (see {layout.config_file}); restore them, "
            f"work in another folder (--output FOLDER), or, {_remove(layout, found)}"
        )
