"""The options of learn-bpe, apply-bpe, learn-joint-bpe-and-vocab and get-vocab, which start without option_types."""

from __future__ import annotations

import argparse
from typing import Any, BinaryIO

from mt_scaffold.corpus.documents import DEFAULT_FIELD
from mt_scaffold.corpus.files import input_or_standard
from mt_scaffold.corpus.text import SEPARATOR
from mt_scaffold.options import WORKERS_HELP

# The help of options that other commands have too.
INPUT_HELP = "input text, .gz, .zst too (default: standard input)"
DOCUMENTS_HELP = (
    "input texts: plain text, JSONL or Parquet, .gz and .zst too; 'shards/*.jsonl.zst', quoted, stands for all that "
    "match, in order (default: standard input)"
)
FORMAT_HELP = (
    "format of the input: text with a document per line or per file, JSONL or Parquet (default: by its name: .jsonl, "
    ".ndjson, .parquet, otherwise lines)"
)
FIELD_HELP = f"JSONL, Parquet: the key or column of the text (default: {DEFAULT_FIELD})"
MAX_MEMORY_HELP = (
    "count within this much memory, such as 8G; what exceeds it goes to MT_SCAFFOLD_TMP, or else to TMPDIR or /tmp, "
    "and the result is the same{} (default: no limit)"
)
PRETOKENISE_HELP = (
    "how lines become words: spaces, gpt2, cl100k, o200k, metaspace, metaspace-runs, or a regular expression; all but "
    "spaces make symbols bytes and lose nothing (default: spaces)"
)
SPLIT_DIGITS_HELP = "with --pretokenise, make every digit a separate word"
BYTES_HELP = "make symbols bytes, as subword-nmt's --byte does; the text need not be UTF-8"


def add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", "-i", metavar="PATH", help=INPUT_HELP)


def input_paths(options: argparse.Namespace) -> list[str | BinaryIO]:
    """Return the paths of ``--input``; standard input without any and for ``-``."""
    return [input_or_standard(path) for path in options.input or [None]]


def add_separator(parser: argparse.ArgumentParser, *short: str) -> None:
    parser.add_argument(
        "--separator",
        *short,
        default=SEPARATOR,
        metavar="STR",
        help="the ending of every subword but a word's last (default: '%(default)s')",
    )


def add_num_workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--num-workers", type=int, metavar="N", help=WORKERS_HELP)


def add_segmenting(parser: argparse.ArgumentParser) -> None:
    """Add the options of segmentation of ``apply-bpe``, without its files."""
    parser.add_argument(
        "--merges", "-m", type=int, default=-1, metavar="INT", help="use only the first INT merges (default: all)"
    )
    add_separator(parser, "-s")
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


def add_words(parser: argparse.ArgumentParser) -> None:
    """Add the options of words and their symbols; ``word_options`` returns them."""
    parser.add_argument("--pretokenise", default="spaces", metavar="NAME", help=PRETOKENISE_HELP)
    parser.add_argument("--split-digits", action="store_true", help=SPLIT_DIGITS_HELP)
    add_bytes(parser, BYTES_HELP)


def add_bytes(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--bytes", "--byte", "-b", action="store_true", dest="byte_level", help=what)


def word_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of ``add_words`` as keyword arguments of the functions that count and learn."""
    return {name: getattr(options, name) for name in ("pretokenise", "split_digits", "byte_level")}
