"""``mt-scaffold learn-bpe``: words → codes."""

from __future__ import annotations

import argparse

from mt_scaffold.commands.arguments import add_inputs, add_learning, input_paths, learning_options
from mt_scaffold.files import output_or_standard
from mt_scaffold.learn import learn_bpe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_inputs(parser)
    parser.add_argument("--output", "-o", metavar="PATH", help="codes file (default: standard output)")
    parser.add_argument(
        "--dict-input", action="store_true", help="each line of the input is a word, a space and its count"
    )
    parser.add_argument(
        "--trace",
        metavar="PATH",
        help="write what each step of Algorithm 1 did, tab-separated: the merge, what became scaffold, what came back",
    )
    add_learning(parser)


def run(options: argparse.Namespace) -> None:
    learn_bpe(
        paths=input_paths(options),
        outfile=output_or_standard(options.output),
        is_dict=options.dict_input,
        trace=None if options.trace is None else output_or_standard(options.trace),
        **learning_options(options),
    )
