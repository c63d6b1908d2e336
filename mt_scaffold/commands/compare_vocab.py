"""``mt-scaffold compare-vocab``: what Scaffold-BPE changes in a BPE vocabulary."""

from __future__ import annotations

import argparse

from mt_scaffold.compare_vocab import compare_vocab, format_comparison
from mt_scaffold.files import input_or_standard
from mt_scaffold.options import FORMATS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bpe", metavar="BPE.codes", help="codes learned with --algorithm bpe")
    parser.add_argument("scaffold", metavar="SCAFFOLD.codes", help="codes learned with --algorithm scaffold")
    parser.add_argument(
        "--input", "-i", nargs="+", metavar="PATH", help="texts of words, .gz too (default: standard input)"
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="how to show it (default: %(default)s)")
    parser.add_argument(
        "--top",
        type=int,
        default=20,
        metavar="N",
        help="show so many of the removed and of the new tokens; JSON holds all (default: %(default)s)",
    )
    parser.add_argument(
        "--num-workers", type=int, default=1, metavar="N", help="threads, -1 for all cores (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> None:
    paths = [input_or_standard(path) for path in options.input or ["-"]]
    comparison = compare_vocab(options.bpe, options.scaffold, num_workers=options.num_workers, paths=paths)
    print(format_comparison(comparison, options.format, options.top), end="")
