"""mt-scaffold strip-optimizer: see mt_scaffold.experiment.training.strip_optimizer."""

from __future__ import annotations

import argparse

from mt_scaffold.experiment.training.strip_optimizer import strip_optimizer

EXAMPLES = """\
mt-scaffold strip-optimizer --checkpoints model/checkpoints
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--checkpoints",
        "-c",
        required=True,
        metavar="FOLDER",
        help="the folder that fairseq-train saved them in; checkpoint_last.pt stays as it is",
    )


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    names, freed = strip_optimizer(options.checkpoints)
    print(f"thinned: {' '.join(names) or 'none'} ({freed:,} bytes freed)")
