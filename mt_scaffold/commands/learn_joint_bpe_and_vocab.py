"""``mt-scaffold learn-joint-bpe-and-vocab``: words → codes, and a vocabulary for each text."""

from __future__ import annotations

import argparse

from mt_scaffold.commands.arguments import add_learning, add_separator, input_paths, learning_options
from mt_scaffold.vocabulary import learn_joint_bpe_and_vocab

EXAMPLES = """\
mt-scaffold learn-joint-bpe-and-vocab --input train.en train.de --symbols 32000 --output codes \\
    --write-vocabulary vocab.en vocab.de
"""


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
    add_learning(parser)


def run(options: argparse.Namespace) -> None:
    learn_joint_bpe_and_vocab(
        input_paths(options),
        options.output,
        options.write_vocabulary,
        separator=options.separator,
        **learning_options(options),
    )
