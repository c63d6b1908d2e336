"""``mt-scaffold get-vocab``: text → vocabulary."""

from __future__ import annotations

import argparse

from mt_scaffold.commands.arguments import add_bytes, add_input, add_num_workers
from mt_scaffold.corpus.files import input_or_standard, output_or_standard
from mt_scaffold.vocabulary import get_vocab


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--output", "-o", metavar="PATH", help="vocabulary file (default: standard output)")
    add_bytes(parser, "the text need not be UTF-8, like text segmented with codes of learn-bpe --byte")
    add_num_workers(parser)


def run(options: argparse.Namespace) -> None:
    get_vocab(
        input_or_standard(options.input),
        output_or_standard(options.output),
        options.num_workers,
        byte_level=options.byte_level,
    )
