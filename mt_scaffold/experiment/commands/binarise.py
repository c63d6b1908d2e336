"""mt-scaffold binarise: see mt_scaffold.experiment.binarise."""

from __future__ import annotations

import argparse

from mt_scaffold.experiment.binarise import binarise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_data_arguments(parser, "subwords")
    parser.add_argument("--num-workers", type=int, default=1, metavar="N", help="processes to use (default: 1)")


def add_data_arguments(parser: argparse.ArgumentParser, text: str) -> None:
    """Declare the options for the texts (``text``: subwords or words), the languages and the folder."""
    parser.add_argument("--train", required=True, metavar="PREFIX", help=f"{text} of the training set: PREFIX.LANGUAGE")
    parser.add_argument("--valid", required=True, metavar="PREFIX", help=f"{text} of the validation set")
    parser.add_argument("--test", nargs="+", default=[], metavar="PREFIX", help=f"{text} of each test set")
    parser.add_argument("--source-lang", "-s", required=True, metavar="LANGUAGE", help="for example en")
    parser.add_argument("--target-lang", "-t", required=True, metavar="LANGUAGE", help="for example de")
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="the fairseq data folder to make")


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    binarise(
        options.train,
        options.valid,
        options.test,
        options.output,
        options.source_lang,
        options.target_lang,
        num_workers=options.num_workers,
    )
