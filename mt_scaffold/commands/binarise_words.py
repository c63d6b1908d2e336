"""mt-scaffold binarise-words: see mt_scaffold.words."""

from __future__ import annotations

import argparse

from mt_scaffold.words import binarise_words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = "The folder is for fairseq's --task translation_bpe_dropout; see docs/fairseq.md."
    parser.add_argument("--train", required=True, metavar="PREFIX", help="words of the training set: PREFIX.LANGUAGE")
    parser.add_argument("--valid", required=True, metavar="PREFIX", help="words of the validation set")
    parser.add_argument("--test", nargs="+", default=[], metavar="PREFIX", help="words of test sets, named as files")
    parser.add_argument("--source-lang", "-s", required=True, metavar="LANGUAGE", help="for example en")
    parser.add_argument("--target-lang", "-t", required=True, metavar="LANGUAGE", help="for example de")
    parser.add_argument("--codes", "-c", required=True, metavar="FILE", help="joint codes, bpe or scaffold")
    parser.add_argument("--separator", default="@@", help="what ends a subword within a word (default: @@)")
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="the fairseq data folder to make")
    parser.add_argument("--num-workers", type=int, default=1, metavar="N", help="threads, -1: all cores (default: 1)")


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    binarise_words(
        options.train,
        options.valid,
        options.test,
        options.output,
        options.source_lang,
        options.target_lang,
        options.codes,
        separator=options.separator,
        workers=options.num_workers,
    )
