"""mt-scaffold average: see mt_scaffold.experiment.training.average."""

from __future__ import annotations

import argparse

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.training.average import average, last_checkpoints

EXAMPLES = """\
mt-scaffold average --checkpoints model/checkpoints --last 5 --output averaged.pt
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("inputs", nargs="*", metavar="CHECKPOINT", help="checkpoints to average, by name")
    parser.add_argument("--checkpoints", "-c", metavar="FOLDER", help="or the folder that fairseq-train saved them in")
    parser.add_argument(
        "--last",
        "-n",
        type=int,
        default=5,
        metavar="N",
        help="with --checkpoints: average the last N (default: 5; 0: only the best)",
    )
    parser.add_argument(
        "--updates",
        action="store_true",
        help="with --checkpoints: those within epochs, not at their ends, and the final one",
    )
    parser.add_argument(
        "--skip", type=int, default=0, metavar="N", help="with --checkpoints: leave out the newest N (default: 0)"
    )
    parser.add_argument("--output", "-o", required=True, metavar="FILE", help="the averaged model")


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    if bool(options.inputs) == bool(options.checkpoints):
        raise UsageError("average: give either checkpoints by name, or --checkpoints with their folder")
    inputs = options.inputs or last_checkpoints(
        options.checkpoints, options.last, by_updates=options.updates, skip=options.skip
    )
    print("averaged:", *average(inputs, options.output))
