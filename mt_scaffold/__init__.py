"""Scaffold-BPE for machine translation and language models: learn and apply codes, run and compare experiments.

>>> from mt_scaffold import BPE, learn_bpe
>>> learned = learn_bpe(lines=["low lower lowest", "low low newer newest"], num_symbols=6, min_frequency=1)
>>> BPE(learned.codes).segment("lowest newer")
'lo@@ west ne@@ wer'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mt_scaffold.apply import BPE as BPE
    from mt_scaffold.apply import Encoder as Encoder
    from mt_scaffold.apply import apply_bpe as apply_bpe
    from mt_scaffold.codes import Codes as Codes
    from mt_scaffold.codes import Merge as Merge
    from mt_scaffold.codes import read_codes as read_codes
    from mt_scaffold.corpus.count import count_words as count_words
    from mt_scaffold.corpus.count import merge_counts as merge_counts
    from mt_scaffold.corpus.count import write_counts as write_counts
    from mt_scaffold.corpus.documents import Documents as Documents
    from mt_scaffold.corpus.vocabulary_file import read_vocabulary as read_vocabulary
    from mt_scaffold.encode import decode_documents as decode_documents
    from mt_scaffold.encode import encode_documents as encode_documents
    from mt_scaffold.errors import MTScaffoldError as MTScaffoldError
    from mt_scaffold.errors import SpecialTokenError as SpecialTokenError
    from mt_scaffold.errors import UsageError as UsageError
    from mt_scaffold.methods.learn import LearnedCodes as LearnedCodes
    from mt_scaffold.methods.learn import learn_bpe as learn_bpe
    from mt_scaffold.vocabulary import get_vocab as get_vocab
    from mt_scaffold.vocabulary import learn_joint_bpe_and_vocab as learn_joint_bpe_and_vocab

__version__ = "0.1.0"

# Where each public name lives; loaded on first use, so that a command pays only for what it uses.
_HOME = {
    "BPE": "apply",
    "Encoder": "apply",
    "apply_bpe": "apply",
    "read_vocabulary": "corpus.vocabulary_file",
    "Codes": "codes",
    "Merge": "codes",
    "read_codes": "codes",
    "decode_documents": "encode",
    "encode_documents": "encode",
    "MTScaffoldError": "errors",
    "SpecialTokenError": "errors",
    "UsageError": "errors",
    "LearnedCodes": "methods.learn",
    "count_words": "corpus.count",
    "merge_counts": "corpus.count",
    "write_counts": "corpus.count",
    "Documents": "corpus.documents",
    "learn_bpe": "methods.learn",
    "get_vocab": "vocabulary",
    "learn_joint_bpe_and_vocab": "vocabulary",
}

__all__ = [
    "BPE",
    "Codes",
    "Documents",
    "Encoder",
    "LearnedCodes",
    "MTScaffoldError",
    "Merge",
    "SpecialTokenError",
    "UsageError",
    "apply_bpe",
    "count_words",
    "decode_documents",
    "encode_documents",
    "get_vocab",
    "learn_bpe",
    "learn_joint_bpe_and_vocab",
    "merge_counts",
    "read_codes",
    "read_vocabulary",
    "write_counts",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
