"""command.txt, the settings that a training was started with, and which of them may change when it resumes.

``last_checkpoint.py`` has the checkpoint that it resumes from.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mt_scaffold.corpus.files import PathLike, write_text
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration.layout import CHECKPOINTS, TRAINING_COMMAND
from mt_scaffold.experiment.configuration.training import STOP_OPTIONS
from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint
from mt_scaffold.experiment.runtime.fairseq import number_of, option_arguments, options_in
from mt_scaffold.experiment.runtime.schema import OptionValue
from mt_scaffold.experiment.training.last_checkpoint import knows_its_batch, reached, resumed_from

# When the training ends.
_ENDS = "max-epoch max-update stop-time-hours stop-min-lr stop-tokens stop-text patience"
# Options that change neither the batches nor what is learned from them; docs/fairseq.md names their kinds.
_MAY_CHANGE = {
    name
    for group in (
        _ENDS,
        # when and in which batches to validate
        "validate-interval validate-interval-updates validate-after-updates",
        "max-tokens-valid batch-size-valid max-sentences-valid",
        "disable-validation max-valid-steps fixed-validation-seed",
        # which checkpoints are saved and kept
        "average-last average-by",
        "save-interval save-interval-updates no-epoch-checkpoints write-checkpoints-asynchronously save-async",
        "keep-interval-updates keep-interval-updates-pattern keep-last-epochs keep-best-checkpoints",
        # the log
        "log-interval log-format log-file no-progress-bar reset-logging profile suppress-crashes",
        "tensorboard-logdir wandb-project aim-repo aim-run-hash azureml-logging",
        # how processes load data, find each other and add up gradients; their number is part of the batch
        "num-workers data-buffer-size ddp-backend bucket-cap-mb find-unused-parameters gradient-as-bucket-view",
        "fast-stat-sync heartbeat-timeout all-gather-list-size device-id local-rank local_rank nprocs-per-node",
        "load-checkpoint-on-all-dp-ranks empty-cache-freq cpu",
        "save-dir user-dir update-freq",
    )
    for name in group.split()
}
# The learning rate of these schedules depends on the length of the training, or on its validations.
_SCHEDULES = {
    "cosine": {"max-update"},
    "polynomial_decay": {"max-update"},
    "tri_stage": {"max-update"},
    "reduce_lr_on_plateau": {
        *("validate-interval", "validate-after-updates", "disable-validation", "max-valid-steps"),
        *("fixed-validation-seed", "max-tokens-valid", "batch-size-valid"),
    },
}
# With these, the learning rate does not depend on --max-update.
_OWN_LENGTH = ("total-num-update", "lr-period-updates")
# How processes communicate, and how the validation set is translated.
_MAY_CHANGE_PREFIXES = ("distributed-", "eval-bleu-")
# These train differently, and save other checkpoints.
_OTHER_BACKENDS = {"fully_sharded", "slowmo"}
# With these, the updates of an epoch depend on the number of processes, even with the same batches.
_BOUND_TO_PROCESSES = ("grouped-shuffling", "fix-batches-to-gpus", "skip-remainder-batch", "use-bmuf")
_DATA, _PROCESSES = "\n# data: ", "\n# processes: "


@dataclass(frozen=True)
class Start:
    """The settings that a training is started with.

    command: that of fairseq-train, with its launcher. data_digest: of the description of its data; empty if unknown.
    processes: GPUs of all nodes together, or processes on a CPU; None if unknown.
    """

    command: Sequence[str]
    data_digest: str
    processes: int | None

    @property
    def arguments(self) -> Sequence[str]:
        """The arguments of fairseq-train."""
        return self.command[self.command.index("fairseq_cli.train") + 1 :]

    @property
    def options(self) -> dict[str, OptionValue]:
        """fairseq-train's options."""
        return options_in(self.arguments)

    @property
    def data(self) -> str:
        """The data folder."""
        return self.arguments[0]

    @property
    def frequencies(self) -> str:
        """The batches per update in each epoch."""
        return _shown(self.options.get("update-freq", 1)).replace(" ", ",")

    @property
    def parts(self) -> list[int]:
        """Processes × update-freq in each epoch, up to the last one that changes it."""
        parts = [int(number) * (self.processes or 1) for number in re.findall(r"\d+", self.frequencies)]
        while len(parts) > 1 and parts[-1] == parts[-2]:
            parts.pop()
        return parts


def read_start(training: PathLike) -> Start | None:
    """Return the settings that a training with checkpoints was started with; None for one without checkpoints.

    Raises MTScaffoldError if command.txt is damaged or modified.
    """
    path = Path(training) / TRAINING_COMMAND
    if not path.exists() or not any((Path(training) / CHECKPOINTS).glob("*.pt")):
        return None
    text, _, processes = path.read_text(encoding="utf-8").rstrip("\n").partition(_PROCESSES)
    command, _, digest = text.partition(_DATA)
    if not processes.isdecimal():
        raise MTScaffoldError(f"{path}: damaged or modified; delete {training} to train from scratch")
    return Start(shlex.split(command), digest.strip(), int(processes))


def write_start(training: PathLike, start: Start) -> None:
    """Write command.txt."""
    text = f"{shlex.join(start.command)}{_DATA}{start.data_digest}{_PROCESSES}{start.processes}\n"
    write_text(Path(training) / TRAINING_COMMAND, text)


def check_resumable(training: PathLike, new: Start) -> None:
    """Raise MTScaffoldError if a training was started with settings that would change what is learned, naming them."""
    if changed := changes(training, new):
        raise MTScaffoldError(
            f"{training}: {not_resumable(changed)}; delete the folder to train from scratch, or choose another"
        )


def not_resumable(changed: Sequence[str]) -> str:
    """Return the message that a training cannot resume with these changes."""
    return f"holds a training that was started with different settings ({', '.join(changed)}; see command.txt there)"


def changes(training: PathLike, new: Start) -> list[str]:
    """Return the changed settings, each with its old and new value, that keep a training from resuming."""
    old = read_start(training)
    if old is None:
        return []
    changed = [*_changes(old, new), *_beyond(Path(training) / CHECKPOINTS, old, new)]
    if not changed and new.processes not in (None, old.processes) and not knows_its_batch(Path(training) / CHECKPOINTS):
        changed.append(
            f"{new.processes} processes instead of {old.processes}, from a checkpoint within an epoch that does not "
            "record the number of processes"
        )
    return changed


def ended_with(training: PathLike, new: Start) -> bool:
    """Return whether a training that has ended was started with these settings, on any number of processes."""
    old = read_start(training)
    if old is None:
        return True  # its checkpoints were removed, so this is unknown
    same_end = all(old.options.get(name) == new.options.get(name) for name in _ENDS.split())
    return same_end and not _changes(old, dataclasses.replace(new, processes=None))


def _changes(old: Start, new: Start) -> list[str]:
    """Return the differences between two starts of a training that are not allowed."""
    before, now = old.options, new.options
    fixed = _SCHEDULES.get(_shown(before.get("lr-scheduler")), set())
    if any(name in before for name in _OWN_LENGTH):
        fixed = fixed - {"max-update"}
    if not _OTHER_BACKENDS.isdisjoint([_shown(options.get("ddp-backend")) for options in (before, now)]):
        fixed = fixed | {"ddp-backend"}
    changed = [
        _change(name, before.get(name), now.get(name))
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
        and (name in fixed or (name not in _MAY_CHANGE and not name.startswith(_MAY_CHANGE_PREFIXES)))
    ]
    bound = [name for name in _BOUND_TO_PROCESSES if name in now]
    bound += ["ddp-backend slowmo"] if now.get("ddp-backend") == "slowmo" else []
    if new.processes is not None and old.parts != new.parts:
        changed.insert(0, f"the batch: {_batch(new)} instead of {_batch(old)}")
    elif new.processes not in (None, old.processes) and bound:
        changed.insert(0, f"{new.processes} processes instead of {old.processes}, with --{bound[0]}")
    # Without a digest the folder does not exist yet; its name then stands for its segmentation.
    same_folder = Path(old.data).name == Path(new.data).name
    if old.data_digest != new.data_digest if new.data_digest else not same_folder:
        changed.insert(0, "the data")
    return changed


def _beyond(checkpoints: Path, old: Start, new: Start) -> list[str]:
    """Return the limits that were lowered below the point that the training has already reached."""
    before, after = old.options, new.options
    limits = {name: number_of(after.get(name)) for name in (*STOP_OPTIONS.values(), "patience")}
    lowered = {name: now for name, now in limits.items() if now and not 0 < number_of(before.get(name)) <= now}
    source = resumed_from(checkpoints) if lowered else None
    if source is None:
        return []
    so_far = reached(load_checkpoint(source), source)
    epoch = so_far.epochs + so_far.in_next_epoch
    # Limits of subwords and text are reached or exceeded by the update that ends a training.
    is_beyond = {
        "max-update": (so_far.updates, so_far.updates > lowered.get("max-update", 0)),
        "max-epoch": (epoch, epoch > lowered.get("max-epoch", 0)),
        "stop-tokens": (so_far.tokens, (so_far.tokens or 0) >= lowered.get("stop-tokens", 0)),
        "stop-text": (so_far.text, (so_far.text or 0) >= lowered.get("stop-text", 0)),
        "patience": (so_far.waited, (so_far.waited or 0) > lowered.get("patience", 0)),
    }
    return [
        f"--{name} {now}, but the training is at {is_beyond[name][0]}"
        for name, now in lowered.items()
        if is_beyond[name][1]
    ]


def _change(name: str, before: OptionValue | None, now: OptionValue | None) -> str:
    """Return a changed option in words, such as ``--lr 0.002 instead of 0.001``."""
    old, new = _shown(before), _shown(now)
    if not old and not new:
        return f"--{name} {'removed' if now is None else 'added'}"
    return f"--{name} {new or 'none'} instead of {old or 'none'}"


def _shown(value: OptionValue | None) -> str:
    """Return an option's values as on a command line."""
    return " ".join(option_arguments({"": value})[1:]) if value is not None else ""


def _batch(start: Start) -> str:
    return f"{start.processes} processes x update-freq {start.frequencies}"
