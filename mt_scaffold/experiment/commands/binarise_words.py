"""mt-scaffold binarise-words: see mt_scaffold.experiment.binarise.pairs_as_words."""

from __future__ import annotations

import argparse

from mt_scaffold.experiment.binarise.pairs_as_words import binarise_words
from mt_scaffold.experiment.commands import arguments as shared

EXAMPLES = """\
mt-scaffold binarise-words --train train --valid valid --source-lang en --target-lang de --codes codes --output data
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = "The folder is for fairseq's --task translation_bpe_dropout; see docs/fairseq.md."
    shared.add_data(parser)
    shared.add_languages(parser)
    shared.add_segmentation(parser)
    shared.add_limits(parser)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    binarise_words(
        options.output,
        options.source_lang,
        options.target_lang,
        shared.segmentation(options),
        options.train,
        options.valid,
        options.test,
        options.dictionaries,
        shared.limits(options),
        num_workers=options.num_workers,
    )
