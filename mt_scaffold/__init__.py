"""Scaffold-BPE for machine translation and language models: learn and apply codes, run and compare experiments.

>>> from mt_scaffold import BPE, learn_bpe
>>> learned = learn_bpe(lines=["low lower lowest", "low low newer newest"], num_symbols=6, min_frequency=1)
>>> BPE(learned.codes).segment("lowest newer")
'lo@@ west ne@@ wer'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mt_scaffold.codes import Codes as Codes
    from mt_scaffold.codes import Merge as Merge
    from mt_scaffold.codes import PickyMerge as PickyMerge
    from mt_scaffold.codes import read_codes as read_codes
    from mt_scaffold.corpus.count import count_words as count_words
    from mt_scaffold.corpus.count import merge_counts as merge_counts
    from mt_scaffold.corpus.count import write_counts as write_counts
    from mt_scaffold.corpus.documents import Documents as Documents
    from mt_scaffold.corpus.vocabulary_file import read_vocabulary as read_vocabulary
    from mt_scaffold.errors import MTScaffoldError as MTScaffoldError
    from mt_scaffold.errors import SpecialTokenError as SpecialTokenError
    from mt_scaffold.errors import UsageError as UsageError
    from mt_scaffold.methods import Parity as Parity
    from mt_scaffold.methods import Picky as Picky
    from mt_scaffold.methods import PlainBPE as PlainBPE
    from mt_scaffold.methods import RandomlyTrimmed as RandomlyTrimmed
    from mt_scaffold.methods import Scaffold as Scaffold
    from mt_scaffold.methods import Trimmed as Trimmed
    from mt_scaffold.methods import Unigram as Unigram
    from mt_scaffold.methods.bpe import LearnedCodes as LearnedCodes
    from mt_scaffold.methods.learn import learn as learn
    from mt_scaffold.methods.learn import learn_bpe as learn_bpe
    from mt_scaffold.methods.learn import learn_joint_bpe_and_vocab as learn_joint_bpe_and_vocab
    from mt_scaffold.segment.apply import BPE as BPE
    from mt_scaffold.segment.apply import Encoder as Encoder
    from mt_scaffold.segment.apply import apply_bpe as apply_bpe
    from mt_scaffold.segment.encode import decode_documents as decode_documents
    from mt_scaffold.segment.encode import encode_documents as encode_documents
    from mt_scaffold.vocabulary import get_vocab as get_vocab

__version__ = "0.1.0"

# Where each public name lives; loaded on first use, so that a command pays only for what it uses.
_HOME = {
    "BPE": "segment.apply",
    "Encoder": "segment.apply",
    "apply_bpe": "segment.apply",
    "read_vocabulary": "corpus.vocabulary_file",
    "Codes": "codes",
    "Merge": "codes",
    "PickyMerge": "codes",
    "read_codes": "codes",
    "decode_documents": "segment.encode",
    "encode_documents": "segment.encode",
    "MTScaffoldError": "errors",
    "SpecialTokenError": "errors",
    "UsageError": "errors",
    "LearnedCodes": "methods.bpe",
    "Parity": "methods",
    "Picky": "methods",
    "PlainBPE": "methods",
    "RandomlyTrimmed": "methods",
    "Scaffold": "methods",
    "Trimmed": "methods",
    "Unigram": "methods",
    "count_words": "corpus.count",
    "merge_counts": "corpus.count",
    "write_counts": "corpus.count",
    "Documents": "corpus.documents",
    "learn": "methods.learn",
    "learn_bpe": "methods.learn",
    "learn_joint_bpe_and_vocab": "methods.learn",
    "get_vocab": "vocabulary",
}

__all__ = [
    "BPE",
    "Codes",
    "Documents",
    "Encoder",
    "LearnedCodes",
    "MTScaffoldError",
    "Merge",
    "Parity",
    "Picky",
    "PickyMerge",
    "PlainBPE",
    "RandomlyTrimmed",
    "Scaffold",
    "SpecialTokenError",
    "Trimmed",
    "Unigram",
    "UsageError",
    "apply_bpe",
    "count_words",
    "decode_documents",
    "encode_documents",
    "get_vocab",
    "learn",
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
