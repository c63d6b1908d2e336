"""``mt-scaffold get-vocab``: text → vocabulary."""

from __future__ import annotations

import argparse

from mt_scaffold.files import input_or_standard, output_or_standard
from mt_scaffold.vocab import get_vocab


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", "-i", metavar="PATH", help="input text, .gz too (default: standard input)")
    parser.add_argument("--output", "-o", metavar="PATH", help="vocabulary file (default: standard output)")
    parser.add_argument(
        "--num-workers", type=int, default=1, metavar="N", help="threads, -1 for all cores (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> None:
    get_vocab(input_or_standard(options.input), output_or_standard(options.output), options.num_workers)
