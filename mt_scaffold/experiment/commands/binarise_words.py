"""mt-scaffold binarise-words: see mt_scaffold.experiment.binarise_words."""

from __future__ import annotations

import argparse

from mt_scaffold.commands.arguments import add_separator
from mt_scaffold.experiment.binarise_words import binarise_words
from mt_scaffold.experiment.commands.binarise import add_data_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = "The folder is for fairseq's --task translation_bpe_dropout; see docs/fairseq.md."
    add_data_arguments(parser, "words")
    parser.add_argument("--codes", "-c", required=True, metavar="FILE", help="joint codes, bpe or scaffold")
    add_separator(parser)
    parser.add_argument("--num-workers", type=int, default=1, metavar="N", help="threads, -1: all cores (default: 1)")


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    binarise_words(
        options.train,
        options.valid,
        options.test,
        options.output,
        options.source_lang,
        options.target_lang,
        options.codes,
        separator=options.separator,
        num_workers=options.num_workers,
    )
