"""Checks that involve several fields of the configuration of language models."""

from __future__ import annotations

from mt_scaffold.experiment.configuration.language_model import (
    DOCUMENT_KINDS,
    DocumentData,
    LanguageModelConfig,
    TrainLanguageModels,
)
from mt_scaffold.experiment.configuration.shared import check_shared
from mt_scaffold.experiment.configuration.systems import LanguageModelSystem
from mt_scaffold.experiment.configuration.training import STOP_OPTIONS, check_saved, with_own_options
from mt_scaffold.experiment.runtime.schema import WrongValue, check_one_of, nearest

# Options of fairseq's schedulers that train.schedule decides.
_SCHEDULED = ("lr-scheduler", "lr-period-updates", "lr-shrink", "t-mult", "total-num-update")


def check(config: LanguageModelConfig) -> None:
    """Raise WrongValue if values of a configuration contradict each other."""
    check_shared(config, DOCUMENT_KINDS, lambda train: _check_training(config, train))
    _check_data(config.data)
    if not config.codes.bytes:
        raise WrongValue("codes.bytes", "the ids of a language model need codes of bytes; leave this out")
    if config.codes.pretokenise == "spaces":
        raise WrongValue("codes.pretokenise", "words between spaces have no ids; give gpt2, or a pattern")
    for name, system in config.systems.items():
        _check_system(config, name, system)
    _check_comparisons(config)
    _check_tasks(config)


def _check_data(data: DocumentData) -> None:
    files = data.documents
    if files is None:
        if data.held_out_every is not None:
            raise WrongValue("data.held_out_every", "synthetic data includes validation and test sets; leave this out")
        return
    for name in ("valid", "tests"):
        if (getattr(files, name) is None) == (data.held_out_every is None):
            given = "neither" if data.held_out_every is None else "both"
            raise WrongValue("data", f"give either documents.{name} or held_out_every (given: {given})")
    if files.lines_per_document > 1 and files.format not in (None, "lines"):
        raise WrongValue("data.documents.lines_per_document", "only for format: lines; leave this out")


def _check_system(config: LanguageModelConfig, name: str, system: LanguageModelSystem) -> None:
    key = f"systems.{name}"
    method = system.method_with(config.codes)
    if method is not None and method.given["total_symbols"] and method.amount <= 256:
        where = "codes.symbols" if system.symbols is None else f"{key}.symbols"
        raise WrongValue(where, "total_symbols includes the 256 bytes; give more than 256")


def _check_comparisons(config: LanguageModelConfig) -> None:
    for name, amount in config.comparisons.items():
        check_one_of(f"comparisons.{name}", amount, amount.__dataclass_fields__)
        if amount.text_of is not None:
            if amount.text_of not in config.comparisons:
                hint = nearest(amount.text_of, config.comparisons)
                raise WrongValue(f"comparisons.{name}.text_of", f"no comparison is called {amount.text_of}{hint}")
            if config.comparisons[amount.text_of].text_of is not None or amount.text_of == name:
                raise WrongValue(f"comparisons.{name}.text_of", "name a comparison that sets tokens or text itself")


def _check_training(config: LanguageModelConfig, train: TrainLanguageModels) -> None:
    options = train.all_options
    if "task" in options:
        raise WrongValue("train.options.task", "set by this kind of experiment; remove it")
    for name in (*STOP_OPTIONS.values(), "patience"):
        if name in options:
            raise WrongValue(f"train.options.{name}", "the comparisons say when a training ends; remove it")
    if train.schedule is not None:
        for name in _SCHEDULED:
            if name in options:
                raise WrongValue(f"train.options.{name}", "set by train.schedule; keep one of them")
        if "end-learning-rate" in options:
            raise WrongValue("train.options.end-learning-rate", "train.schedule ends at min-lr; set that instead")
    check_saved(options, config.average, config.wanted_checkpoints)


def _check_tasks(config: LanguageModelConfig) -> None:
    if config.tasks is None:
        return
    for key in ("names", "num_fewshot"):
        values = getattr(config.tasks, key)
        if len(set(values)) < len(values):
            raise WrongValue(f"tasks.{key}", "duplicate entry; list each once")
    # The harness runs models in transformers' format, to which transformer_lm cannot be exported.
    for name, system in config.systems.items():
        if with_own_options(config.train, system.train).all_options.get("arch") == "transformer_lm":
            key = f"systems.{name}.train" if system.train and "arch" in system.train.options else "train"
            raise WrongValue(f"{key}.options.arch", "tasks need a model of transformers; use llama, or remove tasks")
