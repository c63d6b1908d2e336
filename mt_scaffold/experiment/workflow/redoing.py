"""Train systems again from scratch; their old folders are set aside until the new trainings are finished."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.runtime.locks import take_lock
from mt_scaffold.experiment.tasks import task_of
from mt_scaffold.experiment.workflow.staleness import AnyLayout

# The suffix of a folder that was set aside.
SUFFIX = ".replaced"


def replaced(training: Path) -> Path:
    """Return the path to which the folder of a training is set aside."""
    return training.with_name(training.name + SUFFIX)


def confirm(layout: AnyLayout, systems: Sequence[str], confirmed: bool) -> bool:
    """Return whether to repeat the trainings of these systems: if ``confirmed``, or by asking at a terminal.

    layout: that of the systems that run. Raises UsageError for another system, if a training that is not repeated
    depends on one that is, and if there is no terminal to ask at.
    """
    for system in systems:
        if system not in layout.config.systems:
            raise UsageError(f"--redo {system}: no such system runs (there are {', '.join(layout.config.systems)})")
    found = [run for run in layout.of_systems(systems).runs if layout.training(run).exists()]
    reports = {layout.training_report(run) for run in found}
    task = task_of(layout.config)
    for run in layout.runs:
        if run.system not in systems and layout.training(run).exists() and reports & {*task.trained_after(layout, run)}:
            raise UsageError(
                f"--redo {' '.join(systems)}: the trainings of {run.system} read as much text as these; name it as well"
            )
    if confirmed or not found:
        return True
    count = f"{len(found)} training{'s' if len(found) > 1 else ''}"
    if not sys.stdin.isatty():
        raise UsageError(f"--redo {' '.join(systems)}: repeats {count}; without a terminal, confirm that with --yes")
    question = f"Train {', '.join(systems)} again ({count}, from scratch)? Old ones are kept until these finish. [y/N] "
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def set_aside(layout: AnyLayout, systems: Sequence[str]) -> None:
    """Set the trainings of some systems aside; an unfinished one is deleted if an older one is already set aside.

    Raises MTScaffoldError if another run is using the folder.
    """
    trainings = [layout.training(run) for run in layout.of_systems(systems).runs]
    trainings = [folder for folder in trainings if folder.exists()]
    if not trainings:
        return
    with take_lock(layout.folder, "another run is working in this folder; wait until it ends, or stop it"):
        remove_replaced(layout)
        # Lock all of them first, so that none is set aside if another is busy.
        with contextlib.ExitStack() as held:
            for folder in trainings:
                held.enter_context(take_lock(folder, "a training is running here; wait until it ends, or stop it"))
        for folder in trainings:
            if replaced(folder).exists():
                shutil.rmtree(folder)
            else:
                folder.rename(replaced(folder))
                print(f"{folder}: set aside as {replaced(folder).name} until it is trained again", file=sys.stderr)


def remove_replaced(layout: AnyLayout) -> None:
    """Delete the folders set aside for trainings that have been repeated since."""
    for run in layout.runs:
        if layout.training_report(run).exists() and replaced(layout.training(run)).exists():
            shutil.rmtree(replaced(layout.training(run)))
