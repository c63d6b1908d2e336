"""The public names: the one list of them, which type checkers read, and which __init__.py loads them by."""

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

__version__: str
__all__: list[str]
