"""subword-nmt's module ``learn_joint_bpe_and_vocab``: learn original BPE on several texts, with a vocabulary each."""

from __future__ import annotations

import argparse
import codecs as codecs
import inspect as inspect
import os as os
import sys as sys
import tempfile as tempfile
import warnings as warnings
from collections import Counter as Counter
from io import open as open
from multiprocessing import cpu_count as cpu_count

from mt_scaffold.commands.arguments import add_separator
from mt_scaffold.methods import PlainBPE, learn
from mt_scaffold.subword_nmt import apply_bpe as apply_bpe
from mt_scaffold.subword_nmt import learn_bpe as learn_bpe
from mt_scaffold.subword_nmt.streams import add_amount, add_file, add_num_workers, as_text, new_parser


def learn_joint_bpe_and_vocab(args: argparse.Namespace) -> None:
    """Learn codes and write vocabularies as ``mt_scaffold.learn_joint_bpe_and_vocab`` does.

    args: what ``create_parser`` parses. The texts ``input``, the codes ``output`` and the vocabularies ``vocab`` are
    open files, or anything with the name of a file: they are opened again by their names.
    """
    learn.learn_joint_bpe_and_vocab(
        [text.name for text in args.input],
        args.output.name,
        [vocabulary.name for vocabulary in args.vocab],
        PlainBPE(args.symbols, args.min_frequency, args.total_symbols),
        separator=as_text(args.separator),
        verbose=args.verbose,
        num_workers=args.num_workers,
        byte_level=getattr(args, "byte", False),
    )


def create_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser] | None = None,
) -> argparse.ArgumentParser:
    """Return a parser of subword-nmt's options, on its own or as a command of another parser."""
    parser = new_parser(
        "learn-joint-bpe-and-vocab", "Learn original BPE on several texts, with a vocabulary for each.", subparsers
    )
    add_file(parser, "--input", "-i", required=True, nargs="+", help="input texts")
    add_file(parser, "--output", "-o", mode="w", required=True, help="codes file")
    parser.add_argument("--byte", "-b", action="store_true", help="make symbols bytes")
    add_separator(parser)
    add_file(
        parser,
        "--write-vocabulary",
        mode="w",
        required=True,
        nargs="+",
        dest="vocab",
        help="vocabulary files, one for each input",
    )
    add_amount(parser)
    add_num_workers(parser)
    return parser


if __name__ == "__main__":
    from mt_scaffold.subword_nmt.command import main

    main("learn-joint-bpe-and-vocab")
