"""The registry of tasks, each with the parts of an experiment that are specific to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.experiment.configuration import Experiment
from mt_scaffold.experiment.configuration.layout import Layout, read_folder
from mt_scaffold.experiment.tasks.language_modeling import LanguageModeling
from mt_scaffold.experiment.tasks.task import Task
from mt_scaffold.experiment.tasks.translation import Translation

TASKS: dict[str, Task[Any]] = {
    "translation": Translation(),
    "language_modeling": LanguageModeling(),
}


def task_of(experiment: Experiment) -> Task[Any]:
    """Return the task of an experiment."""
    return TASKS[experiment.task]


def layout_of(folder: PathLike, experiment: Experiment) -> Layout[Any]:
    """Return the layout of an experiment in ``folder``."""
    return task_of(experiment).layout.of(folder, experiment)


def read_layout(folder: PathLike) -> Layout[Any]:
    """Return the layout of an experiment of any task that has been started. Raises as read_folder does."""
    return layout_of(Path(folder), read_folder(folder))
