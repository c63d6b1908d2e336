"""All that this plug-in replaces in fairseq and PyTorch, in its process; the installed files stay as they are."""

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

import fairseq.models
import fairseq.tasks  # noqa: F401
import torch
from fairseq import options
from fairseq.distributed import utils as distributed
from fairseq.hub_utils import GeneratorHubInterface
from fairseq.optim import fp16_optimizer
from fairseq.tasks import FairseqTask

from mt_scaffold.experiment.runtime.checkpoints import safe_globals

from . import bpe, mixed_precision, safety, stopping


def patch_fairseq() -> None:
    """Replace functions of fairseq and PyTorch, once; docs/fairseq.md names them.

    Raises ImportError for a PyTorch before 2.6, which loads checkpoints unsafely by default.
    """
    if not hasattr(torch.serialization, "safe_globals") or torch.__version__.startswith(("2.4", "2.5")):
        raise ImportError(f"PyTorch {torch.__version__} loads checkpoints unsafely by default; install 2.6 or newer")
    # This variable would switch the check of weights_only off for every checkpoint.
    os.environ.pop("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", None)
    # fairseq's own checkpoints hold classes of its options, which weights_only refuses otherwise.
    torch.serialization.add_safe_globals(safe_globals())
    # A model is built with the options in its checkpoint, some of which fairseq evaluates with Python's eval.
    for name, module in list(sys.modules.items()):
        if name.startswith("fairseq."):
            module.__dict__["eval"] = safety.evaluate
    # OmegaConf would evaluate interpolations in the options of a checkpoint.
    _replace(torch, "load", safety.load)
    # Objects that processes of one training send each other need no check.
    _replace(distributed, "_broadcast_object_slow", safety.broadcast)
    # --bf16 would mean a TPU.
    _replace(options, "parse_args_and_arch", mixed_precision.parse)
    # Checkpoints lack the fp32 copy of the parameters and the loss scaler's counters, so that resuming is not exact.
    for kind in (fp16_optimizer._FP16OptimizerMixin, fp16_optimizer._MemoryEfficientFP16OptimizerMixin):
        _replace(kind, "state_dict", mixed_precision.state)
        _replace(kind, "load_state_dict", mixed_precision.load_state)
    # An encoder of --bpe does not know the dictionary, in which subwords that its codes can make may be missing.
    _replace(FairseqTask, "build_bpe", bpe.of_task)
    _replace(GeneratorHubInterface, "__init__", bpe.of_hub)
    # fairseq-train has no request to save and end.
    stopping.make_stoppable()


def _replace(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Replace a function, once, by ``wrapper``, whose first argument is the original function."""
    original = getattr(owner, name)
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        return wrapper(original, *arguments, **named)

    setattr(owner, name, wrapped)
