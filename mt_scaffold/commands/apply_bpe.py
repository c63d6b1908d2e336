"""``mt-scaffold apply-bpe``: words → subwords."""

from __future__ import annotations

import argparse

from mt_scaffold.apply import apply_bpe
from mt_scaffold.files import input_or_standard, output_or_standard


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", "-i", metavar="PATH", help="input text, .gz too (default: standard input)")
    parser.add_argument("--codes", "-c", required=True, metavar="PATH", help="codes file (from learn-bpe)")
    parser.add_argument(
        "--merges",
        "-m",
        type=int,
        default=-1,
        metavar="INT",
        help="use only the first so many merges (default: all)",
    )
    parser.add_argument("--output", "-o", metavar="PATH", help="output text (default: standard output)")
    parser.add_argument(
        "--separator",
        "-s",
        default="@@",
        metavar="STR",
        help="what every subword but a word's last ends in (default: '%(default)s')",
    )
    parser.add_argument(
        "--vocabulary", metavar="PATH", help="vocabulary (from get-vocab): subwords it lacks are split further"
    )
    parser.add_argument(
        "--vocabulary-threshold",
        type=int,
        metavar="INT",
        help="a subword of the vocabulary counts only with at least this frequency",
    )
    parser.add_argument(
        "--dropout",
        type=float,
        default=0,
        metavar="P",
        help="leave out merges with probability P (BPE-dropout); use it on training text only",
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
        help="seed for dropout; the same seed gives the same output, whatever the number of workers",
    )
    parser.add_argument(
        "--num-workers",
        type=int,
        default=1,
        metavar="N",
        help="threads, -1 for all cores; pipes are read in parallel too (default: %(default)s)",
    )


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
    )
