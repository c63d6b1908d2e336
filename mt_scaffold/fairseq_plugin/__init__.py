"""What fairseq loads through ``--user-dir``: today, the leave to read its own checkpoints on PyTorch 2.6 and newer.

``mt-scaffold user-dir`` prints this folder. fairseq imports it under the plain name ``fairseq_plugin``.
"""

import contextlib
import os
import sys

import torch

from mt_scaffold.checkpoints import SAFE_GLOBALS

if not hasattr(torch.serialization, "safe_globals") or torch.__version__.startswith(("2.4", "2.5")):
    raise ImportError(f"PyTorch {torch.__version__} loads checkpoints unsafely by default; install 2.6 or newer")

# This variable would switch the check off for every checkpoint.
os.environ.pop("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", None)
torch.serialization.add_safe_globals(SAFE_GLOBALS)

# fairseq puts the folder above this one on the path, where our modules (data, train, ...) would hide others' names.
with contextlib.suppress(ValueError):
    sys.path.remove(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
