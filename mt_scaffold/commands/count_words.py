"""``mt-scaffold count-words``: text → a count file, and count files → one."""

from __future__ import annotations

import argparse

from mt_scaffold.commands.arguments import (
    add_documents,
    add_max_memory,
    add_num_workers,
    add_words,
    given_documents,
    word_options,
)
from mt_scaffold.corpus.count import merge_counts, write_counts
from mt_scaffold.corpus.files import output_or_standard
from mt_scaffold.errors import UsageError

EXAMPLES = """\
mt-scaffold count-words --input 'shards/*.jsonl.zst' --max-memory 8G --output words.counts
mt-scaffold count-words --merge shard-1.counts shard-2.counts --output words.counts
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_documents(parser)
    parser.add_argument(
        "--merge",
        nargs="+",
        metavar="PATH",
        help="merge these count files, those of shards (globs too), instead of counting",
    )
    parser.add_argument("--output", "-o", metavar="PATH", help="count file, .gz, .zst too (default: standard output)")
    add_words(parser)
    add_max_memory(parser)
    add_num_workers(parser)


def run(options: argparse.Namespace) -> None:
    outfile = output_or_standard(options.output)
    if options.merge is None:
        words = word_options(options)
        documents = given_documents(options)
        write_counts(outfile, None, options.num_workers, documents=documents, max_memory=options.max_memory, **words)
        return
    given = [options.input, options.format, options.field, options.split_digits, options.byte_level]
    if any(given) or options.pretokenise != "spaces":
        raise UsageError("--merge takes count files, which say how they were counted; omit the options of counting")
    merge_counts(outfile, options.merge, options.max_memory)
