"""``mt-scaffold stats``: how codes segment a text."""

from __future__ import annotations

import argparse

from mt_scaffold.commands.arguments import add_format, add_inputs, add_num_workers, input_paths
from mt_scaffold.stats import format_stats, stats


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--codes", "-c", nargs="+", required=True, metavar="PATH", help="codes files, bpe or scaffold")
    add_inputs(parser, "texts of words")
    add_format(parser)
    add_num_workers(parser)


def run(options: argparse.Namespace) -> None:
    summaries = stats(options.codes, num_workers=options.num_workers, paths=input_paths(options))
    print(format_stats(summaries, options.format), end="")
