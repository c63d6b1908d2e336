"""The options that several subcommands share."""

from __future__ import annotations

import argparse
from typing import Any, BinaryIO

from mt_scaffold.corpus.documents import DEFAULT_FIELD, DOCUMENT_FORMATS, Documents
from mt_scaffold.corpus.files import input_or_standard
from mt_scaffold.corpus.text import SEPARATOR
from mt_scaffold.options import FORMATS, WORKERS_HELP


def add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", "-i", metavar="PATH", help="input text, .gz, .zst too (default: standard input)")


def add_inputs(parser: argparse.ArgumentParser, what: str = "input texts") -> None:
    """Add ``--input`` for several texts; ``input_paths`` returns what it names."""
    parser.add_argument(
        "--input",
        "-i",
        nargs="+",
        metavar="PATH",
        help=f"{what}, .gz and .zst too, read as one (default: standard input)",
    )


def input_paths(options: argparse.Namespace) -> list[str | BinaryIO]:
    """Return the paths of ``--input``; standard input without any and for ``-``."""
    return [input_or_standard(path) for path in options.input or [None]]


def add_documents(parser: argparse.ArgumentParser, what: str = "input texts") -> None:
    """Add ``--input``, ``--format`` and ``--field``; ``given_documents`` returns what they name."""
    parser.add_argument(
        "--input",
        "-i",
        nargs="+",
        metavar="PATH",
        help=f"{what}: plain text, JSONL or Parquet, .gz and .zst too; 'shards/*.jsonl.zst', quoted, stands for all "
        "that match, in order (default: standard input)",
    )
    parser.add_argument(
        "--format",
        choices=DOCUMENT_FORMATS,
        help="format of the input: text with a document per line or per file, JSONL or Parquet (default: by its name: "
        ".jsonl, .ndjson, .parquet, otherwise lines)",
    )
    parser.add_argument(
        "--field", metavar="NAME", help=f"JSONL, Parquet: the key or column of the text (default: {DEFAULT_FIELD})"
    )


def given_documents(options: argparse.Namespace) -> Documents:
    """Return the documents of ``--input``; standard input without any and for ``-``."""
    return Documents(input_paths(options), options.format, options.field)


def add_max_memory(parser: argparse.ArgumentParser, what: str = "") -> None:
    parser.add_argument(
        "--max-memory",
        metavar="SIZE",
        help="count within this much memory, such as 8G; what exceeds it goes to MT_SCAFFOLD_TMP, or else to TMPDIR or "
        f"/tmp, and the result is the same{what} (default: no limit)",
    )


def add_codes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--codes", "-c", required=True, metavar="PATH", help="codes file (from learn-bpe)")


def add_merges(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--merges", "-m", type=int, default=-1, metavar="INT", help="use only the first INT merges (default: all)"
    )


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


def add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=FORMATS, default="text", help="output format (default: %(default)s)")


def add_segmenting(parser: argparse.ArgumentParser) -> None:
    """Add the options of segmentation of ``apply-bpe``, without its files."""
    add_merges(parser)
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
    parser.add_argument(
        "--pretokenise",
        default="spaces",
        metavar="NAME",
        help="how lines become words: spaces, gpt2, cl100k, o200k, metaspace, metaspace-runs, or a regular expression; "
        "all but spaces make symbols bytes and lose nothing (default: %(default)s)",
    )
    parser.add_argument(
        "--split-digits", action="store_true", help="with --pretokenise, make every digit a separate word"
    )
    add_bytes(parser, "make symbols bytes, as subword-nmt's --byte does; the text need not be UTF-8")


def add_bytes(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--bytes", "--byte", "-b", action="store_true", dest="byte_level", help=what)


def word_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of ``add_words`` as keyword arguments of the functions that count and learn."""
    return {
        "pretokenise": options.pretokenise,
        "split_digits": options.split_digits,
        "byte_level": options.byte_level,
    }
