"""``mt-scaffold learn-bpe``: words → codes."""

from __future__ import annotations

import argparse

from mt_scaffold.files import input_or_standard, output_or_standard
from mt_scaffold.learn import learn_bpe
from mt_scaffold.options import ALGORITHMS


def add_learning_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that ``learn-bpe`` and ``learn-joint-bpe-and-vocab`` share."""
    parser.add_argument(
        "--algorithm", choices=ALGORITHMS, default="scaffold", help="what to learn (default: %(default)s)"
    )
    parser.add_argument(
        "--symbols",
        "-s",
        type=int,
        default=10000,
        metavar="N",
        help="number of merges (bpe) or of normal merged tokens (scaffold) (default: %(default)s)",
    )
    parser.add_argument(
        "--min-frequency",
        type=int,
        default=2,
        metavar="FREQ",
        help="stop when no symbol pair has a frequency >= FREQ (default: %(default)s)",
    )
    parser.add_argument(
        "--total-symbols",
        "-t",
        action="store_true",
        help="subtract the number of base symbols from N, so that N estimates all symbols of segmented text",
    )
    parser.add_argument("--verbose", "-v", action="store_true", help="say each merge on stderr")
    parser.add_argument(
        "--num-workers",
        type=int,
        default=1,
        metavar="N",
        help="threads that count words, -1 for all cores; the result is the same (default: %(default)s)",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input", "-i", nargs="+", metavar="PATH", help="input texts, .gz too (default: standard input)"
    )
    parser.add_argument("--output", "-o", metavar="PATH", help="codes file (default: standard output)")
    parser.add_argument(
        "--dict-input", action="store_true", help="each line of the input is a word, a space and its count"
    )
    add_learning_arguments(parser)


def run(options: argparse.Namespace) -> None:
    learn_bpe(
        None,
        output_or_standard(options.output),
        options.symbols,
        options.min_frequency,
        options.verbose,
        options.dict_input,
        options.total_symbols,
        options.num_workers,
        options.algorithm,
        paths=[input_or_standard(path) for path in options.input or ["-"]],
    )
