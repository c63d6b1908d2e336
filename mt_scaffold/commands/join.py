"""``mt-scaffold join``: subwords → words."""

from __future__ import annotations

import argparse

from mt_scaffold.commands.arguments import add_input, add_separator
from mt_scaffold.corpus.files import input_or_standard, output_or_standard
from mt_scaffold.segment.join import join_text

EXAMPLES = """\
mt-scaffold join < corpus.bpe > corpus.tok
mt-scaffold join --codes codes --input text.subwords --output text
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--output", "-o", metavar="PATH", help="output text (default: standard output)")
    add_separator(parser, "-s")
    parser.add_argument(
        "--codes", "-c", metavar="PATH", help="codes file; needed only for codes with a pre-tokeniser (--pretokenise)"
    )


def run(options: argparse.Namespace) -> None:
    join_text(input_or_standard(options.input), output_or_standard(options.output), options.separator, options.codes)
