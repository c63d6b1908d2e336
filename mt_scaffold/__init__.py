"""Scaffold-BPE for machine translation: learn and apply codes, run and compare experiments.

>>> from mt_scaffold import BPE, learn_bpe
>>> codes = learn_bpe(["low lower lowest", "low low newer newest"], num_symbols=10)
>>> BPE(codes.text).segment("lowest")
"""

from mt_scaffold.apply import BPE, Encoder, apply_bpe, read_vocabulary
from mt_scaffold.codes import Merge, read_codes
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.learn import LearnedCodes, count_words, learn_bpe
from mt_scaffold.vocab import get_vocab, learn_joint_bpe_and_vocab

__version__ = "0.1.0"

__all__ = [
    "BPE",
    "Encoder",
    "LearnedCodes",
    "MTScaffoldError",
    "Merge",
    "UsageError",
    "apply_bpe",
    "count_words",
    "get_vocab",
    "learn_bpe",
    "learn_joint_bpe_and_vocab",
    "read_codes",
    "read_vocabulary",
]
