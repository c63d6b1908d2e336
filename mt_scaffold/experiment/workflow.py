"""The logic of ``scripts/Snakefile``: options of the steps, threads, GPUs, checks before a run and a summary after."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.averaging_check import check_averaging as check_averaging
from mt_scaffold.experiment.configuration import Config
from mt_scaffold.experiment.data_report import DataReport, gather_reports
from mt_scaffold.experiment.fairseq_tools import check_options, option_arguments, sees_gpu
from mt_scaffold.experiment.layout import TRAINED_ON, Layout
from mt_scaffold.experiment.results import read_result, write_result
from mt_scaffold.experiment.tokenise import TokeniseReport, gather_chunks
from mt_scaffold.experiment.training_options import training_options
from mt_scaffold.files import PathLike


def one_of(names: Iterable[str]) -> str:
    """Return a regular expression that matches these names, and nothing where there are none.

    >>> one_of(["bpe", "bpe+dropout"]), one_of([])
    ('bpe|bpe\\\\+dropout', '(?!)')
    """
    return "|".join(map(re.escape, names)) or r"(?!)"


def segmented_in_training(config: Config) -> list[str]:
    """Return the systems with dropout, whose data is stored as words and resegmented in every epoch."""
    return [name for name, system in config.systems.items() if system.dropout]


def tokenise_flags(config: Config, part: str) -> str:
    """Return the options of ``mt-scaffold tokenise`` for ``train``, ``valid`` or a test set."""
    choices = config.tokenise_for(part)
    flags = {
        "--keep-punctuation": not choices.normalise_punctuation,
        "--keep-nonprinting": not choices.remove_nonprinting,
        "--keep-dashes": not choices.aggressive_dash_splitting,
        "--straight-apostrophes": choices.straight_apostrophes,
    }
    return " ".join(flag for flag, wanted in flags.items() if wanted)


def dropout_options(config: Config, system: str) -> str:
    """Return the training options of a system that are not in the configuration's train section."""
    dropout = config.systems[system].dropout
    return f"-- --bpe-dropout {dropout}" if dropout else ""


def average_flags(config: Config) -> str:
    """Return the options of ``mt-scaffold average`` that choose the checkpoints."""
    return f"--last {config.average.last}" + (" --updates" if config.average.by == "updates" else "")


def training_threads(config: Config, cores: int) -> int:
    """Return the threads of one training: on a CPU trainings share the cores, on a GPU they run one at a time."""
    trainings = len(config.systems) * len(config.seeds)
    return max(1, cores if sees_gpu() else math.ceil(cores / trainings))


def gpus_per_node(gpus: int, nodes: int) -> int:
    """Return the GPUs of each node; a profile counts those of all nodes. Raises UsageError for an uneven share."""
    if gpus % nodes:
        raise UsageError(f"the profile's {gpus} GPUs cannot be shared by {nodes} nodes; make gpu a multiple of nodes")
    return gpus // nodes


def check_fairseq_options(config: Config) -> None:
    """Raise UsageError for an option that fairseq does not accept, before anything runs."""
    all_in_training = len(segmented_in_training(config)) == len(config.systems)
    task = ["--task", "translation_bpe_dropout" if all_in_training else "translation_resumable"]
    options = {"train": training_options(config), "generate": config.translate.options}
    check_options({program: task + option_arguments(chosen) for program, chosen in options.items()})


def gather_training_text(
    chunks: Sequence[PathLike], reports: Sequence[PathLike], output: PathLike, report: PathLike
) -> None:
    """Join the tokenised chunks of the training text, and their step reports."""
    write_result(report, gather_chunks(chunks, output, [read_result(TokeniseReport, path) for path in reports]))


def data_reports(layout: Layout) -> list[str]:
    """Return the step reports that ``write_data_report`` reads."""
    names = [
        "get-data",
        *(f"tokenise-{name}" for name in _tokenised(layout)),
        *(f"clean-{part}" for part in TRAINED_ON),
    ]
    return [str(layout.step_report(name)) for name in names]


def write_data_report(layout: Layout) -> None:
    """Gather the step reports of every data step into data-report.json."""
    report = gather_reports(
        layout.step_report("get-data"),
        {name: layout.step_report(f"tokenise-{name}") for name in _tokenised(layout)},
        {part: layout.step_report(f"clean-{part}") for part in TRAINED_ON},
    )
    write_result(layout.data_report, report)


def closing_words(layout: Layout) -> str:
    """Return what a finished run prints: the comparison, warnings about the data, and where the results are."""
    lines = []
    if layout.comparison("txt").exists():
        lines.append(layout.comparison("txt").read_text(encoding="utf-8"))
    if layout.data_report.exists():
        warnings = read_result(DataReport, layout.data_report).raw.warnings
        lines += [f"Warning: {warning}" for warning in warnings]
    lines.append(f"All results are in {layout.folder} (see docs/architecture.md); open {layout.report} in a browser.")
    return "\n".join(lines)


def _tokenised(layout: Layout) -> list[str]:
    return [f"{part}.{language}" for part in layout.parts for language in layout.languages]
