"""The tasks of lm-evaluation-harness in an experiment: ask every model, and compare all systems."""

from __future__ import annotations

from pathlib import Path

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration.language_model import HarnessTasks, LanguageModelConfig
from mt_scaffold.experiment.configuration.language_model_layout import LanguageModelLayout
from mt_scaffold.experiment.configuration.layout import Run
from mt_scaffold.experiment.tasks import codes
from mt_scaffold.experiment.tasks.task import Gpus, Systems


def tasks_of(config: LanguageModelConfig) -> HarnessTasks:
    """Return the section ``tasks``; raise UsageError if there is none."""
    if config.tasks is None:
        raise UsageError("the configuration has no tasks; add the section tasks with their names")
    return config.tasks


def check_plan(layout: LanguageModelLayout) -> None:
    """Raise MTScaffoldError for missing folders of tasks."""
    tasks = layout.config.tasks
    for folder in tasks.include_path if tasks is not None else ():
        if not Path(folder).is_dir():
            raise MTScaffoldError(f"tasks.include_path: {folder}: no such folder; give the folder of your tasks")


def check_names(layout: LanguageModelLayout) -> None:
    """Raise UsageError for a task that the harness does not know, MTScaffoldError if the harness is not installed."""
    if (tasks := layout.config.tasks) is not None:
        from mt_scaffold.experiment.evaluation.lm_eval import Asking, check_tasks

        check_tasks(Asking(tasks.names, include_path=tasks.include_path))


def evaluate_tasks(layout: LanguageModelLayout, run: Run, gpus: Gpus = 0) -> None:
    """Ask a model the tasks of lm-evaluation-harness."""
    from mt_scaffold.experiment.evaluation.lm_eval import Asking, format_harness, run_harness
    from mt_scaffold.experiment.training.average import last_checkpoints

    tasks, checkpoints = tasks_of(layout.config), [layout.averaged(run)]
    if tasks.last_checkpoints:
        by_updates = layout.config.average.by == "updates"
        checkpoints = last_checkpoints(layout.checkpoints(run), tasks.last_checkpoints, by_updates=by_updates)
    asking = Asking(
        tasks.names,
        tasks.num_fewshot,
        tasks.include_path,
        tasks.limit,
        tasks.batch_size,
        gpus,
        tasks.download,
    )
    scores = run_harness(
        checkpoints,
        layout.binarised_of(run.system),
        layout.task_scores(run),
        asking,
        system=run.system,
        seed=int(run.seed),
        synthetic=layout.config.synthetic,
    )
    print(format_harness(scores), end="")


def compare_tasks(layout: LanguageModelLayout, systems: Systems = "") -> None:
    """Compare all systems on the tasks of lm-evaluation-harness, with significance."""
    from mt_scaffold.experiment.evaluation.compare import compare
    from mt_scaffold.experiment.evaluation.comparison_tables import as_text
    from mt_scaffold.experiment.evaluation.measures import Labelled, TaskAnswers

    layout = layout.showing(systems)
    config = layout.config
    runs = [
        (group, system, layout.run_in(group, system, seed))
        for group in config.comparisons
        for system in config.systems
        for seed in config.seeds
    ]
    comparison = compare(
        [Labelled(group, system, layout.task_scores(run)) for group, system, run in runs],
        config.baseline,
        layout.folder / "tasks",
        config.evaluate.bootstrap_samples,
        layout.title,
        baselines={name: system.baseline for name, system in config.systems.items() if system.baseline is not None},
        measure=TaskAnswers(),
        trainings=[Labelled(group, system, layout.training_report(run)) for group, system, run in runs],
        reports=codes.reports(layout),
    )
    print(as_text(comparison), end="")
