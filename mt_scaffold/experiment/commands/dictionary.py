"""mt-scaffold dictionary: see mt_scaffold.experiment.binarise.dictionary."""

from __future__ import annotations

import argparse

from mt_scaffold.experiment.binarise.dictionary import NO_RESAMPLING, make_dictionaries
from mt_scaffold.experiment.commands import arguments as shared

EXAMPLES = """\
mt-scaffold dictionary --train train --source-lang en --target-lang de --codes codes --output dictionaries
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--train", required=True, metavar="PREFIX", help="words of the training set: PREFIX.LANGUAGE")
    shared.add_languages(parser)
    shared.add_segmentation(parser)
    shared.add_limits(parser)
    parser.add_argument(
        "--with-dropout", action="store_true", help="with what dropout or sampling can make of the training words, too"
    )
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="where dict.LANGUAGE.txt are written")
    parser.add_argument("--num-workers", type=int, default=1, metavar="N", help="threads, -1: all cores (default: 1)")


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    segmentation = shared.segmentation(options)
    make_dictionaries(
        options.train,
        options.output,
        options.source_lang,
        options.target_lang,
        segmentation,
        shared.limits(options),
        segmentation.resamplings if options.with_dropout else NO_RESAMPLING,
        options.num_workers,
    )
