"""A translation experiment → the options of fairseq-train for one of its systems."""

from __future__ import annotations

import json

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import Config
from mt_scaffold.experiment.configuration.training import METRICS, STOP_OPTIONS, with_own_options
from mt_scaffold.experiment.runtime.schema import OptionValue, nearest
from mt_scaffold.experiment.training.averaging_check import averaging_options, kept_checkpoints
from mt_scaffold.segment.draw import training_options as resampling_options

# For text that stays the same, and for text that is resampled. fairseq's own tasks count neither subwords nor text, and
# do not check averaging.
OWN_TASKS = ("translation_resumable", "translation_bpe_dropout")
# The options of fairseq-generate that also apply to translating the validation set.
_SEARCH = {"beam", "lenpen", "unkpen", "max-len-a", "max-len-b", "min-len", "temperature", "no-repeat-ngram-size"}


def training_options(config: Config, system: str | None = None, gpus: int | None = None) -> dict[str, OptionValue]:
    """Return fairseq-train's options for ``system`` (None: those that all share), without data, seed and folders.

    They are those of the train section, its stopping rule, its validation, the averaging that the task checks before
    the first update, and the system's resampling. gpus: of all nodes together (0: a CPU; None: the number that the
    batch is meant for). Raises UsageError for an unknown system, and as Train.options_on does.
    """
    if system is not None and system not in config.systems:
        raise UsageError(f"no system is called {system}{nearest(system, config.systems)}")
    train = with_own_options(config.train, None if system is None else config.systems[system].train)
    options = train.options_on(gpus)
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
    options |= averaging_options(config.average, config.average.last) if own_task else {}
    options |= kept_checkpoints(config.average, options, config.average.last)
    return options if system is None else options | resampling_options(config.systems[system].resamplings)


def _bleu_options(config: Config, word_start: str | None) -> dict[str, OptionValue]:
    """Return the options with which fairseq translates the validation set as the test sets are translated."""
    search = {name.replace("-", "_"): value for name, value in config.translate.options.items() if name in _SEARCH}
    languages = {"source_lang": config.languages.source, "target_lang": config.languages.target}
    options: dict[str, OptionValue] = {
        "eval-bleu": True,
        "eval-bleu-args": json.dumps(search),
        "eval-bleu-detok": "moses",
        "eval-bleu-detok-args": json.dumps(languages),
        "eval-bleu-remove-bpe": "subword_nmt" if word_start is None else "sentencepiece",
    }
    # fairseq itself supports only 13a.
    if config.bleu_tokeniser != "13a":
        options["eval-bleu-detok"] = "moses_bleu"
        options["eval-bleu-detok-args"] = json.dumps(languages | {"bleu_tokeniser": config.bleu_tokeniser})
        options["eval-tokenized-bleu"] = True
    return options
