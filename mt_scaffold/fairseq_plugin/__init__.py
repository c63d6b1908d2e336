"""What fairseq loads through ``--user-dir``.

- leave to read fairseq's own checkpoints, and nothing else, on PyTorch 2.6 and newer (safety.py)
- ``--bpe scaffold_bpe`` (bpe.py)
- ``--task translation_resumable`` (translation.py)
- ``--task translation_bpe_dropout`` (task.py, dataset.py)

``mt-scaffold user-dir`` prints this folder. fairseq imports it under the plain name ``fairseq_plugin``.
"""

import contextlib
import importlib.util
import os
import sys

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# fairseq puts the package's folder on the path, where our modules (data, train, ...) would hide others' names.
with contextlib.suppress(ValueError):
    sys.path.remove(_PACKAGE)
# From a clone in which the core is built but that is not installed.
if importlib.util.find_spec("mt_scaffold") is None:
    sys.path.append(os.path.dirname(_PACKAGE))

from .safety import make_safe  # noqa: E402

make_safe()

from . import bpe, task, translation  # noqa: E402, F401
