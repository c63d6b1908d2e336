"""An experiment configuration → the options of fairseq-train for one of its systems."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import TypeVar

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import Config
from mt_scaffold.experiment.configuration.training import (
    METRICS,
    STOP_OPTIONS,
    Average,
    SystemTrain,
    Train,
    TrainOptions,
)
from mt_scaffold.experiment.runtime.schema import OptionValue, nearest

AnyTrain = TypeVar("AnyTrain", bound=TrainOptions)

# fairseq's own tasks count neither subwords nor text, and check no averaging.
OWN_TASKS = ("translation_resumable", "translation_bpe_dropout")
# The options of fairseq-generate that also decide how the validation set is translated.
_SEARCH = {"beam", "lenpen", "unkpen", "max-len-a", "max-len-b", "min-len", "temperature", "no-repeat-ngram-size"}


def training_options(config: Config, system: str | None = None, gpus: int | None = None) -> dict[str, OptionValue]:
    """Return fairseq-train's options for ``system`` (None: those that all share), without data, seed and folders.

    These are those of the train section, its stopping rule, what its validation needs, and the averaging that the task
    checks before the first update. gpus: of all nodes together (0: a CPU; None: the number that the batch is meant
    for). Raises UsageError for an unknown system, and as Train.options_on does.
    """
    train = train_section(config, system)
    options = dict(train.all_options if gpus is None else train.options_on(gpus))
    own_task = options.get("task", OWN_TASKS[0]) in OWN_TASKS
    if train.stop is not None:
        (rule, limit), *_ = train.stop.rules.items()
        if rule in ("tokens", "text") and not own_task:
            raise UsageError(f"train.stop: {rule} needs one of the tasks {' and '.join(OWN_TASKS)}; omit task")
        options[STOP_OPTIONS[rule]] = limit
    if train.validates_bleu:
        own = None if system is None else config.segmentation(system).kind
        options |= _bleu_options(config, None if own is None else own.word_start)
    if train.patience is not None and train.patience_on is not None:
        if train.patience_on == "loss_per_byte" and not own_task:
            raise UsageError(f"train.patience_on: loss_per_byte needs one of the tasks {' and '.join(OWN_TASKS)}")
        options |= {"patience": train.patience, "best-checkpoint-metric": METRICS[train.patience_on]}
        options |= {"maximize-best-checkpoint-metric": True} if train.patience_on == "bleu" else {}
    wanted = max(config.average.last, config.score.last_checkpoints)
    if own_task and wanted:
        options |= {"average-last": wanted, "average-by": config.average.by}
    return options | kept_checkpoints(config.average, options, wanted)


def train_section(config: Config, system: str | None) -> Train:
    """Return the train section with the options of one system's own in place of those of the same name."""
    if system is None:
        return config.train
    if system not in config.systems:
        raise UsageError(f"no system is called {system}{nearest(system, config.systems)}")
    return with_own_options(config.train, config.systems[system].train)


def with_own_options(train: AnyTrain, own: SystemTrain | None) -> AnyTrain:
    """Return a train section with a system's own options in place of those of the same name."""
    if own is None:
        return train
    batches = {
        name: dataclasses.replace(batch, options=batch.options | own.options) for name, batch in train.batches.items()
    }
    return dataclasses.replace(train, options=train.options | own.options, batches=batches)


def _bleu_options(config: Config, word_start: str | None) -> dict[str, OptionValue]:
    """Return the options with which fairseq translates the validation set as the test sets are translated."""
    search = {name.replace("-", "_"): value for name, value in config.translate.options.items() if name in _SEARCH}
    languages = {"source_lang": config.languages.source, "target_lang": config.languages.target}
    return {
        "eval-bleu": True,
        "eval-bleu-args": json.dumps(search),
        "eval-bleu-detok": "moses",
        "eval-bleu-detok-args": json.dumps(languages),
        "eval-bleu-remove-bpe": "subword_nmt" if word_start is None else "sentencepiece",
    }


def kept_checkpoints(average: Average, options: Mapping[str, OptionValue], wanted: int) -> dict[str, OptionValue]:
    """Return the options that keep the checkpoints which are averaged or scored, and no more."""
    kept: dict[str, OptionValue] = {}
    # Where only the best checkpoint is used, one epoch checkpoint is enough; 0 would keep them all.
    if "keep-last-epochs" not in options:
        kept["keep-last-epochs"] = max(wanted, 1) if average.by == "epochs" else 1
    if average.by == "updates" and "keep-interval-updates" not in options:
        kept["keep-interval-updates"] = max(wanted, 1)
    return kept
