"""``mt-scaffold stats``: what codes make of a text."""

from __future__ import annotations

import argparse

from mt_scaffold.files import input_or_standard
from mt_scaffold.options import FORMATS
from mt_scaffold.stats import format_stats, stats


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--codes", "-c", nargs="+", required=True, metavar="PATH", help="codes files, bpe or scaffold")
    parser.add_argument(
        "--input",
        "-i",
        nargs="+",
        metavar="PATH",
        help="texts of words, .gz too, measured as one (default: standard input)",
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="how to show it (default: %(default)s)")
    parser.add_argument(
        "--num-workers", type=int, default=1, metavar="N", help="threads, -1 for all cores (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> None:
    paths = [input_or_standard(path) for path in options.input or ["-"]]
    summaries = stats(options.codes, num_workers=options.num_workers, paths=paths)
    print(format_stats(summaries, options.format), end="")
