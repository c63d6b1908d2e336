"""``mt-scaffold get-vocab``: text → vocabulary."""

from __future__ import annotations

import argparse

from mt_scaffold.files import standard_input, standard_output
from mt_scaffold.vocab import get_vocab


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", "-i", metavar="PATH", help="input text, .gz too (default: standard input)")
    parser.add_argument("--output", "-o", metavar="PATH", help="vocabulary file (default: standard output)")
    parser.add_argument(
        "--num-workers", type=int, default=1, metavar="N", help="threads, -1 for all cores (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> None:
    get_vocab(options.input or standard_input(), options.output or standard_output(), options.num_workers)
