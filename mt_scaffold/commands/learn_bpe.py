"""``mt-scaffold learn-bpe``: words → codes."""

from __future__ import annotations

import argparse

from mt_scaffold.commands.arguments import (
    DOCUMENTS_HELP,
    FIELD_HELP,
    FORMAT_HELP,
    MAX_MEMORY_HELP,
    add_num_workers,
    add_words,
    input_paths,
    word_options,
)
from mt_scaffold.commands.learning import add_method, given_method
from mt_scaffold.corpus.documents import DOCUMENT_FORMATS, Documents
from mt_scaffold.corpus.files import output_or_standard
from mt_scaffold.corpus.input_checks import warning_of_inputs
from mt_scaffold.errors import UsageError
from mt_scaffold.methods.bpe import LearnedCodes
from mt_scaffold.methods.learn import learn
from mt_scaffold.progress import say_on_terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", "-i", nargs="+", metavar="PATH", help=DOCUMENTS_HELP)
    parser.add_argument("--format", choices=DOCUMENT_FORMATS, help=FORMAT_HELP)
    parser.add_argument("--field", metavar="NAME", help=FIELD_HELP)
    parser.add_argument(
        "--counts", nargs="+", metavar="PATH", help="learn from count files (count-words; globs too) instead of text"
    )
    parser.add_argument("--output", "-o", metavar="PATH", help="codes file (default: standard output)")
    parser.add_argument(
        "--dict-input", action="store_true", help="each line of the input is a word, a space and its count"
    )
    parser.add_argument(
        "--trace",
        metavar="PATH",
        help="write each step of Algorithm 1, tab-separated: the merge, the tokens that became scaffold or returned",
    )
    parser.add_argument(
        "--max-memory", metavar="SIZE", help=MAX_MEMORY_HELP.format("; learning is refused if it would need more")
    )
    parser.add_argument(
        "--prune",
        type=int,
        default=1,
        metavar="N",
        help="drop words with a count below N before learning, and print how much that can change (default: keep all)",
    )
    add_method(parser)
    parser.add_argument("--verbose", "-v", action="store_true", help="print each merge to stderr")
    add_words(parser)
    add_num_workers(parser)


def run(options: argparse.Namespace) -> None:
    if options.counts and (options.input or options.format or options.field):
        raise UsageError("--counts takes the place of --input, --format and --field; omit those")
    method = given_method(options)
    with warning_of_inputs([] if options.counts else input_paths(options)) as (sources, endings):
        learned = learn(
            method=method,
            documents=None if options.counts else Documents(sources, options.format, options.field),
            counts=options.counts,
            max_memory=options.max_memory,
            prune=options.prune,
            outfile=output_or_standard(options.output),
            is_dict=options.dict_input,
            trace=None if options.trace is None else output_or_standard(options.trace),
            verbose=options.verbose,
            num_workers=options.num_workers,
            endings=endings,
            **word_options(options),
        )
    assert isinstance(learned, LearnedCodes)
    where = f"; mt-scaffold apply-bpe --codes {options.output} applies them" if options.output else ""
    say_on_terminal(lambda: f"{learned.merges:,} merges learned{where}")
