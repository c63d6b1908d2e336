"""``mt-scaffold apply-bpe``: words → subwords."""

from __future__ import annotations

import argparse

from mt_scaffold.apply import apply_bpe
from mt_scaffold.commands.arguments import add_codes, add_input, add_merges, add_num_workers, add_separator
from mt_scaffold.files import input_or_standard, output_or_standard


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    add_codes(parser)
    add_merges(parser)
    parser.add_argument("--output", "-o", metavar="PATH", help="output text (default: standard output)")
    add_separator(parser, "-s")
    parser.add_argument(
        "--vocabulary", metavar="PATH", help="vocabulary (from get-vocab); subwords it lacks are split further"
    )
    parser.add_argument(
        "--vocabulary-threshold",
        type=int,
        metavar="INT",
        help="ignore subwords of the vocabulary with a frequency below INT",
    )
    parser.add_argument(
        "--dropout",
        type=float,
        default=0,
        metavar="P",
        help="skip each merge with probability P (BPE-dropout); use it on training text only",
    )
    parser.add_argument(
        "--glossaries",
        nargs="+",
        metavar="STR",
        help="words or regular expressions that are isolated and never split; quote each",
    )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="S",
        help="seed for dropout; the same seed gives the same output for any number of workers (default: random)",
    )
    parser.add_argument(
        "--epoch",
        type=int,
        default=0,
        metavar="E",
        help="with --dropout and --seed, segment in another way for each E, as for epoch E of a training (default: 0)",
    )
    add_num_workers(parser)


def run(options: argparse.Namespace) -> None:
    apply_bpe(
        options.codes,
        input_or_standard(options.input),
        output_or_standard(options.output),
        options.merges,
        options.separator,
        options.vocabulary,
        options.vocabulary_threshold,
        options.dropout,
        options.glossaries,
        options.seed,
        options.num_workers,
        options.epoch,
    )
