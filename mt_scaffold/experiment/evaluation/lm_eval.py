"""Checkpoints of a language model → their scores on the tasks of lm-evaluation-harness (``lm_eval``).

The harness asks the questions and counts, and its ``hf`` model answers them (``lm_eval_model.py``). The paper evaluates
with it, reports the mean over 0-shot and 5-shot, and of the last five checkpoints (sections "Common Sense Reasoning",
"Evaluation").
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from mt_scaffold.corpus.files import Output, PathLike, writing_to
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.runtime.hugging_face import import_transformers
from mt_scaffold.experiment.runtime.provenance import versions
from mt_scaffold.experiment.runtime.results import write_result
from mt_scaffold.tables import format_table

# The paper's tasks, as it calls them, and their names in the harness.
PAPER_TASKS = {
    "BoolQ": "boolq",
    "HellaSwag": "hellaswag",
    "OpenBookQA": "openbookqa",
    "PIQA": "piqa",
    "SIQA": "social_iqa",
    "StoryCloze": "storycloze_2016",
    "Winogrande": "winogrande",
    "TriviaQA": "triviaqa",
    "WebQuestions": "webqs",
}
_PAPER = "paper"
_OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_EVALUATE_OFFLINE")
_CHATTY = ("lm_eval", "datasets", "filelock", "fsspec", "httpx", "huggingface_hub", "urllib3")
_FEWSHOT_SEED = 1234  # the harness' own


@dataclass(frozen=True)
class TaskScore:
    """What a task's metric is, for each checkpoint in the order of ``HarnessScores.checkpoints``, and its mean.

    metric: the harness' name, with its filter where that is not "none". documents: the questions that were asked.
    standard_errors: the harness', None where it has none for this metric.
    """

    task: str
    metric: str
    num_fewshot: int
    documents: int
    mean: float
    values: list[float]
    standard_errors: list[float | None]


@dataclass(frozen=True)
class HarnessScores:
    """The scores of the checkpoints of one model.

    checkpoints: their paths, as given. limit: the number of documents that each task was cut to, None for all.
    task_versions: the harness' version of each task.
    """

    checkpoints: list[str]
    data: str
    limit: int | None
    scores: list[TaskScore]
    task_versions: dict[str, str]
    versions: dict[str, str]


def run_harness(
    checkpoints: Sequence[PathLike],
    data: PathLike | None,
    tasks: Sequence[str],
    output: PathLike,
    *,
    num_fewshot: Sequence[int] = (0,),
    include_path: Sequence[PathLike] = (),
    limit: int | None = None,
    batch_size: int | None = None,
    gpus: int = 0,
    download: bool = False,
    samples: Output | None = None,
) -> HarnessScores:
    """Run tasks of the harness on each of ``checkpoints``, and write the scores to ``output`` as JSON.

    checkpoints: fairseq's, of an architecture of transformers, or folders of causal models. data: the data folder that
    checkpoints were trained on. tasks: names of the harness, or the paper's names
    (PAPER_TASKS), all of which "paper" stands for. num_fewshot: how many solved questions precede each; a task that
    fixes their number keeps it, and is run once. include_path: folders with further tasks, as YAML. limit: ask only the
    first questions of each task. batch_size: requests at once. gpus: as for ``load_model``. download: fetch what is not
    in the local cache of Hugging Face; otherwise the network is not used. samples: a file for one line of JSON per
    question, with the log-likelihood of each choice.

    Raises MTScaffoldError where a checkpoint or data cannot be loaded, and without ``lm_eval``; UsageError for a task
    that it does not know.
    """
    if not checkpoints:
        raise UsageError("no checkpoints given; name one or more")
    if not num_fewshot or min(num_fewshot) < 0:
        raise UsageError("the numbers of solved questions (--num-fewshot) must be 0 or more")
    if limit is not None and limit < 1:
        raise UsageError(f"the number of questions (--limit) must be 1 or more, not {limit}")
    _prepare(download)
    from mt_scaffold.experiment.evaluation.lm_eval_model import HarnessModel

    manager = _task_manager(tasks, [os.fspath(path) for path in include_path])
    names = task_names(tasks, manager.all_tasks)
    runs: dict[tuple[str, str, int], list[tuple[float, float | None]]] = {}
    documents: dict[str, int] = {}
    task_versions: dict[str, str] = {}
    lines = []
    for checkpoint in checkpoints:
        model = HarnessModel(checkpoint, data, batch_size, gpus)
        done: set[tuple[str, int]] = set()
        for shots in num_fewshot:
            found = _evaluate(model, manager, names, shots, limit, download, done)
            # A group whose tasks differ in it has none of its own.
            fresh = {task: found["n-shot"].get(task, shots) for task in found["results"]}
            fresh = {task: number for task, number in fresh.items() if (task, number) not in done}
            for task, number in fresh.items():
                for metric, value, error in _figures(found["results"][task]):
                    runs.setdefault((task, metric, number), []).append((value, error))
            done |= fresh.items()
            documents |= {task: count["effective"] for task, count in found["n-samples"].items()}
            task_versions |= {task: str(version) for task, version in found["versions"].items()}
            for task, asked in found["samples"].items():
                if task in fresh:
                    lines += [_sample(checkpoint, task, fresh[task], entry) for entry in asked]
    scores = [
        TaskScore(
            task,
            metric,
            shots,
            documents.get(task, 0),
            fmean(value for value, _ in values),
            [value for value, _ in values],
            [error for _, error in values],
        )
        for (task, metric, shots), values in runs.items()
    ]
    paths = [os.fspath(path) for path in checkpoints]
    used = versions() | {"lm_eval": importlib.metadata.version("lm_eval")}
    result = HarnessScores(paths, "" if data is None else os.fspath(data), limit, scores, task_versions, used)
    if samples is not None:
        with writing_to(samples) as stream:
            stream.write("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode())
    write_result(output, result)
    return result


def task_names(tasks: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the harness' names of tasks, each once; UsageError for one that is not among ``known``."""
    by_paper = {name.lower(): task for name, task in PAPER_TASKS.items()}
    names: list[str] = []
    for task in tasks:
        if task == _PAPER:
            names += PAPER_TASKS.values()
            continue
        name = task if task in known else by_paper.get(task.lower(), task)
        if name not in known:
            raise UsageError(
                f"lm_eval has no task '{task}'; give one of its names (lm-eval ls tasks), one of the paper's "
                f"({', '.join(PAPER_TASKS)}), or --include-path with the folder of your own"
            )
        names.append(name)
    if not names:
        raise UsageError("no tasks given; name one or more, or 'paper' for all of the paper's")
    return list(dict.fromkeys(names))


def _prepare(download: bool) -> None:
    """Import the harness, with Hugging Face's libraries that it uses off the network, and their logs quiet."""
    for name in _OFFLINE:
        # They look at these once, when they are imported.
        os.environ[name] = "0" if download else "1"
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        import lm_eval  # noqa: F401

        import_transformers("lm-eval")
    except ImportError as error:
        raise MTScaffoldError(f"lm-eval: {error}; pip install '.[harness]', or make venv for everything") from error


def _task_manager(tasks: Sequence[str], folders: list[str]) -> Any:
    """Return the harness' index of tasks: of its own only where they are wanted, because reading those takes long."""
    from lm_eval.tasks import TaskManager

    for folder in folders:
        if not os.path.isdir(folder):
            raise MTScaffoldError(f"{folder}: no such folder; give --include-path the folder of your tasks")
    if folders:
        own = TaskManager(include_path=folders, include_defaults=False)
        if set(tasks) <= set(own.all_tasks):
            return own
    return TaskManager(include_path=folders or None)


def _evaluate(
    model: Any,
    manager: Any,
    names: Sequence[str],
    num_fewshot: int,
    limit: int | None,
    download: bool,
    done: Collection[tuple[str, int]],
) -> dict[str, Any]:
    """Return the harness' results with one number of solved questions, but for tasks that are ``done`` with it."""
    from lm_eval.evaluator import evaluate

    loaded: dict[str, Any] = {"tasks": {}, "groups": {}}
    for name in names:
        try:
            found = manager.load([name])
        except (OSError, ValueError, LookupError) as error:
            # What datasets raises: ConnectionError offline, FileNotFoundError or DatasetNotFoundError.
            what = str(error).strip().partition("\n")[0] or type(error).__name__
            advice = "check its YAML and data" if download else "add --download to fetch them, or check its YAML"
            raise MTScaffoldError(f"task {name}: its data cannot be loaded ({what}); {advice}") from error
        for task in found["tasks"].values():
            # 0 in a task's own YAML means that it must have none.
            if task.get_config("num_fewshot") != 0:
                task.set_config(key="num_fewshot", value=num_fewshot)
            task.set_fewshot_seed(seed=_FEWSHOT_SEED)
        if all((task, each.get_config("num_fewshot")) in done for task, each in found["tasks"].items()):
            continue
        for kind, entries in loaded.items():
            entries.update(found.get(kind, {}))
    if not loaded["tasks"]:
        return {"results": {}, "n-samples": {}, "versions": {}, "samples": {}, "n-shot": {}}
    result: dict[str, Any] = evaluate(lm=model, task_dict=loaded, limit=limit, bootstrap_iters=1000, log_samples=True)
    return result


def _figures(metrics: Mapping[str, Any]) -> list[tuple[str, float, float | None]]:
    """The metrics of a task, with their standard errors, from the harness' keys such as ``acc,none``."""
    found = []
    for key, value in metrics.items():
        metric, _, filtered = key.partition(",")
        if not filtered or metric.endswith("_stderr") or isinstance(value, str | bool) or value is None:
            continue
        error = metrics.get(f"{metric}_stderr,{filtered}")
        name = metric if filtered == "none" else f"{metric} ({filtered})"
        found.append((name, float(value), float(error) if isinstance(error, int | float) else None))
    return found


def _sample(checkpoint: PathLike, task: str, num_fewshot: int, entry: Mapping[str, Any]) -> dict[str, Any]:
    """What is written of one question."""
    return {
        "checkpoint": Path(checkpoint).name,
        "task": task,
        "num_fewshot": num_fewshot,
        "document": entry["doc_id"],
        "filter": entry["filter"],
        "target": entry["target"],
        "responses": entry["filtered_resps"],
        **{metric: entry[metric] for metric in entry["metrics"]},
    }


def format_harness(result: HarnessScores) -> str:
    """Return the scores as a table: one row per task and metric, the means over the checkpoints, and over the shots."""
    shots = sorted({score.num_fewshot for score in result.scores})
    rows: dict[tuple[str, str], dict[int, float]] = {}
    for score in result.scores:
        rows.setdefault((score.task, score.metric), {})[score.num_fewshot] = score.mean
    several = len(shots) > 1
    table = [["task", "metric", *(f"{number}-shot" for number in shots), *(["mean"] if several else [])]]
    for (task, metric), values in rows.items():
        cells = [f"{values[number]:.4f}" if number in values else "" for number in shots]
        table.append([task, metric, *cells, *([f"{fmean(values.values()):.4f}"] if several else [])])
    return format_table(table)
