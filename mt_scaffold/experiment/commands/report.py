"""mt-scaffold report: see mt_scaffold.experiment.report.html."""

from __future__ import annotations

import argparse

from mt_scaffold.experiment.report.html import html_report

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
        "--examples", type=int, default=20, metavar="N", help="sentences to show (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> None:
    """Run the command and print the path of the page."""
    print(html_report(options.experiment, options.output, options.examples))
