"""mt-scaffold tokenise: see mt_scaffold.experiment.data.tokenise."""

from __future__ import annotations

import argparse

from mt_scaffold.experiment.configuration.data import Tokenise
from mt_scaffold.experiment.data.tokenise import tokenise
from mt_scaffold.experiment.runtime.results import write_result

EXAMPLES = """\
mt-scaffold tokenise --language de < train.raw.de > train.de
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--input", "-i", metavar="FILE", help="raw text, plain or .gz (default: standard input)")
    parser.add_argument("--output", "-o", metavar="FILE", help="words (default: standard output)")
    parser.add_argument("--language", "-l", required=True, metavar="CODE", help="language code such as en or de")
    parser.add_argument(
        "--keep-punctuation", action="store_true", help="do not normalise quotation marks, dashes and the like"
    )
    parser.add_argument(
        "--keep-nonprinting", action="store_true", help="do not replace non-printing characters by spaces"
    )
    parser.add_argument("--keep-dashes", action="store_true", help="do not split words at dashes (well @-@ known)")
    parser.add_argument("--straight-apostrophes", action="store_true", help="first turn U+2019 into an apostrophe")
    parser.add_argument("--lowercase", action="store_true", help="lowercase the words")
    parser.add_argument(
        "--num-workers", type=int, default=1, metavar="N", help="processes, -1 for all cores (default: 1)"
    )
    parser.add_argument("--report", metavar="FILE", help="write the counts of lines and words to FILE as JSON")


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    report = tokenise(
        None if options.input == "-" else options.input,
        None if options.output == "-" else options.output,
        options.language,
        Tokenise(
            normalise_punctuation=not options.keep_punctuation,
            remove_nonprinting=not options.keep_nonprinting,
            aggressive_dash_splitting=not options.keep_dashes,
            straight_apostrophes=options.straight_apostrophes,
            lowercase=options.lowercase,
        ),
        num_workers=options.num_workers,
    )
    if options.report:
        write_result(options.report, report)
