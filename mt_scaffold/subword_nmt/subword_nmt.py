"""subword-nmt's module ``subword_nmt``: its command, and the names that it imports from the others."""

from __future__ import annotations

import argparse as argparse
import codecs as codecs
import io as io
import sys as sys

from mt_scaffold.subword_nmt.apply_bpe import BPE as BPE
from mt_scaffold.subword_nmt.apply_bpe import create_parser as create_apply_bpe_parser
from mt_scaffold.subword_nmt.apply_bpe import get_byte_mode as get_byte_mode
from mt_scaffold.subword_nmt.apply_bpe import read_vocabulary as read_vocabulary
from mt_scaffold.subword_nmt.command import main as main
from mt_scaffold.subword_nmt.get_vocab import create_parser as create_get_vocab_parser
from mt_scaffold.subword_nmt.get_vocab import get_vocab as get_vocab
from mt_scaffold.subword_nmt.learn_bpe import create_parser as create_learn_bpe_parser
from mt_scaffold.subword_nmt.learn_bpe import learn_bpe as learn_bpe
from mt_scaffold.subword_nmt.learn_joint_bpe_and_vocab import create_parser as create_learn_joint_bpe_and_vocab_parser
from mt_scaffold.subword_nmt.learn_joint_bpe_and_vocab import learn_joint_bpe_and_vocab as learn_joint_bpe_and_vocab

__all__ = [
    "BPE",
    "create_apply_bpe_parser",
    "create_get_vocab_parser",
    "create_learn_bpe_parser",
    "create_learn_joint_bpe_and_vocab_parser",
    "get_byte_mode",
    "get_vocab",
    "learn_bpe",
    "learn_joint_bpe_and_vocab",
    "main",
    "read_vocabulary",
]


if __name__ == "__main__":
    main()
