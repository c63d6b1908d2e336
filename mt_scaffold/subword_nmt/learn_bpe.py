"""subword-nmt's module ``learn_bpe``: learn original BPE."""

from __future__ import annotations

import argparse
import codecs as codecs
import copy as copy
import inspect as inspect
import os as os
import re as re
import sys as sys
import tempfile as tempfile
import warnings as warnings
from collections import Counter
from collections import defaultdict as defaultdict
from io import open as open
from multiprocessing import Pool as Pool
from multiprocessing import cpu_count as cpu_count
from typing import Any, cast

from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.files import AsBytes, Writable, WritableText
from mt_scaffold.methods import learn
from mt_scaffold.subword_nmt.streams import Text, add_amount, add_file, add_num_workers, beneath, new_parser, source


def learn_bpe(
    infile: Text,
    outfile: WritableText | Writable,
    num_symbols: int,
    min_frequency: int = 2,
    verbose: bool = False,
    is_dict: bool = False,
    is_bytes: bool = False,
    total_symbols: bool = False,
    num_workers: int = 1,
) -> None:
    """Learn ``num_symbols`` merges of original BPE from an open file, or lines, and write them to a text file.

    is_bytes: symbols are bytes, and both files are open for bytes. The other arguments, and the errors, are those of
    ``mt_scaffold.learn_bpe``.
    """
    learn.learn_bpe(
        outfile=beneath(outfile) if is_bytes else AsBytes(cast(WritableText, outfile)),
        num_symbols=num_symbols,
        min_frequency=min_frequency,
        verbose=verbose,
        is_dict=is_dict,
        total_symbols=total_symbols,
        num_workers=num_workers,
        algorithm="bpe",
        byte_level=is_bytes,
        **source(infile),
    )


def get_vocabulary(fobj: Text, is_dict: bool = False, is_bytes: bool = False, num_workers: int = 1) -> Counter[Any]:
    """Return the words of an open file, or lines, with their counts; as ``mt_scaffold.count_words`` does.

    is_bytes: the words are bytes.
    """
    counts = count_words(is_dict=is_dict, num_workers=num_workers, any_bytes=is_bytes, **source(fobj))
    return Counter(dict(counts.byte_items() if is_bytes else counts.items()))


def create_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser] | None = None,
) -> argparse.ArgumentParser:
    """Return a parser of subword-nmt's options, on its own or as a command of another parser."""
    parser = new_parser("learn-bpe", "Learn original BPE from text.", subparsers)
    add_file(parser, "--input", "-i", help="input text (default: standard input)")
    add_file(parser, "--output", "-o", mode="w", help="codes file (default: standard output)")
    parser.add_argument("--byte", "-b", action="store_true", help="make symbols bytes")
    parser.add_argument("--dict-input", action="store_true", help="each line of the input is a word and its count")
    add_amount(parser)
    add_num_workers(parser)
    return parser


if __name__ == "__main__":
    from mt_scaffold.subword_nmt.command import main

    main("learn-bpe")
