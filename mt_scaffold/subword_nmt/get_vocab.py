"""subword-nmt's module ``get_vocab``: count the words of a text."""

from __future__ import annotations

import argparse
import codecs as codecs
import inspect as inspect
import os as os
import sys as sys
import warnings as warnings
from collections import Counter as Counter
from io import open as open

from mt_scaffold import vocabulary as vocab
from mt_scaffold.corpus.files import AsBytes, WritableText
from mt_scaffold.subword_nmt.streams import Text, add_file, new_parser, source


def get_vocab(train_file: Text, vocab_file: WritableText) -> None:
    """Write the words of an open file, or lines, with their counts to a text file (see ``mt_scaffold.get_vocab``)."""
    vocab.get_vocab(outfile=AsBytes(vocab_file), num_workers=1, **source(train_file))


def create_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser] | None = None,
) -> argparse.ArgumentParser:
    """Return a parser of subword-nmt's options, on its own or as a command of another parser."""
    parser = new_parser("get-vocab", "Count the words of a text.", subparsers)
    add_file(parser, "--input", "-i", help="input text (default: standard input)")
    add_file(parser, "--output", "-o", mode="w", help="vocabulary file (default: standard output)")
    return parser


if __name__ == "__main__":
    from mt_scaffold.subword_nmt.command import main

    main("get-vocab")
