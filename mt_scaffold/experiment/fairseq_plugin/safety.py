"""Keep fairseq from running code that a checkpoint contains."""

import ast
import functools
import os
import sys
from typing import Any
from unittest import mock

import fairseq.models
import fairseq.tasks  # noqa: F401
import torch
from fairseq.distributed import utils as distributed

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.runtime.checkpoints import safe_globals

_VALUES = (ast.Expression, ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Load)
_SUMS = (ast.UnaryOp, ast.USub, ast.UAdd, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div)


def evaluate(text: str) -> Any:
    """Return the value of an option such as ``[0.9, 0.98]`` or ``[(512, 3)] * 4``, in place of Python's ``eval``.

    Raises MTScaffoldError for anything beyond numbers, strings, lists and arithmetic.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise MTScaffoldError(f"option value {text!r}: not a valid expression; correct the option") from error
    if not all(isinstance(node, _VALUES + _SUMS) for node in ast.walk(tree)):
        raise MTScaffoldError(
            f"option value {text!r}: holds code and is refused; correct the option, or use a checkpoint that you trust"
        )
    return eval(compile(tree, "<option>", "eval"), {"__builtins__": {}})


def make_safe() -> None:
    """Have fairseq load checkpoints with PyTorch's ``weights_only`` and evaluate options with ``evaluate``."""
    if not hasattr(torch.serialization, "safe_globals") or torch.__version__.startswith(("2.4", "2.5")):
        raise ImportError(f"PyTorch {torch.__version__} loads checkpoints unsafely by default; install 2.6 or newer")
    # This variable would switch the check off for every checkpoint.
    os.environ.pop("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", None)
    torch.serialization.add_safe_globals(safe_globals())
    # A model is built with the options that its checkpoint holds, and fairseq evaluates some of them.
    for name, module in list(sys.modules.items()):
        if name.startswith("fairseq."):
            module.__dict__["eval"] = evaluate
    if not isinstance(distributed._broadcast_object_slow, functools.partial):
        distributed._broadcast_object_slow = functools.partial(_broadcast, distributed._broadcast_object_slow)


def _broadcast(broadcast: Any, *arguments: Any) -> Any:
    """Load without a check what another process of this training sends: that one has loaded the checkpoint safely."""
    with mock.patch.object(distributed.torch, "load", functools.partial(torch.load, weights_only=False)):
        return broadcast(*arguments)
