"""``mt-scaffold learn-joint-bpe-and-vocab``: words → codes, and a vocabulary for each text."""

from __future__ import annotations

import argparse

from mt_scaffold.commands.learn_bpe import add_learning_arguments
from mt_scaffold.files import input_or_standard
from mt_scaffold.vocab import learn_joint_bpe_and_vocab


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", "-i", nargs="+", required=True, metavar="PATH", help="input texts, .gz too")
    parser.add_argument("--output", "-o", required=True, metavar="PATH", help="codes file")
    parser.add_argument(
        "--separator",
        default="@@",
        metavar="STR",
        help="what every subword but a word's last ends in (default: '%(default)s')",
    )
    parser.add_argument(
        "--write-vocabulary",
        nargs="+",
        required=True,
        metavar="PATH",
        help="vocabulary files, one for each input, for --vocabulary of apply-bpe",
    )
    add_learning_arguments(parser)


def run(options: argparse.Namespace) -> None:
    learn_joint_bpe_and_vocab(
        [input_or_standard(path) for path in options.input],
        options.output,
        options.write_vocabulary,
        options.symbols,
        options.min_frequency,
        options.separator,
        options.total_symbols,
        options.verbose,
        options.num_workers,
        options.algorithm,
    )
