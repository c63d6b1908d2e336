"""``mt-scaffold compare-vocab``: what Scaffold-BPE changes in a BPE vocabulary."""

from __future__ import annotations

import argparse

from mt_scaffold.commands.arguments import add_format, add_inputs, add_num_workers, input_paths
from mt_scaffold.compare_vocab import compare_vocab, format_comparison


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bpe", metavar="BPE.codes", help="codes learned with --algorithm bpe")
    parser.add_argument("scaffold", metavar="SCAFFOLD.codes", help="codes learned with --algorithm scaffold")
    add_inputs(parser, "texts of words")
    add_format(parser)
    parser.add_argument(
        "--top",
        type=int,
        default=20,
        metavar="N",
        help="list only the N most frequent removed and new tokens; JSON holds all (default: %(default)s)",
    )
    add_num_workers(parser)


def run(options: argparse.Namespace) -> None:
    paths = input_paths(options)
    comparison = compare_vocab(options.bpe, options.scaffold, num_workers=options.num_workers, paths=paths)
    print(format_comparison(comparison, options.format, options.top), end="")
