"""``mt-scaffold stats``: how codes segment a text."""

from __future__ import annotations

import argparse

from mt_scaffold.analysis.containing import containing, format_containing
from mt_scaffold.analysis.stats import format_stats, stats
from mt_scaffold.commands.arguments import (
    add_format,
    add_inference,
    add_inputs,
    add_num_workers,
    add_top,
    input_paths,
    shown_top,
)
from mt_scaffold.errors import UsageError
from mt_scaffold.segment.inference import MERGES

EXAMPLES = """\
mt-scaffold stats --codes bpe.codes scaffold.codes --input corpus.tok
mt-scaffold stats --codes bpe.codes cl100k.codes --languages corpus.de corpus.en --typos 1
mt-scaffold stats --codes bpe.codes --input corpus.tok --containing zona
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
    parser.add_argument(
        "--morphemes",
        metavar="PATH",
        help="a word per line, its morphemes separated by spaces: how subwords agree with them",
    )
    parser.add_argument(
        "--typos",
        type=int,
        metavar="SEED",
        help="how many subwords are added by one wrong letter in each tenth word",
    )
    parser.add_argument(
        "--containing",
        nargs="+",
        metavar="STR",
        help="print, instead of the figures, which tokens contain each of these strings, and how often they occur",
    )
    add_format(parser)
    add_top(parser, "list only the first N tokens that contain a string of --containing")
    add_inference(parser)
    add_num_workers(parser)


def run(options: argparse.Namespace) -> None:
    added = {"--languages": options.languages, "--morphemes": options.morphemes, "--typos": options.typos}
    paths = None if options.languages is not None and not options.input else input_paths(options)
    if options.containing is not None:
        if given := next((name for name, value in added.items() if value is not None), None):
            raise UsageError(f"--containing prints no figures; omit {given}")
        if options.inference != MERGES:
            raise UsageError("--containing shows what merges make; omit --inference")
        found = containing(options.codes, options.containing, num_workers=options.num_workers, paths=paths)
        print(format_containing(found, options.format, shown_top(options)), end="")
        return
    if options.top is not None:
        raise UsageError("--top lists the tokens of --containing; name the strings there, or omit --top")
    summaries = stats(
        options.codes,
        num_workers=options.num_workers,
        paths=paths,
        inference=options.inference,
        languages=options.languages,
        morphemes=options.morphemes,
        typos=options.typos,
    )
    print(format_stats(summaries, options.format), end="")
