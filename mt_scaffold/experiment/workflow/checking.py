"""Check an experiment before anything runs: its configuration, files, options, models, GPUs and disk space."""

from __future__ import annotations

import math
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import Config, yaml_file
from mt_scaffold.experiment.configuration.layout import Layout, requested_experiment
from mt_scaffold.experiment.runtime.fairseq import gpus_here, number_of
from mt_scaffold.experiment.runtime.fairseq_options import Call, Checked, WrongOption
from mt_scaffold.experiment.runtime.schema import self_and_parents
from mt_scaffold.experiment.tasks import task_of
from mt_scaffold.experiment.tasks.training_text import TrainingText, shown_size
from mt_scaffold.experiment.training.train import HALF_PRECISION, missing_gpu
from mt_scaffold.experiment.workflow.common_steps import check_fairseq_options

# Bytes of a number in fp32; Adam stores two for each parameter.
_FP32 = 4
# The size of the ids of a text, relative to the text.
_IDS = 0.5
# Operations per second at 30 % of the peak of an H100 in half precision, and those of a token for each parameter.
_H100, _OPERATIONS = 0.3 * 989e12, 6


class CheckFailed(UsageError):
    """The problems that a check has found, one line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\nmt-scaffold: ".join(problems))
        self.problems = list(problems)


@dataclass(frozen=True)
class Findings:
    """The findings for an experiment that can run: facts about its size, and warnings.

    here: whether its trainings can run on this machine; otherwise the last warning says why not.
    """

    name: str
    facts: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    here: bool = True

    @property
    def exit_status(self) -> int:
        """The exit status of the command."""
        return 0 if self.here else MTScaffoldError.exit_status

    def as_text(self) -> str:
        """Return the findings as text to print."""
        outcome = f"with {_many(len(self.warnings), 'warning')}" if self.warnings else "and ready to run"
        outcome += "" if self.here else "; this machine cannot train it"
        lines = [f"{self.name}: checked, {outcome}", *(f"  {fact}" for fact in self.facts)]
        return "\n".join([*lines, *(f"Warning: {warning}" for warning in self.warnings)])


def check_experiment(configuration: PathLike, settings: Mapping[str, Any] = {}) -> Findings:
    """Check the experiment in a configuration file, without writing anything or using the network.

    settings: as for requested_experiment. Raises UsageError for a configuration that cannot be read, and CheckFailed
    with all other problems.
    """
    asked = requested_experiment([configuration], settings)
    experiment = asked.experiment
    task = task_of(experiment)
    layout = task.layout.of(asked.folder, experiment).of_systems(asked.systems)
    lines = yaml_file.read(configuration)[1]
    text = task.training_text(layout)
    problems = [f"{_place(configuration, lines, key)}: {problem}" for key, problem in text.problems]
    calls, checked = list[Call](), Checked([], [])
    try:
        # Otherwise it would report a missing file again.
        if not problems:
            task.check_early(layout)
            task.check_start(layout)
    except MTScaffoldError as error:
        problems.append(f"{configuration}: {error}")
    try:
        calls, checked = check_fairseq_options(layout)
    except WrongOption as error:
        key = next((key for key in lines if key.endswith(f".options.{error.option}")), "") if error.option else ""
        problems.append(f"{_place(configuration, lines, key)}: {error}" if key else f"{configuration}: {error}")
    except MTScaffoldError as error:
        problems.append(f"{configuration}: {error}")
    if problems:
        raise CheckFailed(problems)
    warnings = [*text.warnings, *_languages(experiment)]
    facts = [*text.described]
    trainings = f"{_many(len(layout.runs), 'training')} of {_many(len(layout.config.systems), 'system')}"
    facts.append(f"{trainings}, {_parameters(calls, checked)}")
    options = [call.options for call in calls if call.program == "train"]
    if options:
        facts += [*_hours(layout, calls, checked), _precision(layout, options)]
    needed = _disk(layout, text, calls, checked)
    free = shutil.disk_usage(_existing(asked.folder)).free
    facts.append(f"about {shown_size(needed)} of disk in {asked.folder} ({shown_size(free)} free)")
    if needed > free:
        warnings.append(f"{asked.folder}: too little disk: about {shown_size(needed)} needed, {shown_size(free)} free")
    missing = next(filter(None, (missing_gpu(each) for each in options)), None)
    return Findings(experiment.name, facts, [*warnings, *([missing] if missing else [])], here=missing is None)


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _place(configuration: PathLike, lines: Mapping[str, int], key: str) -> str:
    """Return a key with its file and line, in the form of errors about a configuration."""
    line = next((f":{lines[each]}" for each in self_and_parents(key) if each in lines), "")
    return f"{configuration}{line}: {key}"


def _languages(experiment: object) -> list[str]:
    """Return warnings of languages for which the tokeniser has no rules."""
    if not isinstance(experiment, Config) or experiment.synthetic:
        return []
    from mt_scaffold.experiment.data.tokenise import has_rules

    return [
        f"languages.{side}: the tokeniser has no rules for '{code}', and uses those of English"
        for side, code in (("source", experiment.languages.source), ("target", experiment.languages.target))
        if not has_rules(code)
    ]


def _parameters(calls: Sequence[Call], checked: Checked) -> str:
    sizes = sorted({f"{size / 1e6:.1f}" for size in checked.parameters if size}, key=float)
    if not sizes:
        return "models of unknown size (fairseq is not installed)"
    return f"{' to '.join(dict.fromkeys([sizes[0], sizes[-1]]))} million parameters"


def _precision(layout: Layout[Any], options: Sequence[Mapping[str, Any]]) -> str:
    """Return the precision of the trainings, the GPUs that the batch is meant for, and those of this machine."""
    kinds = sorted({next((name for name in (*HALF_PRECISION, "bf16") if each.get(name)), "fp32") for each in options})
    train = layout.config.train
    batch = f", batch {train.batch} for {_many(train.batch_gpus, 'GPU')}" if train.batch is not None else ""
    return f"{' and '.join(kinds)}{batch}; this machine has {gpus_here()}"


def _hours(layout: Layout[Any], calls: Sequence[Call], checked: Checked) -> list[str]:
    """Return an estimate of the time that trainings in half precision take, if their tokens are known."""
    hours, total = list[float](), 0.0
    for call, parameters in zip(calls, checked.parameters, strict=True):
        options = call.options
        if call.program != "train":
            continue
        # Stop counts the subwords of both sides.
        tokens = number_of(options.get("stop-tokens")) / (2 if layout.task == "translation" else 1)
        tokens = tokens or layout.config.train.batch_gpus * math.prod(
            number_of(options.get(name, 1)) for name in ("max-update", "max-tokens", "update-freq")
        )
        if not parameters or not tokens or not any(options.get(name) for name in (*HALF_PRECISION, "bf16")):
            return []
        hours.append(_OPERATIONS * parameters * tokens / _H100 / 3600)
        total += call.trainings * hours[-1]
    one = " to ".join(dict.fromkeys(f"{each:,.0f}" for each in (min(hours), max(hours))))
    return [f"about {one} hours of an H100 for one training and {total:,.0f} for all, at 30 % of its peak"]


def _existing(folder: Path) -> Path:
    return next(each for each in [folder.absolute(), *folder.absolute().parents] if each.exists())


def checkpoint_size(parameters: int, saved: int, options: Collection[str]) -> int:
    """Return the bytes of a checkpoint: the model in fp32, Adam's moments and, in half precision, the fp32 copy.

    parameters, saved: numbers of parameters, as in Checked. options: names of options of fairseq-train.
    """
    copy = "fp16" in options or "bf16" in options
    return _FP32 * (saved + (3 if copy else 2) * parameters)


def _disk(layout: Layout[Any], text: TrainingText, calls: Sequence[Call], checked: Checked) -> float:
    """Return the approximate bytes of text, checkpoints and models while the trainings run."""
    # Raw text and words; folders that resample hold words, not ids.
    resampled = {layout.data_of(name): system.resamples for name, system in layout.config.systems.items()}
    needed = (text.size or 0) * (2 + sum(1 if words else _IDS for words in resampled.values()))
    for call, parameters, saved in zip(calls, checked.parameters, checked.saved, strict=True):
        options = call.options
        kept = number_of(options.get("keep-last-epochs")) or number_of(options.get("max-epoch", 10))
        kept += number_of(options.get("keep-interval-updates"))
        # In addition, the last, the best, and the average, which has no optimiser state.
        checkpoints = (max(kept, 1) + 2) * checkpoint_size(parameters or 0, saved or 0, options)
        needed += call.trainings * (checkpoints + _FP32 * (parameters or 0))
    return needed
