"""The steps of translation: their options, threads and GPUs, checks before a run and a summary after."""

from __future__ import annotations

import dataclasses
import math
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.binarise.parallel import DESCRIPTION, Binarised
from mt_scaffold.experiment.configuration import Config, Experiment
from mt_scaffold.experiment.configuration.experiment_folder import COMPARISON_KINDS
from mt_scaffold.experiment.configuration.layout import TRAINED_ON, Layout
from mt_scaffold.experiment.configuration.training import STOP_OPTIONS
from mt_scaffold.experiment.data.report import DataReport, gather_reports
from mt_scaffold.experiment.data.tokenise import TokeniseReport, gather_chunks
from mt_scaffold.experiment.inference.ctranslate2_engine import parse_search
from mt_scaffold.experiment.inference.export_ctranslate2 import check_installed
from mt_scaffold.experiment.report.paper import papers_codes as papers_codes
from mt_scaffold.experiment.report.paper import write_compression as write_compression
from mt_scaffold.experiment.runtime.fairseq import check_options, gpus_in_all, option_arguments, sees_gpu
from mt_scaffold.experiment.runtime.results import read_result, write_result
from mt_scaffold.experiment.training.averaging_check import check_averaging, number_of
from mt_scaffold.experiment.training.resuming import check_resumable, read_start
from mt_scaffold.experiment.training.train import plan_start
from mt_scaffold.experiment.training.training_options import training_options
from mt_scaffold.experiment.workflow.codes import check_codes as check_codes
from mt_scaffold.experiment.workflow.codes import check_sentencepiece
from mt_scaffold.experiment.workflow.codes import compared_on as compared_on
from mt_scaffold.experiment.workflow.codes import copy_codes as copy_codes
from mt_scaffold.experiment.workflow.codes import given_codes as given_codes
from mt_scaffold.experiment.workflow.codes import learn_flags as learn_flags
from mt_scaffold.experiment.workflow.codes import learned_codes as learned_codes
from mt_scaffold.experiment.workflow.codes import learned_from as learned_from
from mt_scaffold.experiment.workflow.codes import made_codes as made_codes
from mt_scaffold.experiment.workflow.codes import mark_flags as mark_flags
from mt_scaffold.experiment.workflow.codes import trimmed_codes as trimmed_codes
from mt_scaffold.experiment.workflow.codes import unigram_models as unigram_models
from mt_scaffold.experiment.workflow.codes import untrimmed_codes as untrimmed_codes

# What ends a training with fairseq: a whole number above 0, or any value.
_ENDING_NUMBERS = (*STOP_OPTIONS.values(), "patience")
_ENDING_VALUES = {"stop-time-hours", "stop-min-lr"}


def one_of(names: Iterable[str]) -> str:
    """Return a regular expression that matches these names, and nothing where there are none.

    >>> one_of(["bpe", "bpe+dropout"]), one_of([])
    ('bpe|bpe\\\\+dropout', '(?!)')
    """
    return "|".join(map(re.escape, names)) or r"(?!)"


def tokenise_flags(config: Config, part: str) -> str:
    """Return the options of ``mt-scaffold tokenise`` for ``train``, ``valid`` or a test set."""
    choices = config.tokenise_for(part)
    flags = {
        "--keep-punctuation": not choices.normalise_punctuation,
        "--keep-nonprinting": not choices.remove_nonprinting,
        "--keep-dashes": not choices.aggressive_dash_splitting,
        "--straight-apostrophes": choices.straight_apostrophes,
        "--lowercase": choices.lowercase,
    }
    return " ".join(flag for flag, wanted in flags.items() if wanted)


def raw_parts(config: Config) -> list[str]:
    """Return the parts that have raw text: not ``valid``, where cleaning takes it out of the training words."""
    trained_on = [part for part in TRAINED_ON if part == "train" or config.data.valid_every is None]
    return [*trained_on, *config.test_sets]


def held_out(layout: Layout) -> list[Path]:
    """Return the words of the validation set where cleaning takes it out of the training words, else nothing."""
    if layout.config.data.valid_every is None:
        return []
    return [layout.words("valid", language) for language in layout.languages]


def hold_out_flags(layout: Layout) -> str:
    """Return the options of ``mt-scaffold clean`` that say which pairs are the validation set, and where it goes."""
    paths = held_out(layout)
    if not paths:
        return ""
    flags = ["--valid-every", str(layout.config.data.valid_every)]
    flags += ["--valid-source", str(paths[0]), "--valid-target", str(paths[1])]
    before = ["--count-before-cleaning"] if layout.config.data.valid_cut == "before_cleaning" else []
    return shlex.join(flags + before)


def check_plan(layout: Layout) -> None:
    """Raise UsageError for what would show only after hours, where it can be known before anything runs."""
    check_codes(layout.config)
    check_sentencepiece(layout.config)
    check_averaging(layout.config)


def codes_of_side(layout: Layout, segmentation: str, language: str) -> Path:
    """Return the codes that a segmentation uses for one language."""
    setting = layout.config.segmentations[segmentation]
    return layout.codes((setting.source if language == layout.source else setting.target).name)


def segmented_with(layout: Layout, segmentation: str, *languages: str) -> list[Path]:
    """Return the files that a segmentation needs for these languages: codes, and vocabularies for a threshold."""
    files = [codes_of_side(layout, segmentation, language) for language in languages]
    if layout.config.segmentations[segmentation].vocabulary_threshold is not None:
        files += [layout.vocabulary(segmentation, language) for language in languages]
    return list(dict.fromkeys(files))


def apply_command(layout: Layout, segmentation: str) -> str:
    """Return the command that writes a text as subwords."""
    return "apply-unigram" if layout.config.segmentations[segmentation].unigram else "apply-bpe"


def apply_flags(layout: Layout, segmentation: str, language: str) -> str:
    """Return the options of ``mt-scaffold apply-bpe`` for one language."""
    return _segmentation_flags(layout, segmentation, [language])


def segmentation_flags(layout: Layout, segmentation: str) -> str:
    """Return the options for both languages, of ``mt-scaffold dictionary``, ``binarise`` and ``binarise-words``."""
    return _segmentation_flags(layout, segmentation, layout.languages)


def _segmentation_flags(layout: Layout, segmentation: str, languages: Sequence[str]) -> str:
    setting = layout.config.segmentations[segmentation]
    arguments = ["--codes", *dict.fromkeys(str(codes_of_side(layout, segmentation, each)) for each in languages)]
    if setting.vocabulary_threshold is not None:
        arguments += ["--vocabulary", *(str(layout.vocabulary(segmentation, language)) for language in languages)]
        arguments += ["--vocabulary-threshold", str(setting.vocabulary_threshold)]
    if setting.glossaries:
        arguments += ["--glossaries", *setting.glossaries]
    if setting.inference != "merges":
        arguments += ["--inference", setting.inference]
    return shlex.join(arguments)


def dictionary_flags(config: Config, segmentation: str) -> str:
    """Return the options of ``mt-scaffold dictionary`` beyond the segmentation."""
    limits = config.binarise
    numbers = {"nwordssrc": limits.nwordssrc, "nwordstgt": limits.nwordstgt}
    numbers |= {"thresholdsrc": limits.thresholdsrc, "thresholdtgt": limits.thresholdtgt}
    flags = [f"--{name} {value}" for name, value in numbers.items() if value > 0]
    flags.append(f"--padding-factor {limits.padding_factor}")
    if not limits.joined_dictionary:
        flags.append("--separate-dictionaries")
    if config.is_resampled(segmentation):
        flags.append("--with-dropout")
    return " ".join(flags)


def kept_subwords(layout: Layout) -> list[Path]:
    """Return the subwords as text that are wanted beside the data folders."""
    if not layout.config.prepare.keep_text:
        return []
    return [
        layout.subwords(name, part, language)
        for name in layout.config.segmentations
        for part in layout.parts
        for language in layout.languages
    ]


def results(layout: Layout) -> list[Path]:
    """Return what a complete run leaves behind."""
    files = [*map(layout.comparison, COMPARISON_KINDS), layout.data_report, layout.report, *kept_subwords(layout)]
    files += [layout.compression] if papers_codes(layout.config) else []
    return [*files, *(layout.every_run(layout.thinned) if layout.config.train.thin else [])]


def dropout_options(config: Config, system: str) -> str:
    """Return the training options of a system that are not in the configuration's train section."""
    return shlex.join(["--", *arguments]) if (arguments := _resampling(config, system)) else ""


def _resampling(config: Config, system: str) -> list[str]:
    given, options = config.systems[system], []
    for option, sides in (("--bpe-dropout", given.dropouts), ("--bpe-uniform-sampling", given.uniform_samplings)):
        source, target = map(str, sides)
        if any(sides):
            options += [option, source] if source == target else [f"{option}-src", source, f"{option}-tgt", target]
    return options + ([] if given.sampling_alpha is None else ["--sampling-alpha", str(given.sampling_alpha)])


def average_flags(config: Experiment) -> str:
    """Return the options of ``mt-scaffold average`` that choose the checkpoints."""
    return f"--last {config.average.last}" + (" --updates" if config.average.by == "updates" else "")


def checkpoint_flags(config: Config, checkpoint: str) -> str:
    """Return the options of ``mt-scaffold average`` that take one of the last checkpoints, ``last-1`` the newest."""
    skip = int(checkpoint.removeprefix("last-")) - 1
    return f"--last 1 --skip {skip}" + (" --updates" if config.average.by == "updates" else "")


def trainings(layout: Layout) -> list[str]:
    """Return the reports of all trainings as ``mt-scaffold compare`` takes them."""
    return [
        f"{system}={layout.training_report(system, seed)}"
        for system in layout.config.systems
        for seed in layout.config.seeds
    ]


def training_threads(config: Config, cores: int) -> int:
    """Return the threads of one training: on a CPU trainings share the cores, on a GPU they run one at a time."""
    trainings = len(config.systems) * len(config.seeds)
    return max(1, cores if sees_gpu() else math.ceil(cores / trainings))


def gpus_per_node(gpus: int, nodes: int) -> int:
    """Return the GPUs of each node; a profile counts those of all nodes. Raises UsageError for an uneven share."""
    if gpus % nodes:
        raise UsageError(f"the profile's {gpus} GPUs cannot be shared by {nodes} nodes; make gpu a multiple of nodes")
    return gpus // nodes


def check_trainings(layout: Layout, planned: Iterable[tuple[str, str, int]], elsewhere: bool = False) -> None:
    """Raise MTScaffoldError where a training that is to run was started with settings that it cannot resume with.

    planned: system, seed and GPUs (of all nodes together; 0: all of the machine that trains) of each training.
    elsewhere: whether that is another machine than this one. Snakemake deletes the report of a training before it runs
    it, and only then would the training itself refuse.
    """
    for system, seed, gpus in planned:
        if read_start(layout.training(system, seed)) is None:
            continue
        storage = "words" if layout.config.systems[system].resamples else "ids"
        data, expected = layout.binarised_of(system), None
        if not (data / DESCRIPTION).exists():
            expected = Binarised(layout.source, layout.target, {"train": 0}, {}, storage, {}, "")
        options = option_arguments(training_options(layout.config, system, gpus_in_all(1, gpus)))
        options += _resampling(layout.config, system)
        folder = layout.training(system, seed)
        start = plan_start(data, folder, options, int(seed), gpus=gpus, expected=expected)
        if elsewhere and not gpus:
            start = dataclasses.replace(start, processes=None)
        check_resumable(folder, start)


def check_fairseq_options(config: Config) -> None:
    """Raise UsageError for an option that fairseq or the engine does not accept, and for a training without an end.

    Those of every system are checked, before anything runs.
    """
    if config.translate.engine == "ctranslate2":
        check_installed()
        parse_search(option_arguments(config.translate.options))
    trainings = {name: training_options(config, name) for name in config.systems}
    chosen = [("generate", [*_task(), *option_arguments(config.translate.options)])]
    for name, options in trainings.items():
        chosen.append(("train", [*_task(config.systems[name].resamples), *option_arguments(options)]))
    # Most systems differ in nothing that fairseq's parser sees.
    check_options([call for number, call in enumerate(chosen) if call not in chosen[:number]])
    for name, options in trainings.items():
        ends = any(number_of(options.get(option)) > 0 for option in _ENDING_NUMBERS)
        if not ends and options.keys().isdisjoint(_ENDING_VALUES):
            raise UsageError(f"systems.{name}: its training would never end; give train.stop (updates, epochs, ...)")


def _task(resamples: bool = False) -> list[str]:
    return ["--task", "translation_bpe_dropout" if resamples else "translation_resumable"]


def gather_training_text(
    chunks: Sequence[PathLike], reports: Sequence[PathLike], output: PathLike, report: PathLike
) -> None:
    """Join the tokenised chunks of the training text, and their step reports."""
    write_result(report, gather_chunks(chunks, output, [read_result(TokeniseReport, path) for path in reports]))


def data_reports(layout: Layout) -> list[str]:
    """Return the step reports that ``write_data_report`` reads."""
    names = [
        *_fetched(layout),
        *(f"tokenise-{name}" for name in _tokenised(layout)),
        *(f"clean-{part}" for part in _cleaned(layout)),
    ]
    return [str(layout.step_report(name)) for name in names]


def write_data_report(layout: Layout) -> None:
    """Gather the step reports of every data step into data-report.json."""
    report = gather_reports(
        [layout.step_report(name) for name in _fetched(layout)],
        {name: layout.step_report(f"tokenise-{name}") for name in _tokenised(layout)},
        {part: layout.step_report(f"clean-{part}") for part in _cleaned(layout)},
    )
    write_result(layout.data_report, report)


def closing_words(layout: Layout) -> str:
    """Return what a finished run prints: the comparison, warnings about the data, and where the results are."""
    lines = []
    if layout.comparison("txt").exists():
        lines.append(layout.comparison("txt").read_text(encoding="utf-8"))
    if layout.compression.exists():
        lines.append(layout.compression.read_text(encoding="utf-8"))
    if layout.data_report.exists():
        warnings = read_result(DataReport, layout.data_report).raw.warnings
        lines += [f"Warning: {warning}" for warning in warnings]
    lines.append(f"All results are in {layout.folder} (see docs/architecture.md); open {layout.report} in a browser.")
    return "\n".join(lines)


def _tokenised(layout: Layout) -> list[str]:
    return [f"{part}.{language}" for part in raw_parts(layout.config) for language in layout.languages]


def _cleaned(layout: Layout) -> list[str]:
    return [part for part in raw_parts(layout.config) if part in TRAINED_ON]


def _fetched(layout: Layout) -> list[str]:
    return ["get-data", *(f"get-data-{test}" for test in layout.config.test_sets)]
