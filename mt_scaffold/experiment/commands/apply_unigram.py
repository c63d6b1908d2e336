"""mt-scaffold apply-unigram: see mt_scaffold.methods.unigram_segmenter."""

from __future__ import annotations

import argparse

from mt_scaffold.commands.arguments import add_num_workers
from mt_scaffold.methods.unigram_segmenter import apply_unigram

EXAMPLES = """\
mt-scaffold apply-unigram --codes unigram.model --input train.en --output train.pieces.en
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--codes", "-c", required=True, metavar="MODEL", help="model of learn-unigram")
    parser.add_argument("--input", "-i", required=True, metavar="PATH", help="text of words")
    parser.add_argument("--output", "-o", required=True, metavar="PATH", help="text of pieces, separated by spaces")
    add_num_workers(parser)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    apply_unigram(options.codes, options.input, options.output, options.num_workers)
