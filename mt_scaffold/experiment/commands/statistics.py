"""mt-scaffold statistics: see mt_scaffold.experiment.statistics."""

from __future__ import annotations

import argparse

from mt_scaffold.experiment.statistics import statistics


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = "To measure codes on a text of your own, use mt-scaffold stats."
    parser.add_argument("experiment", metavar="FOLDER", help="the folder of a finished experiment (experiments/NAME)")


def run(options: argparse.Namespace) -> None:
    """Run the command and print which figures were drawn."""
    for figure in statistics(options.experiment).figures:
        print(figure.file)
