"""mt-scaffold init: see mt_scaffold.experiment.workflow.initial."""

from __future__ import annotations

import argparse
import sys

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.workflow.initial import Pair, ParallelTexts, Written, init_documents, init_translation

EXAMPLES = """\
mt-scaffold init corpus/train.en corpus/train.de
mt-scaffold init train.en train.de --valid dev.en dev.de --test test.en test.de --output ours.yaml
mt-scaffold init --documents 'shards/*.jsonl.zst' --output lm.yaml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = (
        "Write a commented configuration for your own files: parallel text for a translation experiment (source, "
        "target), or documents for language models. It names what was found in them, and is ready to run."
    )
    parser.add_argument("texts", nargs="+", metavar="FILE", help="training text: source and target, or documents")
    parser.add_argument("--documents", action="store_true", help="documents for language models, not parallel text")
    parser.add_argument(
        "--valid", nargs="+", metavar="FILE", help="the validation set (default: next to train, or held out)"
    )
    parser.add_argument(
        "--test",
        nargs="+",
        action="append",
        metavar="FILE",
        help="a test set; may be repeated (default: next to train; documents are held out)",
    )
    parser.add_argument(
        "--languages", nargs=2, metavar="CODE", help="source and target language (default: the endings of the files)"
    )
    parser.add_argument("--output", "-o", metavar="FILE", help="the configuration (default: SOURCE_TARGET.yaml)")


def run(options: argparse.Namespace) -> None:
    """Write the configuration."""
    written = _documents(options) if options.documents else _translation(options)
    print("\n".join(written.found))
    for warning in written.warnings:
        print(f"mt-scaffold: warning: {warning}", file=sys.stderr)
    print(f"Wrote {written.path}; read it, then: mt-scaffold run {written.path}")


def _documents(options: argparse.Namespace) -> Written:
    tests = [path for paths in options.test or [] for path in paths]
    return init_documents(options.texts, options.valid or (), tests, options.output)


def _translation(options: argparse.Namespace) -> Written:
    tests = [_pair("--test", paths) for paths in options.test or []]
    return init_translation(
        ParallelTexts(
            [_pair("FILE", options.texts)],
            None if options.valid is None else _pair("--valid", options.valid),
            {"test" if number == 1 else f"test{number}": pair for number, pair in enumerate(tests, 1)},
            None if options.languages is None else (options.languages[0], options.languages[1]),
        ),
        options.output,
    )


def _pair(option: str, paths: list[str]) -> Pair:
    if len(paths) != 2:
        raise UsageError(f"{option}: give two files, source and target (or --documents, for language models)")
    return Pair(*paths)
