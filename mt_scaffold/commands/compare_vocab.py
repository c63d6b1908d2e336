"""``mt-scaffold compare-vocab``: what Scaffold-BPE changes in a BPE vocabulary."""

from __future__ import annotations

import argparse

from mt_scaffold.analysis.compare_vocab import compare_sizes, compare_vocab, format_comparison, format_sizes
from mt_scaffold.commands.arguments import (
    add_format,
    add_inputs,
    add_num_workers,
    add_words,
    input_paths,
    word_options,
)
from mt_scaffold.errors import UsageError

# The result of word_options if none is given; only --sizes takes others.
_WORDS = {"pretokenise": "spaces", "split_digits": False, "byte_level": False}

# The number of tokens to list by default.
_TOP = 20

EXAMPLES = """\
mt-scaffold compare-vocab bpe.codes scaffold.codes --input corpus.tok
mt-scaffold compare-vocab --sizes 8000 16000 32000 --input corpus.tok
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "%(prog)s [options] BPE.codes SCAFFOLD.codes [--input PATH [PATH ...]]\n"
        "       %(prog)s [options] --sizes N [N ...] [--input PATH [PATH ...]]"
    )
    for name, algorithm in (("bpe", "bpe"), ("scaffold", "scaffold")):
        codes = parser.add_argument(
            name, metavar=f"{name.upper()}.codes", help=f"codes learned with --algorithm {algorithm}"
        )
        codes.required = False  # nargs="?" would do so too, but not take the two files on both sides of an option
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        metavar="N",
        help="instead of two codes files: learn both from the texts with each number of symbols, and compare those",
    )
    add_words(parser)
    parser.add_argument(
        "--total-symbols",
        "-t",
        action="store_true",
        help="with --sizes: N counts the base symbols too, as in the paper",
    )
    add_inputs(parser, "texts of words")
    add_format(parser)
    parser.add_argument(
        "--top",
        type=int,
        metavar="N",
        help=f"list only the N most frequent removed and new tokens; JSON holds all (default: {_TOP})",
    )
    add_num_workers(parser)


def run(options: argparse.Namespace) -> None:
    words = word_options(options)
    if options.sizes is None:
        if options.total_symbols or words != _WORDS:
            raise UsageError("codes files say how text becomes words and symbols; omit those options, or give --sizes")
        _compare_codes(options)
        return
    if options.bpe is not None:
        raise UsageError(f"--sizes learns its own codes; omit {options.bpe}, or --sizes to compare codes files")
    if options.top is not None:
        raise UsageError("--sizes lists no tokens; omit --top, or compare two codes files")
    rows = compare_sizes(
        options.sizes,
        num_workers=options.num_workers,
        paths=input_paths(options),
        total_symbols=options.total_symbols,
        **words,
    )
    print(format_sizes(rows, options.format), end="")


def _compare_codes(options: argparse.Namespace) -> None:
    if options.scaffold is None:
        raise UsageError("give two codes files, BPE's first, or --sizes to learn them from the text")
    paths = input_paths(options)
    comparison = compare_vocab(options.bpe, options.scaffold, num_workers=options.num_workers, paths=paths)
    print(format_comparison(comparison, options.format, _TOP if options.top is None else options.top), end="")
