"""mt-scaffold learn-unigram: see mt_scaffold.methods.unigram."""

from __future__ import annotations

import argparse

from mt_scaffold.commands.arguments import add_num_workers
from mt_scaffold.methods import Unigram
from mt_scaffold.methods.learn import learn

EXAMPLES = """\
mt-scaffold learn-unigram --symbols 8000 --input train.en train.de --output unigram.model
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--input", "-i", nargs="+", required=True, metavar="PATH", help="texts of words")
    parser.add_argument("--output", "-o", required=True, metavar="PATH", help="model; call it NAME.model")
    parser.add_argument(
        "--symbols", "-s", type=int, required=True, metavar="N", help="pieces beside the single characters"
    )
    parser.add_argument("--total-symbols", action="store_true", help="the single characters are among the N pieces")
    add_num_workers(parser)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    method = Unigram(options.symbols, options.total_symbols)
    learn(method=method, outfile=options.output, paths=options.input, num_workers=options.num_workers)
