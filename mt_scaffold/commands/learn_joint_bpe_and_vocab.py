"""``mt-scaffold learn-joint-bpe-and-vocab``: words → codes, and a vocabulary for each text."""

from __future__ import annotations

import argparse

from mt_scaffold.commands.arguments import add_num_workers, add_separator, add_words, input_paths, word_options
from mt_scaffold.commands.learning import add_method, given_method
from mt_scaffold.corpus.input_checks import warn_of_separator, warning_of_inputs
from mt_scaffold.methods.bpe import MethodWithCodes
from mt_scaffold.methods.learn import learn_joint_bpe_and_vocab


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", "-i", nargs="+", required=True, metavar="PATH", help="input texts, .gz and .zst too")
    parser.add_argument("--output", "-o", required=True, metavar="PATH", help="codes file")
    add_separator(parser)
    parser.add_argument(
        "--write-vocabulary",
        nargs="+",
        required=True,
        metavar="PATH",
        help="vocabulary files, one for each input, for --vocabulary of apply-bpe",
    )
    add_method(parser)
    parser.add_argument("--verbose", "-v", action="store_true", help="print each merge to stderr")
    add_words(parser)
    add_num_workers(parser)


def run(options: argparse.Namespace) -> None:
    method = given_method(options)
    assert isinstance(method, MethodWithCodes)
    warn_of_separator(options.separator)
    with warning_of_inputs(input_paths(options), options.separator) as (sources, endings):
        learn_joint_bpe_and_vocab(
            sources,
            options.output,
            options.write_vocabulary,
            method,
            separator=options.separator,
            verbose=options.verbose,
            num_workers=options.num_workers,
            endings=endings,
            **word_options(options),
        )
