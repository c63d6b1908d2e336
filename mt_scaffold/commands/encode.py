"""``mt-scaffold encode``: documents → ids."""

from __future__ import annotations

import argparse

from mt_scaffold.commands.arguments import (
    add_codes,
    add_inputs,
    add_merges,
    add_num_workers,
    input_paths,
)
from mt_scaffold.corpus.documents import DOCUMENT_FORMATS
from mt_scaffold.corpus.id_files import DTYPES, INDEXES
from mt_scaffold.segment.encode import IN_TEXT, encode_documents

EXAMPLES = """\
mt-scaffold encode --codes codes --input 'shards/*.jsonl.zst' --append '<|endoftext|>' --special '<|endoftext|>' \\
    --output train.bin
"""


def add_special_tokens(parser: argparse.ArgumentParser, append: str) -> None:
    """Add ``--special`` and ``--append``."""
    parser.add_argument(
        "--special", nargs="+", default=[], metavar="TOKEN", help="special tokens, whose ids follow those of the codes"
    )
    parser.add_argument("--append", metavar="TOKEN", help=append)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_inputs(parser, "documents: text, JSONL or Parquet, globs")
    add_codes(parser)
    add_merges(parser)
    parser.add_argument(
        "--output",
        "-o",
        required=True,
        metavar="PATH",
        help="NAME.bin for all ids, with NAME.idx, which has the beginning of each document, and NAME.manifest.json, "
        "which records the text and the codes",
    )
    parser.add_argument(
        "--format",
        choices=DOCUMENT_FORMATS,
        help="format of the input (default: by the name of the file, or lines)",
    )
    parser.add_argument(
        "--field", metavar="NAME", help="the key or column of the text in JSONL and Parquet (default: text)"
    )
    parser.add_argument("--dtype", choices=DTYPES, help="type of an id (default: the smaller one that fits)")
    parser.add_argument(
        "--index",
        choices=INDEXES,
        default="fairseq",
        help="the program that reads NAME.idx; for Megatron, ids of 4 bytes are int32 (default: %(default)s)",
    )
    add_special_tokens(parser, "end every document with this token, such as '<|endoftext|>'")
    parser.add_argument(
        "--in-text",
        choices=IN_TEXT,
        default="refuse",
        help="if a document spells out a special token: an error, its id, or text like any other "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--dropout", type=float, default=0, metavar="P", help="skip each merge with probability P (BPE-dropout)"
    )
    parser.add_argument("--seed", type=int, metavar="S", help="seed for dropout (default: random)")
    parser.add_argument(
        "--epoch",
        type=int,
        default=0,
        metavar="E",
        help="with --seed and --dropout, different ids for each E (default: 0)",
    )
    add_num_workers(parser)


def run(options: argparse.Namespace) -> None:
    encode_documents(
        options.codes,
        input_paths(options),
        options.output,
        format=options.format,
        field=options.field,
        merges=options.merges,
        dtype=options.dtype,
        index=options.index,
        special_tokens=options.special,
        append=options.append,
        in_text=options.in_text,
        dropout=options.dropout,
        seed=options.seed,
        epoch=options.epoch,
        num_workers=options.num_workers,
    )
