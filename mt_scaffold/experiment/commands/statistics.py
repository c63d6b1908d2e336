"""mt-scaffold statistics: see mt_scaffold.experiment.report.statistics, and language_model_workflow.statistics."""

from __future__ import annotations

import argparse

from mt_scaffold.experiment.configuration import Config
from mt_scaffold.experiment.configuration.experiment_folder import read_folder

EXAMPLES = """\
mt-scaffold statistics experiments/demo
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = "To measure codes on a text of your own, use mt-scaffold stats."
    parser.add_argument("experiment", metavar="FOLDER", help="the folder of a finished experiment (experiments/NAME)")


def run(options: argparse.Namespace) -> None:
    """Run the command and print which figures were drawn."""
    if isinstance(read_folder(options.experiment), Config):
        from mt_scaffold.experiment.report.statistics import statistics

        files = [figure.file for figure in statistics(options.experiment).figures]
    else:
        from mt_scaffold.experiment.report import language_model_statistics as language_models

        files = language_models.statistics(options.experiment).figures
    for file in files:
        print(file)
