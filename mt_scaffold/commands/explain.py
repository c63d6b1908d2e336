"""``mt-scaffold explain``: from a word's characters to its subwords, merge by merge."""

from __future__ import annotations

import argparse
import os
import sys

from mt_scaffold.analysis.explain import explain
from mt_scaffold.commands.arguments import add_codes, add_merges, add_separator

EXAMPLES = """\
mt-scaffold explain --codes codes Arizona zona
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_codes(parser)
    add_merges(parser)
    add_separator(parser, "-s")
    parser.add_argument("words", nargs="+", metavar="WORD", help="words to explain")


def run(options: argparse.Namespace) -> None:
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print(explain(options.codes, options.words, options.merges, options.separator, colour), end="")
