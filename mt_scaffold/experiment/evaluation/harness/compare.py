"""Scores of several systems on tasks → one table: each task's accuracies, and a test against each system's baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.evaluation.compare import (
    RowKey,
    baselines_of,
    few_seeds,
    labelled_scores,
    refuse_replacing,
    step_warnings,
)
from mt_scaffold.experiment.evaluation.comparison import Spread
from mt_scaffold.experiment.evaluation.comparison_tables import write_comparison
from mt_scaffold.experiment.evaluation.document_tests import resample_documents
from mt_scaffold.experiment.evaluation.harness.comparison import PaperFigures, TaskComparison, TaskRow
from mt_scaffold.experiment.evaluation.harness.paper_tasks import main_metric, paper_name
from mt_scaffold.experiment.evaluation.harness.scores import HarnessScores, Questions
from mt_scaffold.experiment.evaluation.harness.tables import as_csv, as_latex, as_text
from mt_scaffold.experiment.evaluation.measures import Labelled, keys_of
from mt_scaffold.experiment.evaluation.significance import (
    RANDOM_SEED,
    Difference,
    Resampled,
    compare_trainings,
    corrected,
)
from mt_scaffold.experiment.runtime.provenance import versions
from mt_scaffold.experiment.runtime.results import read_result

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Floats = NDArray[numpy.float64]


@dataclass(frozen=True)
class _Run:
    """The scores of one training, and its names in the comparison."""

    path: Path
    group: str
    system: str
    scores: HarnessScores

    def asked(self, task: str) -> dict[int, Questions]:
        """Return the questions of a task, by the number of solved ones before them."""
        return {each.num_fewshot: each for each in self.scores.questions if each.task == task}


def compare_tasks(
    scores: Sequence[PathLike | Labelled],
    baseline: str,
    output: PathLike | None = None,
    samples: int = 1000,
    title: str = "",
    *,
    baselines: Mapping[str, str] = {},
    paper: Sequence[PaperFigures] = (),
    usual: Mapping[str, str] = {},
    trainings: Sequence[Labelled] = (),
    reports: Sequence[PathLike] = (),
) -> TaskComparison:
    """Compare each system in the files that ``run_harness`` wrote with its baseline, task by task.

    That is ``baselines[system]``, or else ``usual[system]``, or else ``baseline``, as for ``compare``. A system has the
    name in its file, unless the file is ``Labelled``; files labelled with a group are compared within it only. Each
    file is one training: its score on a task is the mean over its checkpoints and numbers of solved questions, in
    percent of the questions.

    For each group, task and system: mean and standard deviation (of the sample, n - 1) over the seeds, and for each
    metric the difference from the baseline's mean with its 95 % interval and its p-value (``significance``): over
    questions and trainings together, or over questions alone for a single training, from ``samples`` resamples of the
    questions, the same for all systems. p is corrected for all comparisons in the main metrics of the tasks (Holm), and
    separately for those in each other metric.

    ``paper``: the paper's figures, to show next to ours. A task that is not in every file is left out, and named with
    the reason. The warnings of ``trainings`` (training.json files, labelled with their systems) and ``reports`` (files
    of other steps) are shown below the first table, with one about fewer than three seeds. With ``output`` the
    comparison is written to ``output.txt``, ``.md``, ``.tex``, ``.json`` and ``.csv``.

    Raises MTScaffoldError if files are malformed, if a task's questions differ between them, or if they have no task in
    common; UsageError if two are for the same run, or a baseline has no scores.
    """
    labelled = labelled_scores(scores, samples)
    refuse_replacing(output, [*labelled, *trainings], reports)
    runs = [*map(_read, labelled)]
    _check_runs(runs)
    tasks, not_compared = _tasks(runs)
    if not tasks:
        why = "; ".join(f"{task}: {reason}" for task, reason in not_compared.items())
        raise MTScaffoldError(f"compare: the files have no task in common ({why or 'none has any'}); run lm-eval again")
    against = baselines_of([(run.group, run.system) for run in runs], baseline, baselines, usual)
    groups, systems = list(dict.fromkeys(run.group for run in runs)), list(against)
    trained: dict[tuple[str, str], dict[int, _Run]] = {}
    for run in runs:
        trained.setdefault((run.group, run.system), {})[run.scores.seed] = run
    answers = {
        RowKey(group, task, system): _answers(task, trained[group, system])
        for group in groups
        for task in tasks
        for system in systems
        if (group, system) in trained
    }
    metrics = {task: _metrics(task, answers, trained) for task in tasks}
    for task in [task for task in tasks if not metrics[task]]:
        not_compared[task] = "no metric that lies between 0 and 1 for every question"
    answers = {key: found for key, found in answers.items() if metrics[key.test_set]}
    first = {task: main_metric(task, found) for task, found in metrics.items() if found}
    tests = _test(answers, metrics, first, against, samples)
    rows = [
        TaskRow(
            group=key.group or None,
            task=key.test_set,
            paper_name=paper_name(key.test_set),
            system=key.system,
            baseline=against[key.system],
            seeds=list(trained[key.group, key.system]),
            questions=_questions(found),
            num_fewshot=sorted(runs[0].asked(key.test_set)),
            checkpoints=min(len(run.scores.checkpoints) for run in runs),
            main=first[key.test_set][0],
            why=first[key.test_set][1],
            scores={
                metric: Spread.of({seed: float(each.mean()) for seed, each in found[metric].items()})
                for metric in metrics[key.test_set]
            },
            tests={metric: several[key] for metric, several in tests.items() if key in several},
        )
        for key, found in answers.items()
    ]
    shown = {(row.group, row.task, row.system) for row in rows}
    comparison = TaskComparison(
        title=title,
        synthetic=any(run.scores.synthetic for run in runs),
        baseline=baseline,
        bootstrap_samples=samples,
        random_seed=RANDOM_SEED,
        comparisons=_counted(tests, first),
        rows=rows,
        paper=[
            each
            for each in paper
            if {(each.group, each.task, each.our_bpe), (each.group, each.task, each.our_scaffold)} <= shown
        ],
        not_compared=not_compared,
        limit=runs[0].scores.limit,
        task_versions={task: version for task, version in runs[0].scores.task_versions.items() if task in first},
        versions=versions() | {"lm_eval": runs[0].scores.versions.get("lm_eval", "")},
        shortened=_shortened(runs, tasks),
        warnings=[*few_seeds((row.system, len(row.seeds)) for row in rows), *step_warnings(trainings, reports)],
    )
    if output is not None:
        write_comparison(output, comparison, as_text, as_latex, as_csv)
    return comparison


def holds_tasks(path: PathLike) -> bool:
    """Return whether ``run_harness`` wrote a file; raise MTScaffoldError if it cannot be read."""
    return "task_versions" in keys_of(path)


def _read(labelled: Labelled) -> _Run:
    path = Path(str(labelled.path))
    scores = read_result(HarnessScores, path)
    return _Run(path, labelled.group, labelled.system or scores.system, scores)


def _check_runs(runs: Sequence[_Run]) -> None:
    """Raise UsageError if two files are for the same run; MTScaffoldError if checkpoint counts or limits differ."""
    known: dict[tuple[str, str, int], _Run] = {}
    for run in runs:
        other = known.setdefault((run.group, run.system, run.scores.seed), run)
        if other is not run:
            what = "group, system" if run.group else "system"
            raise UsageError(f"{run.path} and {other.path} are for the same {what} and seed; give only one")
        for what, own, others in (
            ("numbers of checkpoints", len(run.scores.checkpoints), len(runs[0].scores.checkpoints)),
            ("limits", run.scores.limit, runs[0].scores.limit),
        ):
            if own != others:
                raise MTScaffoldError(
                    f"{runs[0].path} and {run.path} have different {what} ({others} and {own}); run lm-eval alike"
                )


def _tasks(runs: Sequence[_Run]) -> tuple[list[str], dict[str, str]]:
    """Return the tasks that every file has, and the others with the reason; MTScaffoldError if questions differ."""
    found: dict[str, None] = {}
    others: dict[str, str] = {}
    for run in runs:
        found |= dict.fromkeys(each.task for each in run.scores.questions)
    for run in runs:
        for task, reason in run.scores.not_run.items():
            found.pop(task, None)
            others.setdefault(task, reason)
        for task in [task for task in found if not run.asked(task)]:
            del found[task]
            others[task] = f"not in {run.path}"
    for task in found:
        first = runs[0].asked(task)
        for run in runs:
            own = run.asked(task)
            # The digest covers the prompts, and so the solved questions before each one.
            if {shots: each.sha256 for shots, each in own.items()} != {
                shots: each.sha256 for shots, each in first.items()
            }:
                raise MTScaffoldError(
                    f"{runs[0].path} and {run.path}: {task} has different questions, or different numbers of solved "
                    "ones before them; run lm-eval alike for both"
                )
    return list(found), others


def _answers(task: str, runs: Mapping[int, _Run]) -> dict[str, dict[int, Floats]]:
    """Return the score of each question, in percent, by metric and seed: the mean over checkpoints and numbers of
    solved questions.
    """
    import numpy

    found: dict[str, dict[int, Floats]] = {}
    for seed, run in runs.items():
        asked = list(run.asked(task).values())
        common = [metric for metric in asked[0].answers if all(metric in each.answers for each in asked)]
        for metric in common:
            try:
                values = [numpy.array(each.values(metric), numpy.float64).mean(axis=0) for each in asked]
            except MTScaffoldError as error:
                raise MTScaffoldError(f"{run.path}: {error}") from error
            if len({len(each) for each in values}) > 1:
                raise MTScaffoldError(f"{run.path}: {task}: not as many questions with each number of solved ones")
            found.setdefault(metric, {})[seed] = 100 * numpy.mean(values, axis=0)
    return found


def _metrics(
    task: str,
    answers: Mapping[RowKey, dict[str, dict[int, Floats]]],
    trained: Mapping[tuple[str, str], Mapping[int, _Run]],
) -> list[str]:
    """Return the metrics of a task that every training has, and that are percentages of its questions."""
    several = [(found, trained[key.group, key.system]) for key, found in answers.items() if key.test_set == task]
    return [
        metric
        for metric in several[0][0]
        if all(
            found.get(metric, {}).keys() == by_seed.keys()
            and all(values.min() >= 0 and values.max() <= 100 for values in found[metric].values())
            for found, by_seed in several
        )
    ]


def _test(
    answers: Mapping[RowKey, dict[str, dict[int, Floats]]],
    metrics: Mapping[str, Sequence[str]],
    first: Mapping[str, tuple[str, str]],
    against: Mapping[str, str | None],
    samples: int,
) -> dict[str, dict[RowKey, Difference]]:
    """Return the tests by metric and row, corrected together in all main metrics, and separately in each other one."""
    main: dict[RowKey, Difference] = {}
    others: dict[str, dict[RowKey, Difference]] = {}
    for group, task in dict.fromkeys((key.group, key.test_set) for key in answers):
        there = {key.system: found for key, found in answers.items() if (key.group, key.test_set) == (group, task)}
        # Every resample of one question is that question.
        if _questions(next(iter(there.values()))) < 2:
            continue
        for metric in metrics[task]:
            resampled = _resampled({system: found[metric] for system, found in there.items()}, samples)
            for system in there:
                if (other := against[system]) is not None:
                    # sacreBLEU's command does not resample questions.
                    difference = replace(compare_trainings(resampled[system], resampled[other]), sacrebleu_p=None)
                    into = main if metric == first[task][0] else others.setdefault(metric, {})
                    into[RowKey(group, task, system)] = difference
    found: dict[str, dict[RowKey, Difference]] = {}
    for key, test in corrected(main).items():
        found.setdefault(first[key.test_set][0], {})[key] = test
    for metric, several in others.items():
        found.setdefault(metric, {}).update(corrected(several))
    return found


def _shortened(runs: Iterable[_Run], tasks: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return the number of prompts that were too long, by task with its number of solved questions, and by system."""
    found: dict[str, dict[str, int]] = {}
    for run in runs:
        system = ", ".join(filter(None, (run.group, run.system)))
        for asked, count in run.scores.shortened.items():
            if asked.rpartition(", ")[0] in tasks:
                counts = found.setdefault(asked, {})
                counts[system] = counts.get(system, 0) + count
    return found


def _questions(found: Mapping[str, Mapping[int, Floats]]) -> int:
    """Return the number of questions, from the answers by metric and seed."""
    return len(next(iter(next(iter(found.values())).values())))


def _resampled(systems: Mapping[str, Mapping[int, Floats]], samples: int) -> dict[str, list[Resampled]]:
    """Return the mean of every training on the same resamples of the questions."""
    import numpy

    flat = numpy.array([values for trained in systems.values() for values in trained.values()])
    # A mean is the ratio of a sum to the number of questions.
    drawn = iter(resample_documents(flat, numpy.ones(flat.shape[1]), samples))
    return {system: [next(drawn) for _ in trained] for system, trained in systems.items()}


def _counted(tests: Mapping[str, Iterable[RowKey]], first: Mapping[str, tuple[str, str]]) -> dict[str, int]:
    """Return the number of tests corrected together: ``main`` for the main metrics, and for each other metric."""
    counts: dict[str, int] = {}
    for metric, keys in tests.items():
        for key in keys:
            name = "main" if metric == first[key.test_set][0] else metric
            counts[name] = counts.get(name, 0) + 1
    return counts
