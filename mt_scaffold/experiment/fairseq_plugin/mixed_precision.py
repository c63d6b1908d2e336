"""fp16 and bf16: trainings that resume exactly, and ``--bf16`` on GPUs and CPUs."""

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from fairseq.distributed import utils as distributed

from mt_scaffold.errors import UsageError

logger = logging.getLogger(__name__)

# Keys of the optimiser's state, and the counters of the loss scaler, of which fairseq saves only loss_scale.
_MASTER, _SCALER = "fp32_params", "loss_scaler"
_COUNTERS = ("_iter", "_last_overflow_iter", "_last_rescale_iter", "_overflows_since_rescale")


def parse(
    parse: Callable[..., Any], parser: argparse.ArgumentParser, input_args: Sequence[str] | None = None, **named: Any
) -> Any:
    """Parse as fairseq does, but let ``--bf16`` imply a TPU only if ``--tpu`` is given."""
    given = sys.argv[1:] if input_args is None else input_args
    if any(name.startswith("--") and name.endswith("fp16") for name in given) and any(
        name.startswith("--") and name.endswith("bf16") for name in given
    ):
        raise UsageError("--fp16 and --bf16 exclude each other; give one of them")
    parsed = parse(parser, input_args, **named)
    arguments = parsed[0] if isinstance(parsed, tuple) else parsed
    if "--tpu" not in given and hasattr(arguments, "tpu"):
        arguments.tpu = False
    return parsed


def state(state_dict: Callable[..., dict[str, Any]], optimizer: Any) -> dict[str, Any]:
    """Return the optimiser's state with the fp32 copy of the parameters and the counters of the loss scaler.

    fairseq saves the parameters in their own precision only, and would resume from those.
    """
    state = state_dict(optimizer)
    if master := _master(optimizer):
        state[_MASTER] = [copy.detach() for copy in master]
    if optimizer.scaler is not None:
        state[_SCALER] = {name: getattr(optimizer.scaler, name) for name in _COUNTERS}
    return state


def load_state(
    load_state_dict: Callable[..., None], optimizer: Any, state: dict[str, Any], *more: Any, **named: Any
) -> None:
    """Load the optimiser's state, with what ``state`` has added to it."""
    load_state_dict(optimizer, state, *more, **named)
    master = _master(optimizer)
    if master and _MASTER not in state and distributed.get_global_rank() == 0:
        logger.warning(
            "the checkpoint has no fp32 copy of the parameters (it was written without this plug-in): the "
            "first losses will differ slightly from those of an uninterrupted training"
        )
    with torch.no_grad():
        for own, saved in zip(master, state.get(_MASTER, master), strict=True):
            own.copy_(saved)
    if optimizer.scaler is not None:
        vars(optimizer.scaler).update(state.get(_SCALER, {}))


def _master(optimizer: Any) -> list[torch.Tensor]:
    """Return the fp32 copies of the parameters: one for each, or for each device; none if memory-efficient."""
    copies = getattr(optimizer, "fp32_params", [])
    return list(copies.values() if isinstance(copies, dict) else copies)
