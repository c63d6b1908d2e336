"""The plug-in for fairseq, loaded by ``--user-dir "$(mt-scaffold user-dir)"``. Importing it registers:

- all that it replaces in fairseq (patches.py): permission to load fairseq's own checkpoints, and nothing else
  (safety.py); mixed precision that resumes exactly, and ``--bf16`` without a TPU (mixed_precision.py); SIGUSR1, on
  which fairseq-train saves and ends (stopping.py)
- ``--bpe scaffold_bpe`` (bpe.py)
- ``--eval-bleu-detok moses_bleu`` (translation.py)
- ``--task translation_resumable`` (translation.py, experiment_task.py)
- ``--task translation_bpe_dropout`` (translation_dropout.py, segmented_pairs.py)
- ``--task language_modeling_resumable`` (language_modeling.py)
- ``--arch llama`` and ``--arch gpt_neox`` (architectures.py)
"""

from .patches import patch_fairseq

patch_fairseq()

from . import (  # noqa: E402
    architectures,  # noqa: F401
    bpe,  # noqa: F401
    language_modeling,  # noqa: F401
    translation,  # noqa: F401
    translation_dropout,  # noqa: F401
)
