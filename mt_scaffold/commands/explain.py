"""``mt-scaffold explain``: a word's way from characters to subwords."""

from __future__ import annotations

import argparse
import os
import sys

from mt_scaffold.explain import explain


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--codes", "-c", required=True, metavar="PATH", help="codes file (from learn-bpe)")
    parser.add_argument(
        "--merges", "-m", type=int, default=-1, metavar="INT", help="use only the first so many merges (default: all)"
    )
    parser.add_argument(
        "--separator",
        "-s",
        default="@@",
        metavar="STR",
        help="what subwords inside a word end in (default: '%(default)s')",
    )
    parser.add_argument("words", nargs="+", metavar="WORD", help="words to explain")


def run(options: argparse.Namespace) -> None:
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print(explain(options.codes, options.words, options.merges, options.separator, colour), end="")
