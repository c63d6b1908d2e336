"""The answers of one model to the tasks of lm-evaluation-harness, as ``run_harness`` writes them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.tables import format_table

# The metrics by which tasks are compared, the first that a task has. acc_norm: likelihoods by the lengths of choices.
_FIRST = ("acc_norm", "acc", "exact_match")


@dataclass(frozen=True)
class TaskScore:
    """A metric of a task: its value for each checkpoint, in the order of ``HarnessScores.checkpoints``, and their mean.

    metric: the harness' name, with its filter unless that is "none". documents: the number of questions asked.
    standard_errors: the harness', or None if it has none for this metric.
    """

    task: str
    metric: str
    num_fewshot: int
    documents: int
    mean: float
    values: list[float]
    standard_errors: list[float | None]


@dataclass(frozen=True)
class Questions:
    """The questions of a task after a number of solved ones, and the figure of each answer: enough for a paired test.

    ids: the harness' numbers of the questions, those of the task's documents. sha256: of the questions as they were
    asked: document, prompt and right answer of each. answers: for each metric that is a mean over the questions, a line
    per checkpoint with a figure per question, such as ``1 0 0.5``.
    """

    task: str
    num_fewshot: int
    ids: str
    sha256: str
    answers: dict[str, list[str]]

    @property
    def count(self) -> int:
        """The number of questions."""
        return len(self.ids.split())

    def values(self, metric: str) -> list[list[float]]:
        """Return the figures of a metric, checkpoints × questions; raise MTScaffoldError for an incomplete line."""
        try:
            found = [list(map(float, line.split())) for line in self.answers[metric]]
        except ValueError as error:
            raise MTScaffoldError(f"{self.task}: {metric}: {error}; run lm-eval again") from error
        if not found or any(len(line) != self.count for line in found):
            raise MTScaffoldError(f"{self.task}: {metric}: not as many answers as questions; run lm-eval again")
        return found


@dataclass(frozen=True)
class HarnessScores:
    """The scores of the checkpoints of one model.

    checkpoints: their paths, as given. limit: the number of questions that each task was cut to, None for all.
    not_run: the tasks that could not be loaded, each with the reason. task_versions: the harness' version of each task.
    shortened: for each task and number of solved questions, the number of prompts that were too long for a checkpoint,
    so that it did not read their beginning.
    """

    system: str
    seed: int
    synthetic: bool
    checkpoints: list[str]
    data: str
    limit: int | None
    scores: list[TaskScore]
    questions: list[Questions]
    task_versions: dict[str, str]
    versions: dict[str, str]
    not_run: dict[str, str] = field(default_factory=dict)
    shortened: dict[str, int] = field(default_factory=dict)

    def asked(self, task: str) -> list[Questions]:
        """Return the questions of a task, for each number of solved ones before them."""
        return [each for each in self.questions if each.task == task]


def as_line(values: Iterable[float]) -> str:
    """Return figures as one line, each in the shortest form that is read back exactly.

    >>> as_line([1.0, 0.5, 0.1])
    '1 0.5 0.1'
    """
    return " ".join(str(int(value)) if value == int(value) else repr(value) for value in values)


def is_mean(mean: float, values: Sequence[float]) -> bool:
    """Return whether a score is the mean of its figures per question, up to rounding."""
    return bool(values) and math.isclose(mean, fmean(values), rel_tol=1e-6, abs_tol=1e-9)


def first_metric(metrics: Sequence[str]) -> str:
    """Return the metric by which a task is compared, of one or more such as ``exact_match (remove_whitespace)``.

    >>> first_metric(["acc", "acc_norm"]), first_metric(["f1"])
    ('acc_norm', 'f1')
    """
    # A filter follows the name.
    return next((each for name in _FIRST for each in metrics if each.partition(" ")[0] == name), metrics[0])


def format_harness(result: HarnessScores) -> str:
    """Return the scores as a table, one row per task and metric: the means over the checkpoints, and over the shots.

    The tasks that could not be run follow.
    """
    shots = sorted({score.num_fewshot for score in result.scores})
    rows: dict[tuple[str, str], dict[int, float]] = {}
    for score in result.scores:
        rows.setdefault((score.task, score.metric), {})[score.num_fewshot] = score.mean
    several = len(shots) > 1
    table = [["task", "metric", *(f"{number}-shot" for number in shots), *(["mean"] if several else [])]]
    for (task, metric), values in rows.items():
        cells = [f"{values[number]:.4f}" if number in values else "" for number in shots]
        table.append([task, metric, *cells, *([f"{fmean(values.values()):.4f}"] if several else [])])
    return format_table(table) + "".join(f"Not run: {task}: {reason}\n" for task, reason in result.not_run.items())
