"""Load fairseq's checkpoints without letting them run code.

A checkpoint is a pickle, which can call any function while it is loaded. With ``weights_only``, PyTorch restricts it to
an allow list: tensors, plain containers, and the additions of ``safe_globals``.
"""

from __future__ import annotations

import argparse
import pickle
import re
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import PathLike, explain_os_error
from mt_scaffold.errors import MTScaffoldError

_OPTIMISER = "last_optimizer_state"
# PyTorch's exceptions for a file that is truncated or not a checkpoint.
_INCOMPLETE = (RuntimeError, EOFError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
_NO_FORMAT = (struct.error, zipfile.BadZipFile, AssertionError, ImportError)
_EPOCH, _UPDATES = r"checkpoint(\d+)\.pt", r"checkpoint_\d+_(\d+)\.pt"


def safe_globals() -> list[Any]:
    """Return the types in fairseq's checkpoints beyond PyTorch's allow list; none of them runs code when loaded.

    They hold the options of a model, and NumPy numbers and arrays such as the counts of ``--eval-bleu``.
    """
    import numpy

    array, number = numpy.zeros(1), numpy.float64(1)
    makers = [array.__reduce__()[0], number.__reduce__()[0]]
    types = [type(numpy.dtype(kind)) for kind in (bool, "int32", "int64", "float32", "float64")]
    return [argparse.Namespace, numpy.ndarray, numpy.dtype, *makers, *types]


def refuse_interpolation(state: Any, path: object) -> None:
    """Raise MTScaffoldError if a checkpoint has an option that OmegaConf would evaluate; fairseq saves none."""
    options = [state.get(key) for key in ("cfg", "args")] if isinstance(state, dict) else []
    seen = set[int]()
    while options:
        value = options.pop()
        if isinstance(value, str):
            if "${" in value:
                raise MTScaffoldError(
                    f"{path}: refused: an option of this checkpoint is {value[:40]!r}, another option or a variable of "
                    "the environment; use one that fairseq-train wrote"
                )
        elif id(value) not in seen:
            seen.add(id(value))
            value = vars(value) if isinstance(value, argparse.Namespace) else value
            options += [*value, *value.values()] if isinstance(value, dict) else []
            options += value if isinstance(value, list | tuple | set) else []


def load_checkpoint(path: PathLike) -> dict[str, Any]:
    """Load a fairseq checkpoint onto the CPU: ``model`` (name → tensor), ``cfg``, ``extra_state`` and so on.

    Tensors of numbered checkpoints, which fairseq never overwrites in place, are read only when they are used, so that
    the optimiser state takes no memory unless it is needed. Other files are read whole, as fairseq overwrites
    checkpoint_best.pt and checkpoint_last.pt in place.
    Raises MTScaffoldError if the file is missing, truncated, not a checkpoint, or contains anything that could run code
    or an option that OmegaConf would evaluate.
    """
    import torch

    try:
        # On exit, safe_globals() removes all its entries from the list, even those that were on it before.
        listed = torch.serialization.get_safe_globals()
        with torch.serialization.safe_globals([each for each in safe_globals() if each not in listed]):
            # The format before PyTorch 1.6 cannot be memory-mapped.
            mapped = re.fullmatch(f"{_EPOCH}|{_UPDATES}", Path(path).name) is not None and zipfile.is_zipfile(path)
            state = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except OSError as error:
        raise explain_os_error(error, path) from error
    except pickle.UnpicklingError as error:
        if refused := re.search(r"GLOBAL:? (\S+)", str(error)):
            raise MTScaffoldError(
                f"{path}: refused: this checkpoint calls {refused[1]}, which could run code; use one that "
                "fairseq-train wrote"
            ) from error
        raise MTScaffoldError(f"{path}: not a checkpoint; use one that fairseq-train wrote") from error
    except (*_INCOMPLETE, *_NO_FORMAT) as error:
        raise MTScaffoldError(f"{path}: not a complete checkpoint; use another one, or resume the training") from error
    if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
        raise MTScaffoldError(f"{path}: not a checkpoint (it holds no model); use one that fairseq-train wrote")
    # weights_only also accepts plain values.
    for name, value in state["model"].items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            raise MTScaffoldError(f"{path}: its parameter {name!r} is not a tensor; use one that fairseq-train wrote")
        if not _is_whole(value):
            raise MTScaffoldError(
                f"{path}: its parameter {name!r} has more elements than the file has; use one that fairseq-train wrote"
            )
    refuse_interpolation(state, path)
    return state


def _is_whole(tensor: Any) -> bool:
    """Return whether a tensor stores each of its elements; with strides of 0, a few bytes can have any shape."""
    import torch

    if tensor.layout != torch.strided or tensor.device.type != "cpu":
        return False
    whole: bool = tensor.numel() * tensor.element_size() <= tensor.untyped_storage().nbytes()
    return whole


def without_optimiser(state: dict[str, Any]) -> dict[str, Any]:
    """Return a checkpoint without the optimiser state, which only resuming needs."""
    return {key: value for key, value in state.items() if key != _OPTIMISER}


def has_optimiser(state: dict[str, Any]) -> bool:
    """Return whether a training can resume from a checkpoint."""
    return state.get(_OPTIMISER) is not None


def updates_made(state: dict[str, Any], path: PathLike) -> int:
    """Return the number of updates that the training had made when it saved ``state`` to ``path``.

    Raises MTScaffoldError if the checkpoint does not record it.
    """
    try:
        return int(state["optimizer_history"][-1]["num_updates"])
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RuntimeError) as error:
        raise MTScaffoldError(f"{path}: has no number of updates; use one that fairseq-train wrote") from error


def tied(models: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return, for each parameter, the first one with the same bits in all ``models``, possibly the parameter itself.

    fairseq saves a tied parameter under each of its names: on the CPU in fp32 they share one storage, but on a GPU or
    in fp16 each is a copy.
    """
    firsts: dict[Any, list[str]] = {}
    found = {}
    for name, tensor in models[-1].items():
        alike = firsts.setdefault((tensor.shape, tensor.dtype), [])
        found[name] = next((each for each in alike if all(_same_bits(m[each], m[name]) for m in models)), name)
        if found[name] == name and tensor.is_floating_point():
            alike.append(name)
    return found


def _same_bits(one: Any, other: Any) -> bool:
    import torch

    # As bytes, so that 0.0 differs from -0.0.
    same: bool = torch.equal(one.flatten().view(torch.uint8), other.flatten().view(torch.uint8))
    return same


def check_optimiser(path: PathLike) -> None:
    """Raise MTScaffoldError if the checkpoint exists without its optimiser state, so that no training can resume."""
    if Path(path).exists() and not has_optimiser(load_checkpoint(path)):
        raise MTScaffoldError(
            f"{path}: no training can resume from this checkpoint, which was saved or thinned without the optimiser's "
            "state; restore it, or delete the folder of the training to train from scratch"
        )


def epoch_checkpoints(folder: PathLike) -> dict[int, Path]:
    """Return the checkpoints of whole epochs in ``folder`` (``checkpoint7.pt``) by epoch, in order."""
    return _numbered(folder, _EPOCH)


def update_checkpoints(folder: PathLike) -> dict[int, Path]:
    """Return the checkpoints within epochs in ``folder`` (``checkpoint_EPOCH_UPDATES.pt``) by updates, in order."""
    return _numbered(folder, _UPDATES)


def best_checkpoints(folder: PathLike) -> list[Path]:
    """Return the checkpoints in ``folder`` that were best in validation; several with ``--keep-best-checkpoints``."""
    names = re.compile(r"checkpoint(_best|\.best_.+)\.pt")
    return sorted(path for path in Path(folder).iterdir() if names.fullmatch(path.name))


def _numbered(folder: PathLike, pattern: str) -> dict[int, Path]:
    try:
        names = [(re.fullmatch(pattern, path.name), path) for path in Path(folder).iterdir()]
    except OSError as error:
        raise explain_os_error(error, folder) from error
    return dict(sorted((int(match[1]), path) for match, path in names if match))
