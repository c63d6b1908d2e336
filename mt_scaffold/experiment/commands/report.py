"""mt-scaffold report: see mt_scaffold.experiment.report.html."""

from __future__ import annotations

import argparse

from mt_scaffold.experiment.configuration import Config
from mt_scaffold.experiment.configuration.layout import read_folder

EXAMPLES = """\
mt-scaffold report experiments/demo --examples 10
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("experiment", metavar="FOLDER", help="the folder of a finished experiment (experiments/NAME)")
    parser.add_argument(
        "--output",
        "-o",
        metavar="PATH",
        help="the HTML page to write (default: report.html in the folder)",
    )
    parser.add_argument(
        "--examples", type=int, default=20, metavar="N", help="translation: sentences to show (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> None:
    """Run the command and print the path of the page."""
    from mt_scaffold.experiment.report.html import html_report
    from mt_scaffold.experiment.report.html.language_models import language_model_report

    if isinstance(read_folder(options.experiment), Config):
        print(html_report(options.experiment, options.output, options.examples))
    else:
        print(language_model_report(options.experiment, options.output))
