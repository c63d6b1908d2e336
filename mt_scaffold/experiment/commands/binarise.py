"""mt-scaffold binarise: see mt_scaffold.experiment.binarise.pairs_as_ids."""

from __future__ import annotations

import argparse

from mt_scaffold.experiment.binarise.pairs_as_ids import binarise
from mt_scaffold.experiment.commands import arguments as shared

EXAMPLES = """\
mt-scaffold binarise --train train --valid valid --test test --source-lang en --target-lang de --codes codes \\
    --output binarised
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    shared.add_data(parser)
    shared.add_languages(parser)
    shared.add_segmentation(parser)
    shared.add_limits(parser)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    binarise(
        options.output,
        options.source_lang,
        options.target_lang,
        shared.segmentation(options),
        options.train,
        options.valid,
        options.test,
        options.dictionaries,
        shared.limits(options),
        options.num_workers,
    )
