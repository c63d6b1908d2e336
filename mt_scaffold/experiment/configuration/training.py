"""The sections train and average of an experiment configuration, and checks for contradictions in them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration.data import NAME
from mt_scaffold.experiment.runtime.schema import OptionValue, Pattern, WrongValue, bounds, check_one_of

OPTION = Pattern(r"[A-Za-z0-9][A-Za-z0-9_-]*", "an option without its leading dashes, such as max-tokens")
# The option of fairseq-train for each rule of Stop; the last two belong to this package's tasks.
STOP_OPTIONS = {"updates": "max-update", "epochs": "max-epoch", "tokens": "stop-tokens", "text": "stop-text"}
# The metric in fairseq's log for each value of patience_on.
METRICS = {"bleu": "bleu", "loss_per_byte": "bits_per_byte"}
_PATIENCE_OPTIONS = ("patience", "best-checkpoint-metric", "maximize-best-checkpoint-metric", "disable-validation")
AnyTrain = TypeVar("AnyTrain", bound="TrainOptions")


@dataclass(frozen=True)
class Stop:
    """When a training ends; exactly one of these.

    tokens: subwords of source and target, with one ``</s>`` per sentence. text: UTF-8 bytes of the words of source and
    target, with one line end per sentence. Only sentences that were trained on count, summed over all GPUs.
    """

    updates: int | None = field(default=None, metadata=bounds(least=1))
    epochs: int | None = field(default=None, metadata=bounds(least=1))
    tokens: int | None = field(default=None, metadata=bounds(least=1))
    text: int | None = field(default=None, metadata=bounds(least=1))

    @property
    def rules(self) -> dict[str, int]:
        """The rules that are set, by name."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


@dataclass(frozen=True)
class SystemTrain:
    """The training options of one system, which replace those of the train section."""

    options: dict[str, OptionValue] = field(metadata=bounds(key_pattern=OPTION))


@dataclass(frozen=True)
class Batch:
    """The plain fairseq-train options of one batch size; their ``update-freq`` is meant for this number of ``gpus``."""

    options: dict[str, OptionValue] = field(metadata=bounds(key_pattern=OPTION))
    gpus: int | None = field(default=None, metadata=bounds(least=1))


@dataclass(frozen=True)
class TrainOptions:
    """Plain fairseq-train options: ``true`` is a flag, ``false`` leaves it out, a list gives several values.

    ``batch`` chooses one of ``batches``, whose options are added to ``options``. ``thin``: after averaging, all
    checkpoints but the last are stripped of their optimiser state.
    """

    options: dict[str, OptionValue] = field(metadata=bounds(key_pattern=OPTION))
    batch: str | None = None
    batches: dict[str, Batch] = field(default_factory=dict, metadata=bounds(key_pattern=NAME))
    thin: bool = False

    @property
    def all_options(self) -> dict[str, OptionValue]:
        """The options, including those of the chosen batch, without those that ``false`` leaves out."""
        options = self.options | (self.batches[self.batch].options if self.batch is not None else {})
        return {name: value for name, value in options.items() if value is not False}

    @property
    def batch_gpus(self) -> int:
        """The number of GPUs that ``update-freq`` is meant for."""
        return (self.batches[self.batch].gpus if self.batch is not None else None) or 1

    def options_on(self, gpus: int | None) -> dict[str, OptionValue]:
        """Return all options, with the ``update-freq`` that gives the chosen batch on this number of GPUs.

        gpus: 0 for a CPU, where one process makes the whole batch; None: the number that the batch is meant for. Raises
        UsageError if the batch cannot be divided evenly.
        """
        options = self.all_options
        batch = self.batches[self.batch] if self.batch is not None else None
        if batch is None or batch.gpus is None or gpus is None:
            return options
        gpus = gpus or 1
        update_freq = options.get("update-freq", 1)
        if type(update_freq) is not int:
            raise UsageError(
                f"train.batches.{self.batch}: update-freq must be a whole number if gpus is given, not {update_freq}"
            )
        parts = batch.gpus * update_freq
        if parts % gpus:
            raise UsageError(
                f"train.batches.{self.batch}: a batch of {batch.gpus} GPUs x update-freq {update_freq} = {parts} parts "
                f"cannot be shared by {gpus} GPUs; use a number of GPUs that divides {parts}, or another batch"
            )
        return options | {"update-freq": parts // gpus}


@dataclass(frozen=True)
class Train(TrainOptions):
    """How translation systems are trained: options, and when a training ends.

    ``stop`` ends the training, instead of max-update or max-epoch in the options. With ``patience`` it ends earlier,
    once that many validations in a row have not improved ``patience_on``: BLEU of the validation set, or the loss per
    byte of its text; the same measure selects checkpoint_best.pt. ``validate_bleu``: compute this BLEU in any case.
    """

    stop: Stop | None = None
    patience: int | None = field(default=None, metadata=bounds(least=1))
    patience_on: Literal["bleu", "loss_per_byte"] | None = None
    validate_bleu: bool = False

    @property
    def validates_bleu(self) -> bool:
        """Whether BLEU of the validation set is computed."""
        return self.validate_bleu or self.patience_on == "bleu"


@dataclass(frozen=True)
class Average:
    """The number of last checkpoints that are averaged; 0 takes the best one on the validation set.

    by: average checkpoints of whole ``epochs``, or those of every ``save-interval-updates`` ``updates``.
    """

    last: int = field(default=5, metadata=bounds(least=0))
    by: Literal["epochs", "updates"] = "epochs"


def with_own_options(train: AnyTrain, own: SystemTrain | None) -> AnyTrain:
    """Return a train section, with a system's own options in place of those of the same name."""
    if own is None:
        return train
    batches = {
        name: dataclasses.replace(batch, options=batch.options | own.options) for name, batch in train.batches.items()
    }
    return dataclasses.replace(train, options=train.options | own.options, batches=batches)


def check_training(train: Train, average: Average) -> None:
    """Raise WrongValue if train and average contradict each other, or trainings would be stopped unfairly."""
    options = train.all_options
    if train.stop is not None:
        check_one_of("train.stop", train.stop, STOP_OPTIONS)
        for name in STOP_OPTIONS.values():
            if name in options:
                raise WrongValue("train.stop", f"the options also set {name}; keep one of them")
    _check_validation(train, options)
    check_saved(options, average, average.last)
    by_epoch = average.by == "epochs" and not options.get("save-interval-updates")
    if train.patience is not None and by_epoch and average.last > train.patience + 1:
        raise WrongValue(
            "average.last",
            f"{average.last} checkpoints are needed, but with patience {train.patience} a training can end after "
            f"{train.patience + 1} epochs; average fewer, or be more patient",
        )


def check_saved(options: Mapping[str, OptionValue], average: Average, wanted: int) -> None:
    """Raise WrongValue if fairseq-train's ``options`` save none of the ``wanted`` number of checkpoints."""
    if average.by == "updates" and wanted and not options.get("save-interval-updates"):
        raise WrongValue("average.by", "updates needs save-interval-updates in the options of train; add it")
    if average.by == "epochs" and wanted and options.get("no-epoch-checkpoints"):
        raise WrongValue("average.last", "no-epoch-checkpoints in the options saves none to average; remove it")
    if average.last == 0 and options.get("disable-validation"):
        raise WrongValue("average.last", "0 takes the best checkpoint; remove disable-validation")


def _check_validation(train: Train, options: Mapping[str, OptionValue]) -> None:
    if (train.patience is None) != (train.patience_on is None):
        if train.patience is None:
            raise WrongValue("train.patience_on", "needs train.patience, in validations; add it, or remove this")
        raise WrongValue("train.patience", "needs train.patience_on, bleu or loss_per_byte; add it, or remove this")
    if train.patience is not None:
        for name in _PATIENCE_OPTIONS:
            if name in options:
                raise WrongValue(f"train.options.{name}", "contradicts train.patience; remove it")
    if train.validates_bleu and "eval-bleu" in options:
        raise WrongValue("train.options.eval-bleu", "set by train.validate_bleu or train.patience_on; remove it")
    if refusal := unfair_patience(options):
        raise WrongValue("train.options.patience", refusal)


def unfair_patience(options: Mapping[str, OptionValue]) -> str | None:
    """Return why ``patience`` in fairseq's options must not end a training, or None if it may or is not set.

    The loss per subword depends on the number of subwords in the text, so that it does not stop systems with different
    vocabularies alike.
    """
    unlimited = str(options.get("patience", "-1")).startswith(("-", "0"))
    if unlimited or options.get("best-checkpoint-metric") in METRICS.values():
        return None
    return (
        "would stop on the loss per subword, which differs between vocabularies; use train.patience with "
        "train.patience_on (bleu or loss_per_byte), or best-checkpoint-metric bleu or bits_per_byte"
    )
