"""``mt-scaffold apply-bpe``: words → subwords."""

from __future__ import annotations

import argparse

from mt_scaffold.commands.arguments import add_input, add_num_workers, add_segmenting
from mt_scaffold.corpus.files import input_or_standard, output_or_standard
from mt_scaffold.corpus.input_checks import warn_of_glossaries, warn_of_separator, warning_of_inputs
from mt_scaffold.segment.apply import apply_bpe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--codes", "-c", required=True, metavar="PATH", help="codes file (from learn-bpe)")
    parser.add_argument("--output", "-o", metavar="PATH", help="output text (default: standard output)")
    parser.add_argument(
        "--vocabulary", metavar="PATH", help="vocabulary (from get-vocab); subwords not in it are split further"
    )
    add_segmenting(parser)
    parser.add_argument(
        "--epoch",
        type=int,
        default=0,
        metavar="E",
        help="with --seed and --dropout, segment differently for each E, as in epoch E of a training (default: 0)",
    )
    add_num_workers(parser)


def run(options: argparse.Namespace) -> None:
    warn_of_separator(options.separator)
    warn_of_glossaries(options.glossaries)
    with warning_of_inputs([input_or_standard(options.input)], options.separator) as ((source,), endings):
        apply_bpe(
            options.codes,
            source,
            output_or_standard(options.output),
            merges=options.merges,
            separator=options.separator,
            vocabulary=options.vocabulary,
            vocabulary_threshold=options.vocabulary_threshold,
            dropout=options.dropout,
            glossaries=options.glossaries,
            seed=options.seed,
            num_workers=options.num_workers,
            epoch=options.epoch,
            endings=endings,
        )
