"""The plug-in for fairseq, loaded by ``--user-dir "$(mt-scaffold user-dir)"``. Importing it registers:

- permission to load fairseq's own checkpoints, and nothing else, on PyTorch 2.6 and newer (safety.py)
- mixed precision that resumes exactly, and ``--bf16`` without a TPU (mixed_precision.py)
- SIGUSR1, which has fairseq-train save and end (stopping.py)
- ``--bpe scaffold_bpe`` (bpe.py)
- ``--task translation_resumable`` (translation.py, resumable.py)
- ``--task translation_bpe_dropout`` (task.py, dataset.py)
- ``--task language_modeling_resumable`` (language_modeling.py, blocks.py)
- ``--task language_modeling_bpe_dropout`` (language_modeling_dropout.py)
"""

from .mixed_precision import make_exact
from .safety import make_safe
from .stopping import make_stoppable

make_safe()
make_exact()
make_stoppable()

from . import bpe, language_modeling, language_modeling_dropout, translation, translation_dropout  # noqa: E402, F401
