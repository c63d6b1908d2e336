"""The steps that all tasks share, and functions for the Snakefile, among them checks before anything runs.

A step is a function of the layout of an experiment; its other arguments are its options on the command line
(``mt-scaffold experiment STEP``). The steps of a single task are in ``tasks/translation.py`` and
``tasks/language_modeling.py``, each with its rule in ``workflow/rules``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mt_scaffold.corpus.files import write_text
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.binarise.data_folder import DictionaryUse, dictionary_use
from mt_scaffold.experiment.configuration.layout import TRAINED_ON, Layout, Run, of_finished, read_folder
from mt_scaffold.experiment.configuration.training import with_own_options
from mt_scaffold.experiment.evaluation.metrics import KINDS
from mt_scaffold.experiment.runtime.fairseq import gpus_in_all, option_arguments, sees_gpu
from mt_scaffold.experiment.runtime.fairseq_options import Call, Checked, check_options
from mt_scaffold.experiment.runtime.results import COMPARISON_KINDS, write_result
from mt_scaffold.experiment.tasks import TASKS, codes, layout_of, task_of
from mt_scaffold.experiment.tasks.task import (
    CodesName,
    DataName,
    Gpus,
    Launcher,
    Nodes,
    Step,
    Systems,
    TestSet,
    Workers,
)
from mt_scaffold.experiment.training.averaging_check import check_checkpoints
from mt_scaffold.options_from_signature import Folder, Option

if TYPE_CHECKING:
    from mt_scaffold.experiment.evaluation.comparison import Comparison
    from mt_scaffold.experiment.evaluation.measures import Labelled

AnyLayout = Layout[Any]


# -- codes and binarised data


def learn(layout: AnyLayout, codes_name: CodesName, num_workers: Workers = 1) -> None:
    """Learn codes, or another model."""
    setting, text = codes.made_codes(layout.config)[codes_name], task_of(layout.config).learning(layout, codes_name)
    record = codes.learn_model(codes_name, setting, layout.codes(codes_name), num_workers, text)
    write_result(layout.step_record(f"learn-{codes_name}"), record)


def trim(layout: AnyLayout, codes_name: CodesName, num_workers: Workers = 1) -> None:
    """Trim the vocabulary of learned codes."""
    setting, text = codes.made_codes(layout.config)[codes_name], task_of(layout.config).learning(layout, codes_name)
    untrimmed = layout.codes(codes.untrimmed_codes(layout.config, codes_name))
    record = codes.trim_codes(codes_name, setting, untrimmed, layout.codes(codes_name), num_workers, text)
    write_result(layout.step_record(f"learn-{codes_name}"), record)


def copy_codes(layout: AnyLayout, codes_name: CodesName) -> None:
    """Copy a codes file that the configuration names."""
    file = layout.config.all_codes[codes_name].file
    if file is None:
        raise UsageError(f"{codes_name}: these codes are learned; run the step learn")
    codes.copy_codes(file, layout.codes(codes_name))


def binarise(layout: AnyLayout, data: DataName, num_workers: Workers = 1) -> None:
    """Make a data folder for training."""
    task_of(layout.config).binarise(layout, data, layout.binarised(data), TRAINED_ON, num_workers)


def binarise_test_set(layout: AnyLayout, data: DataName, test_set: TestSet, num_workers: Workers = 1) -> None:
    """Make the data folder of a test set."""
    task_of(layout.config).binarise(layout, data, layout.binarised_test(data, test_set), [test_set], num_workers)


# -- trainings


def train(layout: AnyLayout, run: Run, launcher: Launcher = "fairseq", nodes: Nodes = 1, gpus: Gpus = 0) -> None:
    """Train a system."""
    from mt_scaffold.experiment.training.train import train

    options = option_arguments(task_of(layout.config).training_options(layout, run, gpus_in_all(nodes, gpus)))
    data, output = layout.binarised_of(run.system), layout.training(run)
    train(data, output, options, seed=int(run.seed), launcher=launcher, nodes=nodes, gpus=gpus)


def average(layout: AnyLayout, run: Run) -> None:
    """Average the last checkpoints of a training."""
    from mt_scaffold.experiment.training.average import average, last_checkpoints

    which = layout.config.average
    inputs = last_checkpoints(layout.checkpoints(run), which.last, by_updates=which.by == "updates")
    print("averaged:", *average(inputs, layout.averaged(run)))


def strip_optimizer(layout: AnyLayout, run: Run) -> None:
    """Remove the optimiser state from the checkpoints of a training once they are averaged."""
    from mt_scaffold.experiment.training.strip_optimizer import strip_optimizer

    write_text(layout.stripped(run), strip_optimizer(layout.checkpoints(run)).as_text())


def tokens(layout: AnyLayout, run: Run) -> None:
    """Write how well a training has trained each of its tokens."""
    from mt_scaffold.experiment.report.trained_tokens import write_trained_tokens

    sides = task_of(layout.config).side_tokens(layout, run.system)
    losses = [layout.losses(run, test) for test in layout.config.test_sets]
    for problem in write_trained_tokens(layout.averaged(run), sides, losses, layout.trained_tokens(run)):
        print(f"mt-scaffold: warning: {problem}", file=sys.stderr)


# -- results


def compare(layout: AnyLayout, systems: Systems = "") -> None:
    """Compare the scores of systems, with significance."""
    from mt_scaffold.experiment.evaluation.comparison_files import as_text

    print(as_text(_compare(layout.showing(systems))), end="")


def _compare(layout: AnyLayout, with_losses: bool = False) -> Comparison:
    from mt_scaffold.experiment.evaluation.compare import compare
    from mt_scaffold.experiment.evaluation.measures import Labelled

    task, config = task_of(layout.config), layout.config
    compared = task.compared(layout)
    return compare(
        score_files(layout, with_losses),
        config.baseline,
        layout.folder / "comparison",
        task.samples(layout),
        layout.title,
        [each for each in task.published(layout) if each.beside in config.systems],
        baselines=config.own_baselines,
        trainings=[Labelled(group, run.system, layout.training_record(run)) for group, run in compared],
        dictionaries={name: _dictionary_use(layout, name) for name in config.systems},
        measure=task.measure(),
        reports=reports(layout),
        # Two trainings of one experiment can translate a short test set identically.
        allow_equal=True,
        primary=task.primary(layout),
    )


def compare_with_losses(layout: AnyLayout, systems: Systems = "") -> None:
    """Add bits per byte of the references to the comparison and the report."""
    layout = layout.showing(systems)
    # Nothing waits for the losses, so that both were written without them, and no step is to be repeated.
    with _same_times([*map(layout.comparison, COMPARISON_KINDS), layout.report]):
        _compare(layout, with_losses=True)
        report(layout)


@contextlib.contextmanager
def _same_times(files: Sequence[Path]) -> Iterator[None]:
    """Keep the times at which files were last modified, for Snakemake."""
    times = [(file, file.stat()) for file in files if file.exists()]
    try:
        yield
    finally:
        for file, before in times:
            if file.exists():
                os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def score_files(layout: AnyLayout, with_losses: bool = False) -> list[Labelled]:
    """Return the files of scores of every training on every test set, each with its group and system.

    with_losses: and with the losses that exist.
    """
    from mt_scaffold.experiment.evaluation.measures import Labelled

    def losses(run: Run, test: str) -> Path | None:
        found = layout.losses(run, test)
        return found if with_losses and found.exists() else None

    return [
        Labelled(group, run.system, layout.scores(run, test), losses(run, test))
        for test in layout.config.test_sets
        for group, run in task_of(layout.config).compared(layout)
    ]


def plan(
    folder: Folder,
    /,
    difference: Annotated[float, Option("D", "-d")],
    metric: Annotated[str | None, Option("NAME", choices=[name for name, kind in KINDS.items() if kind.tested])] = None,
) -> str:
    """Return the trainings needed to detect a difference between the systems of a finished experiment, as text.

    Estimate, from the trainings of a finished experiment with two or more seeds per system, how many seeds and test
    segments would detect a true difference of a given size between two systems with a probability of 80 %.

    folder: the folder of a finished experiment (experiments/NAME)
    difference: the difference to find, in the metric
    metric: the metric (default: BLEU, or bits per byte of language models)

    Systems without any scores, as after a run with --only, are left out. Raises as ``evaluation.plan.plan`` does, and
    MTScaffoldError if ``folder`` is not an experiment or lacks scores.
    """
    from mt_scaffold.experiment.evaluation.plan import as_text, plan

    config = read_folder(folder)
    layout, task = layout_of(Path(folder), config), task_of(config)
    scored = [name for name in config.systems if any(map(Path.exists, layout.of_systems([name]).every_scores()))]
    # If none is scored, the error names the first missing file.
    layout = layout.of_systems(scored or [*config.systems])
    with of_finished(folder):
        plans = plan(
            score_files(layout, with_losses=True),
            config.baseline,
            difference,
            metric,
            samples=task.samples(layout),
            baselines=config.own_baselines,
            measure=task.measure(),
        )
    return as_text(plans)


def _dictionary_use(layout: AnyLayout, system: str) -> DictionaryUse | None:
    tests = {test: layout.binarised_test_of(system, test) for test in layout.config.test_sets}
    return dictionary_use(layout.binarised_of(system), tests)


def reports(layout: AnyLayout) -> list[Path]:
    """Return the step records and data folders whose warnings the comparison shows, besides trainings and scores."""
    return [*codes.records(layout), *task_of(layout.config).reports(layout)]


def statistics(layout: AnyLayout, systems: Systems = "") -> None:
    """Measure the experiment and draw its figures."""
    layout = layout.showing(systems)
    task_of(layout.config).statistics(layout)


def report(layout: AnyLayout) -> None:
    """Write the HTML report of the experiment."""
    from mt_scaffold.experiment.report.html import html_report

    html_report(layout.folder, layout.report)


_COMMON: dict[str, Step] = {
    "learn": learn,
    "trim": trim,
    "copy-codes": copy_codes,
    "binarise": binarise,
    "binarise-test-set": binarise_test_set,
    "train": train,
    "average": average,
    "strip-optimizer": strip_optimizer,
    "tokens": tokens,
    "compare": compare,
    "statistics": statistics,
    "report": report,
    "compare-with-losses": compare_with_losses,
}
STEPS: dict[str, Step] = _COMMON | {name: step for task in TASKS.values() for name, step in task.steps.items()}


def step_of(name: str, layout: AnyLayout) -> Step:
    """Return a step of an experiment; raise UsageError if its task has no such step."""
    steps = _COMMON | dict(task_of(layout.config).steps)
    if name not in steps:
        raise UsageError(f"{layout.config_file}: task: {layout.config.task}: has no step {name}")
    return steps[name]


# -- functions for the Snakefile


def one_of(names: Iterable[str]) -> str:
    """Return a regular expression that matches these names, or nothing if there are none.

    >>> one_of(["bpe", "bpe+dropout"]), one_of([])
    ('bpe|bpe\\\\+dropout', '(?!)')
    """
    return "|".join(map(re.escape, names)) or r"(?!)"


def results(layout: AnyLayout) -> list[Path]:
    """Return the files of a complete run."""
    files = [*map(layout.comparison, COMPARISON_KINDS), layout.statistics]
    files += layout.every_run(layout.trained_tokens)
    files += task_of(layout.config).results(layout)
    return [*files, *(layout.every_run(layout.stripped) if layout.config.train.thin else [])]


def training_threads(layout: AnyLayout, cores: int) -> int:
    """Return the threads per training: on a CPU, trainings share the cores; on a GPU, they run one at a time."""
    return max(1, cores if sees_gpu() else math.ceil(cores / len(layout.runs)))


def check_gpus(layout: AnyLayout, planned: Iterable[tuple[Run, int]]) -> None:
    """Raise MTScaffoldError if a planned training needs a GPU that this machine lacks.

    planned: runs, each with its total number of GPUs.
    """
    from mt_scaffold.experiment.training import train

    for run, gpus in planned:
        chosen = with_own_options(layout.config.train, layout.config.systems[run.system].train)
        train.check_gpus(chosen.all_options, gpus)


def gpus_per_node(gpus: int, nodes: int) -> int:
    """Return the GPUs per node; a profile gives the total of all nodes. Raises UsageError for an uneven share."""
    if gpus % nodes:
        raise UsageError(f"the profile's {gpus} GPUs cannot be shared by {nodes} nodes; make gpu a multiple of nodes")
    return gpus // nodes


# Calls that check_fairseq_options has accepted in this process, as mt-scaffold run also checks before Snakemake does.
_accepted: dict[str, Checked] = {}


def check_fairseq_options(layout: AnyLayout) -> tuple[list[Call], Checked]:
    """Check the options of every system before anything runs, and return the distinct calls with the sizes of models.

    Raises UsageError for an option that fairseq rejects, for a model that cannot be built, and for a training without
    an end, or that will certainly save or keep fewer checkpoints than are needed; the plug-in's tasks check that again
    with the length of an epoch.
    """
    task, config = task_of(layout.config), layout.config
    calls = list[Call]()
    for call in task.fairseq_calls(layout):
        if call.program == "train":
            check_checkpoints(call.options, None, config.wanted_checkpoints, config.average.by)
        # Most trainings have the same options for fairseq's parser.
        same = next((each for each in calls if dataclasses.replace(each, trainings=call.trainings) == call), None)
        if same is None:
            calls.append(call)
        else:
            calls[calls.index(same)] = dataclasses.replace(same, trainings=same.trainings + call.trainings)
    if (key := repr(calls)) not in _accepted:
        _accepted[key] = check_options(calls)
    task.check_ends(layout)
    return calls, _accepted[key]


def closing_words(layout: AnyLayout, shown: Sequence[str]) -> str:
    """Return the last lines of a finished run: the comparison, the systems it lacks, and the place of the results."""

    def read(tables: Iterable[Path]) -> list[str]:
        return [table.read_text(encoding="utf-8") for table in tables if table.exists()]

    lines = read([layout.comparison("txt")])
    if missing := [name for name in layout.config.systems if name not in shown]:
        lines.append(
            f"Not compared, as they are not trained yet (a run without --only trains them): {', '.join(missing)}\n"
        )
    lines += read(task_of(layout.config).closing_tables(layout))
    # A run with --snakemake may have been for a part.
    made = f"All results are in {layout.folder}; open {layout.report} in a browser."
    return "\n".join([*lines, made if layout.report.exists() else f"The results so far are in {layout.folder}."])
