"""``mt-scaffold stats``: how codes segment a text."""

from __future__ import annotations

import argparse

from mt_scaffold.analysis.stats import format_stats, stats
from mt_scaffold.commands.arguments import (
    add_format,
    add_inputs,
    add_num_workers,
    input_paths,
)

EXAMPLES = """\
mt-scaffold stats --codes bpe.codes scaffold.codes --input corpus.tok
mt-scaffold stats --codes bpe.codes cl100k.codes --languages corpus.de corpus.en
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--codes", "-c", nargs="+", required=True, metavar="PATH", help="codes files, learned or imported"
    )
    add_inputs(parser, "texts of words")
    parser.add_argument(
        "--languages",
        nargs="+",
        metavar="PATH",
        help="parallel texts, a file per language: the Gini coefficient between them; without --input also the text",
    )
    add_format(parser)
    add_num_workers(parser)


def run(options: argparse.Namespace) -> None:
    paths = None if options.languages is not None and not options.input else input_paths(options)
    summaries = stats(
        options.codes,
        num_workers=options.num_workers,
        paths=paths,
        languages=options.languages,
    )
    print(format_stats(summaries, options.format), end="")
