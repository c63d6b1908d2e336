"""Checkpoints of a language model → their scores on the tasks of lm-evaluation-harness (``lm_eval``).

The harness asks the questions and scores the answers of its ``hf`` model (``lm_eval_model.py``). The paper evaluates
with it, and reports the mean over 0-shot and 5-shot and over the last five checkpoints (sections "Common Sense
Reasoning", "Evaluation").
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Annotated, Any

from mt_scaffold.corpus.files import PathLike, refuse_overwriting
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.evaluation.bits_per_byte import training_name
from mt_scaffold.experiment.runtime.hugging_face import import_transformers
from mt_scaffold.experiment.runtime.provenance import versions
from mt_scaffold.experiment.runtime.results import write_result
from mt_scaffold.options import refuse_text
from mt_scaffold.options_from_signature import Option
from mt_scaffold.tables import format_table

# The metrics by which tasks are compared, the first that a task has. acc_norm: likelihoods by the lengths of choices.
_FIRST = ("acc_norm", "acc", "exact_match")
# The parts of the harness' results that are kept.
_RESULTS = ("results", "n-shot", "n-samples", "versions")


@dataclass(frozen=True)
class Asking:
    """The tasks that a model is asked, and how.

    tasks: tasks of lm_eval, by its names (lm-eval ls tasks)
    num_fewshot: solved questions before each one; give several to run each (default: 0; the paper: 0 5)
    include_path: folders with your own tasks
    limit: ask only the first N questions of each task, for a trial run
    batch_size: requests at once (default: 16)
    gpus: 1: require a GPU (default: use one if available)
    """

    tasks: Annotated[Sequence[str], Option("NAME")]
    num_fewshot: Sequence[int] = (0,)
    include_path: Annotated[Sequence[PathLike], Option("FOLDER")] = ()
    limit: int | None = None
    batch_size: int | None = None
    gpus: int = 0


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
    """The answers of the checkpoints of one model.

    checkpoints: their paths, as given. limit: the number of questions that each task was cut to, None for all.
    scores: the harness' results, for each checkpoint and number of solved questions. task_versions: the harness'
    version of each task. shortened: for each task and number of solved questions, the number of prompts that were too
    long for a checkpoint, so that it did not read their beginning.
    """

    system: str
    seed: int
    synthetic: bool
    checkpoints: list[str]
    data: str
    limit: int | None
    scores: list[dict[str, Any]] = field(repr=False)
    questions: list[Questions]
    task_versions: dict[str, str]
    versions: dict[str, str]
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
    """Return the scores as a table, one row per task, number of solved questions and metric: means over checkpoints."""
    rows: dict[tuple[str, str, str], list[float]] = {}
    for found in result.scores:
        for task, metrics in found["results"].items():
            shots = f"{found['n-shot'].get(task, found['num_fewshot'])}-shot"
            for key, value in metrics.items():
                metric, _, filtered = key.partition(",")
                if filtered and not metric.endswith("_stderr") and isinstance(value, int | float):
                    rows.setdefault((task, shots, _named(metric, filtered)), []).append(value)
    means = ([*names, f"{fmean(values):.4f}"] for names, values in rows.items())
    return format_table([["task", "solved", "metric", "mean"], *means])


def run_harness(
    checkpoints: Sequence[PathLike],
    data: PathLike,
    output: PathLike,
    asking: Asking,
    *,
    system: str | None = None,
    seed: int = 1,
    synthetic: bool = False,
) -> HarnessScores:
    """Run tasks of the harness on each of ``checkpoints``, and write the scores to ``output`` as JSON.

    checkpoints: fairseq's, of an architecture of transformers. data: the data folder that they were trained on. system,
    seed, synthetic: labels of the scores; system defaults to the name of the checkpoint's training.

    A task that fixes the number of solved questions keeps it, and counts once. Raises MTScaffoldError if a task, a
    checkpoint or data cannot be loaded, or without ``lm_eval``; UsageError for a task that ``lm_eval`` does not know.
    """
    refuse_text(checkpoints=checkpoints)
    if not checkpoints:
        raise UsageError("no checkpoints given; name one or more")
    if not asking.num_fewshot or min(asking.num_fewshot) < 0:
        raise UsageError("the numbers of solved questions (--num-fewshot) must be 0 or more")
    if asking.limit is not None and asking.limit < 1:
        raise UsageError(f"the number of questions (--limit) must be 1 or more, not {asking.limit}")
    refuse_overwriting([output], checkpoints)
    manager = check_tasks(asking)
    for name in asking.tasks:
        try:
            manager.load([name])
        except Exception as error:  # A task has its own code and data, and may fail in any way.
            what = str(error).strip().partition("\n")[0] or type(error).__name__
            raise MTScaffoldError(
                f"task {name}: cannot be loaded ({what}); check its YAML and data, or leave it out"
            ) from error
    from lm_eval import simple_evaluate
    from lm_eval.utils import handle_non_serializable

    from mt_scaffold.experiment.evaluation.lm_eval_model import HarnessModel

    scores: list[dict[str, Any]] = []
    questions: dict[tuple[str, int], Questions] = {}
    task_versions: dict[str, str] = {}
    shortened: dict[str, int] = {}
    for checkpoint in checkpoints:
        model = HarnessModel(checkpoint, data, asking.batch_size, asking.gpus)
        done: set[tuple[str, int]] = set()
        for shots in asking.num_fewshot:
            found: Any = simple_evaluate(
                model,
                tasks=list(dict.fromkeys(asking.tasks)),
                num_fewshot=shots,
                limit=asking.limit,
                task_manager=manager,
                bootstrap_iters=1000,
            )
            of = {"checkpoint": os.fspath(checkpoint), "num_fewshot": shots}
            scores.append(of | {key: found[key] for key in _RESULTS})
            for task in found["results"]:
                # A group has no samples, and a task that fixes the number of solved questions was asked before.
                asked, number = found["samples"].get(task), found["n-shot"].get(task, shots)
                if not asked or (task, number) in done:
                    continue
                done.add((task, number))
                # The harness repeats every question for each of the task's filters.
                once = [entry for entry in asked if entry["filter"] == asked[0]["filter"]]
                if cut := sum(model.is_cut(each) for entry in once for each in entry["arguments"]):
                    shortened[f"{task}, {number} solved"] = cut
                _add(questions, _questions(task, number, asked, found["results"][task]))
            task_versions |= {task: str(version) for task, version in found["versions"].items()}
    result = HarnessScores(
        system=training_name(checkpoints[-1]) if system is None else system,
        seed=seed,
        synthetic=synthetic,
        checkpoints=[os.fspath(path) for path in checkpoints],
        data=os.fspath(data),
        limit=asking.limit,
        scores=json.loads(json.dumps(scores, default=handle_non_serializable)),
        questions=list(questions.values()),
        task_versions=task_versions,
        versions=versions() | {"lm_eval": importlib.metadata.version("lm_eval")},
        shortened=shortened,
    )
    write_result(output, result)
    return result


def check_tasks(asking: Asking) -> Any:
    """Return the harness' index of tasks.

    Raises as ``run_harness`` does for an unknown task, a missing folder or harness. This takes seconds, and loads no
    data.
    """
    refuse_text(tasks=asking.tasks, include_path=asking.include_path)
    try:
        import_transformers("lm-eval")
        from lm_eval import tasks as built_in
    except ImportError as error:
        raise MTScaffoldError(f"lm-eval: {error}; pip install '.[harness]', or make venv for everything") from error
    folders = [os.fspath(path) for path in asking.include_path]
    for folder in folders:
        if not os.path.isdir(folder):
            raise MTScaffoldError(f"include_path: {folder}: no such folder; give the folder of your tasks")
    if not asking.tasks:
        raise UsageError("no tasks given; name one or more")
    manager = built_in.TaskManager(include_path=folders, include_defaults=False) if folders else None
    # The built-in tasks take long to read, so only if they are needed; a user's group may contain some of them.
    if manager is None or not set(asking.tasks) <= set(manager.all_tasks) - set(manager.all_groups):
        manager = built_in.TaskManager(include_path=folders or None)
    for task in asking.tasks:
        if task not in manager.all_tasks:
            raise UsageError(
                f"lm_eval has no task '{task}'; give one of its names (lm-eval ls tasks; docs/paper.md lists the "
                "paper's), or --include-path with a folder of your tasks"
            )
    return manager


def _named(metric: str, filtered: str) -> str:
    return metric if filtered == "none" else f"{metric} ({filtered})"


def _questions(
    task: str, num_fewshot: int, entries: Sequence[Mapping[str, Any]], results: Mapping[str, Any]
) -> Questions:
    """Return the answers of one checkpoint to a task, for each metric that is a mean over its questions.

    results: the harness' values of the metrics, by keys such as ``acc,none``.
    """
    by_filter: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        by_filter.setdefault(entry["filter"], []).append(entry)
    first = next(iter(by_filter.values()))
    asked = "".join(f"{entry['doc_hash']} {entry['prompt_hash']} {entry['target_hash']}\n" for entry in first)
    answers = {}
    for filtered, several in by_filter.items():
        for metric in several[0]["metrics"]:
            mean, values = _number(results.get(f"{metric},{filtered}")), [_number(entry[metric]) for entry in several]
            known = [value for value in values if value is not None]
            if mean is not None and len(known) == len(first) == len(values) and is_mean(mean, known):
                answers[_named(metric, filtered)] = [as_line(known)]
    ids = " ".join(str(entry["doc_id"]) for entry in first)
    return Questions(task, num_fewshot, ids, hashlib.sha256(asked.encode()).hexdigest(), answers)


def _number(value: object) -> float | None:
    if isinstance(value, str):
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _add(questions: dict[tuple[str, int], Questions], found: Questions) -> None:
    """Add the answers of a further checkpoint to those of the others."""
    known = questions.setdefault((found.task, found.num_fewshot), found)
    if known is found:
        return
    if known.sha256 != found.sha256:
        raise MTScaffoldError(f"task {found.task}: asks each checkpoint different questions; make its questions fixed")
    for metric in list(known.answers):
        if metric in found.answers:
            known.answers[metric] += found.answers[metric]
        else:
            del known.answers[metric]
