"""A checkpoint's model as files that hold no code: its weights as safetensors, its options as JSON; and back."""

from __future__ import annotations

import argparse
import dataclasses
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.inference.model_files import TranslationModel
from mt_scaffold.experiment.runtime.checkpoints import tied
from mt_scaffold.experiment.runtime.fairseq import user_dir

# fairseq's options that describe a machine or a run, not a model.
_GROUPS = {"common", "common_eval", "distributed_training", "dataset", "optimization", "checkpoint", "bmuf"}
_GROUPS |= {"generation", "eval_lm", "interactive", "ema"}
# Paths of the machine that trained; weights that were read from one are the model's own now.
_PATHS = ("_path", "_dir", "_file", "_checkpoint")
_DATA = "data"
_PLAIN = (bool, int, float, str, type(None))


def write_weights(model: Mapping[str, Any], path: PathLike) -> dict[str, str]:
    """Write the parameters of a model (name → tensor) as safetensors, each of them once.

    Returns the parameters that were left out, with the name of the one that has the same bits.
    """
    from safetensors.torch import save_file

    first_of = tied([dict(model)])
    stored = {name: model[name].contiguous() for name, first in first_of.items() if first == name}
    # Tensors that were views of one storage are written with their own part of it.
    save_file({name: tensor.clone() for name, tensor in stored.items()}, path, metadata={"format": "pt"})
    # safetensors lets nobody else read it.
    Path(path).chmod(0o644)
    return {name: first for name, first in first_of.items() if first != name}


def read_weights(path: PathLike, shared: Mapping[str, str]) -> dict[str, Any]:
    """Read what ``write_weights`` wrote; ``shared`` is what it returned.

    Raises MTScaffoldError where the file is not safetensors, or a name of ``shared`` is not in it.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        model: dict[str, Any] = load_file(path)
    except SafetensorError as error:
        raise MTScaffoldError(f"{path}: not a safetensors file ({error}); copy or pack the model again") from None
    for name, first in shared.items():
        if first not in model:
            raise MTScaffoldError(f"{path}: holds no parameter {first}; pack the model again")
        model[name] = model[first]
    return model


def plain_options(model: TranslationModel) -> dict[str, Any]:
    """Return the options that fairseq builds a model from, as JSON holds them: no path, nothing of the run.

    Raises MTScaffoldError where the checkpoint names no architecture, or an option is not plain.
    """
    load_plugin()
    from fairseq.dataclass.configs import FairseqConfig

    if not (model.options.get("arch") or model.options.get("_name")):
        raise model.error("does not say how its model is built; use a checkpoint of fairseq-train")
    groups: list[Any] = [entry.type for entry in dataclasses.fields(FairseqConfig) if entry.name in _GROUPS]
    others = {entry.name for group in groups for entry in dataclasses.fields(group)} | {_DATA}
    options = {name: each for name, each in model.options.items() if name not in others and not name.endswith(_PATHS)}
    if wrong := next((name for name, value in options.items() if not _is_plain(value)), None):
        raise model.error(f"its option {wrong} is a {type(options[wrong]).__name__}, which JSON cannot hold")
    return options


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_plain(entry) for name, entry in value.items())
    return isinstance(value, _PLAIN)


def load_plugin() -> None:
    """Have fairseq evaluate no code that options may hold, and log warnings only."""
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    from fairseq import utils

    utils.import_user_module(argparse.Namespace(user_dir=str(user_dir())))


def build_model(options: Mapping[str, Any], weights: dict[str, Any], task: Any, path: Path) -> Any:
    """Return the model of fairseq's that has these options and weights, for the dictionaries of ``task``.

    path: the file of the options, for errors. Raises MTScaffoldError where fairseq cannot build it.
    """
    from omegaconf import OmegaConf

    if not isinstance(options, dict):
        raise MTScaffoldError(f"{path}: expected the options of a model; pack the model again")
    if wrong := next((name for name in options if name.endswith(_PATHS) or not _is_plain(options[name])), None):
        raise MTScaffoldError(f"{path}: {wrong}: not an option of a packed model; pack the model again")
    try:
        chosen = OmegaConf.create(dict(options)) if "_name" in options else argparse.Namespace(**options)
        model = task.build_model(chosen)
        model.load_state_dict(weights, strict=True)
    # What fairseq raises for options that do not fit each other or the weights is of any kind.
    except Exception as error:
        problem = str(error).strip().partition("\n")[0] or type(error).__name__
        raise MTScaffoldError(f"{path}: fairseq cannot build this model ({problem}); pack the model again") from error
    return model
