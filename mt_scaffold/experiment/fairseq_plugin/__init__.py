"""The plug-in for fairseq, loaded by ``--user-dir "$(mt-scaffold user-dir)"``. Importing it registers:

- permission to load fairseq's own checkpoints, and nothing else, on PyTorch 2.6 and newer (safety.py)
- ``--bpe scaffold_bpe`` (bpe.py)
- ``--task translation_resumable`` (translation.py)
- ``--task translation_bpe_dropout`` (task.py, dataset.py)
"""

from .safety import make_safe

make_safe()

from . import bpe, task, translation  # noqa: E402, F401
