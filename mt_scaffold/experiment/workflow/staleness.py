"""Why a step of an experiment is repeated or refused: the values that it depends on, and trainings that cannot resume.

Snakemake repeats a step whose inputs are newer than its outputs, or whose parameters have changed, among them the value
of ``depends_on``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration.layout import TRAINED_ON, Layout, Run
from mt_scaffold.experiment.tasks import task_of
from mt_scaffold.experiment.training.start import changes, ended_with, not_resumable, read_start

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
    wanted = [*whole.every_run(whole.training_record), *whole.every_run(whole.averaged), *whole.every_scores()]
    if not all(path.exists() for path in wanted):
        return False
    for run in whole.runs:
        try:
            start = task.start_of(layout, run, 0)
            if start is not None and not ended_with(layout.training(run), start):
                return False
        except MTScaffoldError:  # a run would report it
            return False
    return True


def check_repeated(
    layout: AnyLayout, trainings: Iterable[tuple[Run, int]], planned: Iterable[str], elsewhere: bool = False
) -> None:
    """Raise MTScaffoldError if a run would repeat a training that cannot resume, or rebuild the data of one.

    trainings: the planned runs, each with its total number of GPUs (0: all of the machine that trains). planned: the
    outputs of all planned jobs. elsewhere: whether another machine trains. Snakemake deletes the report of a training
    before it runs it, and only then would the training itself refuse. A training whose settings are not known yet is
    not checked.
    """
    found: dict[tuple[str, ...], list[Run]] = {}
    for run, gpus in trainings:
        if (started := read_start(layout.training(run))) is None:
            continue
        # For as many processes as before, because the machine that trains may have other GPUs than this one.
        unknown = elsewhere and not gpus
        try:
            start = task_of(layout.config).start_of(layout, run, gpus, started.processes if unknown else None)
        except UsageError:
            if unknown:  # the number does not divide the batch; only the machine that trains knows the right one
                continue
            raise
        if start is None:
            continue
        if unknown:
            start = dataclasses.replace(start, processes=None)
        if different := changes(layout.training(run), start):
            found.setdefault(tuple(different), []).append(run)
    refused = [
        f"{layout.training(runs[0])}{f' and {len(runs) - 1} more' if len(runs) > 1 else ''}: "
        f"{not_resumable(different)}; {_remove(layout, runs)}, or choose another folder (--output)"
        for different, runs in found.items()
    ]
    if refused:
        raise MTScaffoldError("\nmt-scaffold: ".join(refused))
    _check_rebuilding(layout, {*map(str, planned)})


def _remove(layout: AnyLayout, runs: Iterable[Run]) -> str:
    """Return the advice to remove the folders of trainings."""
    return f"to train from scratch, remove {' '.join(str(layout.training(run)) for run in runs)}"


def _check_rebuilding(layout: AnyLayout, outputs: Collection[str]) -> None:
    """Raise MTScaffoldError if a run would rebuild the data of a training, even if the training itself is not planned.

    The training could not resume on other data, and the files next to its model would no longer describe it.
    """
    task = task_of(layout.config)
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
