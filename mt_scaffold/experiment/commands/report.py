"""``mt-scaffold report``: a finished experiment → one HTML page."""

from __future__ import annotations

import argparse

from mt_scaffold.experiment.html_report import html_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", metavar="FOLDER", help="the folder of a finished experiment (experiments/NAME)")
    parser.add_argument(
        "--output",
        "-o",
        metavar="PATH",
        help="the page (default: report.html in the folder)",
    )
    parser.add_argument(
        "--examples", type=int, default=20, metavar="N", help="sentences to show (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> None:
    print(html_report(options.experiment, options.output, options.examples))
