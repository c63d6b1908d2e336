"""The steps of language modelling: their options, checks before a run and a summary after."""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Iterable
from pathlib import Path

from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike, write_text
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.data_folder import read_documents_folder
from mt_scaffold.experiment.binarise.parallel import DESCRIPTION
from mt_scaffold.experiment.configuration.experiment_folder import COMPARISON_KINDS
from mt_scaffold.experiment.configuration.language_model import LanguageModelConfig
from mt_scaffold.experiment.configuration.language_model_layout import TRAINED_ON, LanguageModelLayout
from mt_scaffold.experiment.runtime.fairseq import check_options, gpus_in_all, option_arguments, sees_gpu
from mt_scaffold.experiment.training.language_model_options import (
    check_averaging,
    options_for_data,
    training_options,
)
from mt_scaffold.experiment.training.resuming import check_resumable, read_start
from mt_scaffold.experiment.training.train import plan_start
from mt_scaffold.experiment.workflow import steps as workflow
from mt_scaffold.methods.resampling import training_options as resampling_options

# What both tasks do alike.
average_flags, gpus_per_node, one_of = workflow.average_flags, workflow.gpus_per_node, workflow.one_of
copy_codes, given_codes, learned_codes = workflow.copy_codes, workflow.given_codes, workflow.learned_codes
made_codes, mark_flags = workflow.made_codes, workflow.mark_flags
trimmed_codes, untrimmed_codes = workflow.trimmed_codes, workflow.untrimmed_codes


def check_plan(layout: LanguageModelLayout) -> None:
    """Raise MTScaffoldError for what can be known to fail before anything runs.

    These are files that are missing, codes that are malformed and, once a data folder exists, trainings on it that will
    not save the checkpoints which are averaged.
    """
    for name, system in layout.config.systems.items():
        for path in system.files:
            try:
                codes = Codes.read(path)
                _ = codes.merges
            except MTScaffoldError as error:
                raise UsageError(f"systems.{name}.codes: {error}") from None
            if not codes.header.bytes:
                raise UsageError(f"systems.{name}.codes: {path}: not of bytes; learn codes with --pretokenise")
    for part in layout.parts:
        layout.files(part)
    _shards(layout)
    for trained, comparison in layout.config.trainings:
        if ((data := layout.binarised_of(trained)) / DESCRIPTION).exists():
            check_averaging(layout.config, trained, comparison, read_documents_folder(data))


def results(layout: LanguageModelLayout) -> list[Path]:
    """Return what a complete run leaves behind."""
    files = [*map(layout.comparison, COMPARISON_KINDS), layout.statistics]
    files += layout.every_run(layout.samples) if layout.config.samples.prompts else []
    return [*files, *(layout.every_run(layout.thinned) if layout.config.train.thin else [])]


# -- documents, codes, ids


def read_flags(layout: LanguageModelLayout) -> str:
    """Return the options with which a command reads the documents."""
    return shlex.join(layout.format_flags)


def text_flags(layout: LanguageModelLayout, *parts: str) -> str:
    """Return the options of ``mt-scaffold binarise-documents`` for some parts of the documents."""
    flags: list[str] = []
    for part in parts:
        flags += [f"--{part if part in TRAINED_ON else 'test'}", *layout.patterns(part)]
    return f"{shlex.join(flags)} {read_flags(layout)}"


def _shards(layout: LanguageModelLayout) -> list[list[Path]]:
    """Return the files of the training documents, dealt to ``prepare.shards`` jobs."""
    files, shards = layout.files("train"), layout.config.prepare.shards
    if shards > len(files):
        raise UsageError(
            f"prepare.shards: {shards} jobs, but the training documents are {len(files)} files; use fewer shards"
        )
    return [files[number::shards] for number in range(shards)]


def shard(layout: LanguageModelLayout, item: str) -> list[Path]:
    """Return the files of one shard, by Snakemake's name of it: ``2-of-8``."""
    return _shards(layout)[int(item.partition("-of-")[0]) - 1]


def word_flags(config: LanguageModelConfig) -> str:
    """Return the options that say what a word is, of ``count-words`` and ``learn-bpe``."""
    codes = config.codes
    flags = ["--pretokenise", codes.pretokenise] + ["--split-digits"] * codes.split_digits
    return shlex.join(flags + ["--bytes"] * (codes.pretokenise == "spaces"))


def memory_flags(config: LanguageModelConfig) -> str:
    """Return the option that limits the memory of counting."""
    return "" if config.prepare.max_memory is None else shlex.join(["--max-memory", config.prepare.max_memory])


def learn_flags(config: LanguageModelConfig, codes: str) -> str:
    """Return the options of ``mt-scaffold learn-bpe`` for some codes, beyond those of the words."""
    prune = config.prepare.prune
    return workflow.learn_flags(config, codes) + (f" --prune {prune}" if prune > 1 else "")


# -- trainings


def training_flags(layout: LanguageModelLayout, system: str, comparison: str, seed: str) -> str:
    """Return the options of ``mt-scaffold train`` for one training, beyond those of every one."""
    flags = ["--system", system, "--comparison", comparison]
    if (report := layout.baseline_report(system, comparison, seed)) is not None:
        flags += ["--baseline-report", str(report)]
    return shlex.join(flags)


def dropout_flags(config: LanguageModelConfig, system: str) -> str:
    """Return the training options of a system that are not in the configuration's train section."""
    return shlex.join(["--", *arguments]) if (arguments := _dropout(config, system)) else ""


def _dropout(config: LanguageModelConfig, system: str) -> list[str]:
    return option_arguments(resampling_options(config.systems[system].resamplings))


def trained_after(layout: LanguageModelLayout, system: str, comparison: str, seed: str) -> list[Path]:
    """Return the report of the baseline's training where it decides how much text this one is trained on."""
    report = layout.baseline_report(system, comparison, seed)
    return [] if report is None else [report]


def training_threads(config: LanguageModelConfig, cores: int) -> int:
    """Return the threads of one training: on a CPU trainings share the cores, on a GPU they run one at a time."""
    trainings = len(config.trainings) * len(config.seeds)
    return max(1, cores if sees_gpu() else math.ceil(cores / trainings))


def check_fairseq_options(config: LanguageModelConfig) -> None:
    """Raise UsageError for an option that fairseq does not accept, before anything runs."""
    calls: list[tuple[str, list[str]]] = []
    for system, comparison in config.trainings:
        dropout = _dropout(config, system)
        task = "language_modeling_bpe_dropout" if dropout else "language_modeling_resumable"
        options = option_arguments(training_options(config, system, comparison))
        calls.append(("train", ["--task", task, *options, *dropout]))
    # Most trainings differ in nothing that fairseq's parser sees.
    check_options([call for number, call in enumerate(calls) if call not in calls[:number]])


def check_trainings(
    layout: LanguageModelLayout, planned: Iterable[tuple[str, str, str, int]], elsewhere: bool = False
) -> None:
    """Raise MTScaffoldError where a training that is to run was started with settings that it cannot resume with.

    planned: system, comparison, seed and GPUs (of all nodes together; 0: all of the machine that trains). elsewhere:
    whether that is another machine than this one. Snakemake deletes the report of a training before it runs it, and
    only then would the training itself refuse. A training whose data is still to be made is not checked.
    """
    for system, comparison, seed, gpus in planned:
        folder, data = layout.training(system, comparison, seed), layout.binarised_of(system)
        after = trained_after(layout, system, comparison, seed)
        if read_start(folder) is None or not all(path.exists() for path in [data / DESCRIPTION, *after]):
            continue
        report = after[0] if after else None
        options = options_for_data(layout.config, system, comparison, gpus_in_all(1, gpus), data, report)
        arguments = [*option_arguments(options), *_dropout(layout.config, system)]
        start = plan_start(data, folder, arguments, int(seed), gpus=gpus)
        if elsewhere and not gpus:
            start = dataclasses.replace(start, processes=None)
        check_resumable(folder, start)


# -- scores


def evaluate_flags(config: LanguageModelConfig) -> str:
    """Return the options of ``mt-scaffold evaluate`` that the configuration gives."""
    return shlex.join(option_arguments(config.evaluate.options) + ["--synthetic"] * config.synthetic)


def sample_flags(config: LanguageModelConfig) -> str:
    """Return the options of ``mt-scaffold sample`` beyond the prompts."""
    chosen = config.samples
    return (
        f"--length {chosen.length} --temperature {chosen.temperature} --top-k {chosen.top_k} --top-p {chosen.top_p} "
        f"--seed {chosen.seed}"
    )


def compare_flags(layout: LanguageModelLayout) -> str:
    """Return the scores and trainings of every comparison, and each system's baseline, for ``compare-models``."""
    config = layout.config
    scores, trainings = [], []
    for comparison in config.comparisons:
        for system in config.systems:
            run = config.run_of(system, comparison)
            for seed in config.seeds:
                label = f"{comparison}:{system}"
                trainings.append(f"{label}={layout.training_report(system, run, seed)}")
                scores += [f"{label}={layout.scores(system, run, seed, test)}" for test in config.test_sets]
    flags = [*scores, "--baseline", config.baseline, "--samples", str(config.evaluate.bootstrap_samples)]
    for system in config.systems:
        if (other := config.systems[system].baseline) is not None:
            flags += ["--against", f"{system}={other}"]
    return shlex.join([*flags, "--trainings", *trainings])


def write_prompts(config: LanguageModelConfig, output: PathLike) -> None:
    """Write the prompts for ``mt-scaffold sample``, one per line."""
    write_text(output, "".join(f"{prompt}\n" for prompt in config.samples.prompts))


def closing_words(layout: LanguageModelLayout) -> str:
    """Return what a finished run prints: the tables, and where the results are."""
    tables = [path for path in (layout.comparison("txt"), layout.vocabulary_table) if path.exists()]
    lines = [path.read_text(encoding="utf-8") for path in tables]
    lines.append(f"All results are in {layout.folder} (see docs/language_models.md).")
    return "\n".join(lines)
