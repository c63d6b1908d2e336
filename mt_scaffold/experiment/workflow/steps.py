"""The steps that every task has, and what the Snakefile asks: which steps there are, and whether they can succeed.

A step is a function of the layout of an experiment; its other arguments are its options on the command line
(``mt-scaffold experiment STEP``). The steps that only one task has stand with that task.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import write_text
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration.layout import COMPARISON_KINDS, TRAINED_ON, Layout, Run
from mt_scaffold.experiment.runtime.fairseq import check_options, gpus_in_all, option_arguments, sees_gpu
from mt_scaffold.experiment.tasks import TASKS, codes, task_of
from mt_scaffold.experiment.tasks.task import Step
from mt_scaffold.experiment.training.resuming import check_resumable, read_start

AnyLayout = Layout[Any]


# -- codes and binarised data


def learn(layout: AnyLayout, codes_name: str, num_workers: int = 1) -> None:
    """Learn codes, or another model."""
    setting, text = codes.made_codes(layout.config)[codes_name], task_of(layout.config).learning(layout, codes_name)
    codes.learn(setting, layout.codes(codes_name), num_workers, text)


def trim(layout: AnyLayout, codes_name: str, num_workers: int = 1) -> None:
    """Trim the vocabulary of learned codes."""
    setting, text = codes.made_codes(layout.config)[codes_name], task_of(layout.config).learning(layout, codes_name)
    untrimmed = layout.codes(codes.untrimmed_codes(layout.config, codes_name))
    codes.trim_codes(setting, untrimmed, layout.codes(codes_name), num_workers, text)


def copy_codes(layout: AnyLayout, codes_name: str) -> None:
    """Copy a codes file that the configuration names."""
    file = layout.config.all_codes[codes_name].file
    if file is None:
        raise UsageError(f"{codes_name}: these codes are learned; run the step learn")
    codes.copy_codes(file, layout.codes(codes_name))


def binarise(layout: AnyLayout, segmentation: str, resampled: bool = False, num_workers: int = 1) -> None:
    """Make the data folder that is trained on; with --resampled, to be segmented again in every epoch."""
    output = layout.binarised(segmentation, resampled)
    task_of(layout.config).binarise(layout, segmentation, output, TRAINED_ON, resampled, num_workers)


def binarise_test_set(layout: AnyLayout, segmentation: str, test_set: str, num_workers: int = 1) -> None:
    """Make the data folder of a test set."""
    output = layout.binarised_test(segmentation, test_set)
    task_of(layout.config).binarise(layout, segmentation, output, [test_set], False, num_workers)


# -- trainings


def train(layout: AnyLayout, run: Run, launcher: str = "fairseq", nodes: int = 1, gpus: int = 0) -> None:
    """Train a system; gpus: of each node."""
    from mt_scaffold.experiment.training.train import train

    options = option_arguments(task_of(layout.config).training_options(layout, run, gpus_in_all(nodes, gpus)))
    data, output = layout.binarised_of(run.system), layout.training(run)
    train(data, output, options, seed=int(run.seed), launcher=launcher, nodes=nodes, gpus=gpus)


def average(layout: AnyLayout, run: Run, checkpoint: str = "") -> None:
    """Average the last checkpoints of a training; with --checkpoint, take one of them by itself."""
    from mt_scaffold.experiment.training.average import average, last_checkpoints

    which, last, skip = layout.config.average, layout.config.average.last, 0
    if checkpoint:
        last, skip = 1, int(checkpoint.removeprefix("last-")) - 1
    inputs = last_checkpoints(layout.checkpoints(run), last, by_updates=which.by == "updates", skip=skip)
    output = layout.checkpoint(run, checkpoint) if checkpoint else layout.averaged(run)
    print("averaged:", *average(inputs, output))


def strip_optimizer(layout: AnyLayout, run: Run) -> None:
    """Take the optimiser's state out of the checkpoints of a training once they are averaged."""
    from mt_scaffold.experiment.training.strip_optimizer import strip_optimizer

    names, freed = strip_optimizer(layout.checkpoints(run))
    write_text(layout.stripped(run), f"thinned: {' '.join(names) or 'none'} ({freed:,} bytes freed)\n")


# -- results


def compare(layout: AnyLayout) -> None:
    """Compare the scores of all systems, with significance."""
    from mt_scaffold.experiment.evaluation.compare import compare
    from mt_scaffold.experiment.evaluation.comparison_tables import as_text
    from mt_scaffold.experiment.evaluation.measures import Labelled

    task, config = task_of(layout.config), layout.config
    compared = task.compared(layout)
    comparison = compare(
        [
            Labelled(group, run.system, layout.scores(run, test, checkpoint))
            for checkpoint in ("", *layout.last_checkpoints)
            for test in config.test_sets
            for group, run in compared
        ],
        config.baseline,
        layout.folder / "comparison",
        task.samples(layout),
        layout.title,
        task.published(layout),
        baselines={name: system.baseline for name, system in config.systems.items() if system.baseline is not None},
        trainings=[Labelled(group, run.system, layout.training_report(run)) for group, run in compared],
        measure=task.measure(),
    )
    print(as_text(comparison), end="")


def statistics(layout: AnyLayout) -> None:
    """Measure the experiment and draw its figures."""
    task_of(layout.config).statistics(layout)


_COMMON: dict[str, Step] = {
    "learn": learn,
    "trim": trim,
    "copy-codes": copy_codes,
    "binarise": binarise,
    "binarise-test-set": binarise_test_set,
    "train": train,
    "average": average,
    "strip-optimizer": strip_optimizer,
    "compare": compare,
    "statistics": statistics,
}
STEPS: dict[str, Step] = _COMMON | {name: step for task in TASKS.values() for name, step in task.steps.items()}


def step_of(name: str, layout: AnyLayout) -> Step:
    """Return a step of an experiment; raise UsageError where its task has no such step."""
    steps = _COMMON | dict(task_of(layout.config).steps)
    if name not in steps:
        raise UsageError(f"{layout.config_file}: task: {layout.config.task}: has no step {name}")
    return steps[name]


# -- what the Snakefile asks


def one_of(names: Iterable[str]) -> str:
    """Return a regular expression that matches these names, and nothing where there are none.

    >>> one_of(["bpe", "bpe+dropout"]), one_of([])
    ('bpe|bpe\\\\+dropout', '(?!)')
    """
    return "|".join(map(re.escape, names)) or r"(?!)"


def results(layout: AnyLayout) -> list[Path]:
    """Return what a complete run leaves behind."""
    files = [*map(layout.comparison, COMPARISON_KINDS), layout.statistics]
    files += task_of(layout.config).results(layout)
    return [*files, *(layout.every_run(layout.stripped) if layout.config.train.thin else [])]


def training_threads(layout: AnyLayout, cores: int) -> int:
    """Return the threads of one training: on a CPU trainings share the cores, on a GPU they run one at a time."""
    return max(1, cores if sees_gpu() else math.ceil(cores / len(layout.runs)))


def gpus_per_node(gpus: int, nodes: int) -> int:
    """Return the GPUs of each node; a profile counts those of all nodes. Raises UsageError for an uneven share."""
    if gpus % nodes:
        raise UsageError(f"the profile's {gpus} GPUs cannot be shared by {nodes} nodes; make gpu a multiple of nodes")
    return gpus // nodes


def check_fairseq_options(layout: AnyLayout) -> None:
    """Raise UsageError for an option that fairseq or the engine does not accept, and for a training without an end.

    Those of every system are checked, before anything runs.
    """
    task = task_of(layout.config)
    calls = task.fairseq_calls(layout)
    # Most trainings differ in nothing that fairseq's parser sees.
    check_options([call for number, call in enumerate(calls) if call not in calls[:number]])
    task.check_ends(layout)


def check_start(layout: AnyLayout) -> None:
    """Raise MTScaffoldError for what the task can check only in seconds, once, before the first step."""
    task_of(layout.config).check_start(layout)


def check_trainings(layout: AnyLayout, planned: Iterable[tuple[Run, int]], elsewhere: bool = False) -> None:
    """Raise MTScaffoldError where a training that is to run was started with settings that it cannot resume with.

    planned: runs, each with its GPUs (of all nodes together; 0: all of the machine that trains). elsewhere: whether
    that is another machine than this one. Snakemake deletes the report of a training before it runs it, and only then
    would the training itself refuse. A training whose start is not known yet is not checked.
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


def check_rebuilding(layout: AnyLayout, planned: Iterable[str]) -> None:
    """Raise MTScaffoldError where a plan would rebuild the data that a training was started on.

    planned: the outputs of all jobs that are to run. The training could not resume on other data, and a model would no
    longer be described by what lies next to it.
    """
    outputs = {*map(str, planned)}
    for run in layout.runs:
        data = str(layout.binarised_of(run.system))
        if data in outputs and read_start(layout.training(run)) is not None:
            raise MTScaffoldError(
                f"{data}: would be rebuilt, but {layout.training(run)} was trained on it; restore the configuration "
                "that it was made with (systems that segment alike share a dictionary: name the same ones with only), "
                "or work in another folder (--config output=FOLDER)"
            )


def closing_words(layout: AnyLayout) -> str:
    """Return what a finished run prints: the comparison, and where the results are."""
    comparison = layout.comparison("txt")
    lines = [comparison.read_text(encoding="utf-8")] if comparison.exists() else []
    return "\n".join([*lines, *task_of(layout.config).closing_words(layout)])
