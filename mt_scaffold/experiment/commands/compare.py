"""mt-scaffold compare: see mt_scaffold.experiment.compare."""

from __future__ import annotations

import argparse

from mt_scaffold.experiment.compare import compare
from mt_scaffold.experiment.comparison import as_text
from mt_scaffold.experiment.configuration import load_config
from mt_scaffold.experiment.paper import published_scores


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("scores", nargs="+", metavar="SCORES", help="files that mt-scaffold score wrote")
    parser.add_argument(
        "--baseline", "-b", required=True, metavar="SYSTEM", help="the system to test the others against"
    )
    parser.add_argument("--output", "-o", metavar="PREFIX", help="write PREFIX.txt, .md, .json and .csv as well")
    parser.add_argument("--samples", type=int, default=1000, metavar="N", help="bootstrap resamples (default: 1000)")
    parser.add_argument("--title", default="", help="a line above the table")
    parser.add_argument(
        "--config", metavar="FILE", help="show the published scores of this experiment configuration beside ours"
    )


def run(options: argparse.Namespace) -> None:
    """Run the command and show the table."""
    config = load_config(options.config) if options.config else None
    comparison = compare(
        options.scores,
        options.baseline,
        output=options.output,
        samples=options.samples,
        title=options.title,
        published=[*config.compare_with, *published_scores(config)] if config else [],
    )
    print(as_text(comparison), end="")
