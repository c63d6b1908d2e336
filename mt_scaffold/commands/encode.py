"""``mt-scaffold encode``: documents → ids."""

from __future__ import annotations

import argparse
from typing import Any

from mt_scaffold.commands.arguments import (
    add_codes,
    add_inputs,
    add_merges,
    add_num_workers,
    add_uniform_sampling,
    input_paths,
)
from mt_scaffold.corpus.documents import DOCUMENT_FORMATS
from mt_scaffold.corpus.id_files import DTYPES, INDEXES
from mt_scaffold.errors import UsageError
from mt_scaffold.segment.encode import IN_TEXT, encode_documents
from mt_scaffold.segment.folders import check_folder, encode_folder, is_folder

EXAMPLES = """\
mt-scaffold encode --codes codes --input 'shards/*.jsonl.zst' --append '<|endoftext|>' --special '<|endoftext|>' \\
    --output train.bin
mt-scaffold encode --codes codes --input 'shards/*.jsonl.zst' --append '<|endoftext|>' --output ids/
mt-scaffold encode --codes codes --input 'shards/*.jsonl.zst' --output ids/ --check
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
        "which records the text and the codes; or a folder (one that exists, or a name that ends in /) for these files "
        "of each input: the same command resumes",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="check the files of the folder --output, and the texts if --input names them, instead of encoding",
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
    add_uniform_sampling(parser)
    parser.add_argument("--seed", type=int, metavar="S", help="seed for dropout and uniform sampling (default: random)")
    parser.add_argument(
        "--epoch",
        type=int,
        default=0,
        metavar="E",
        help="with --seed and --dropout or --uniform-sampling, different ids for each E (default: 0)",
    )
    add_num_workers(parser)


def run(options: argparse.Namespace) -> None:
    into_folder = is_folder(options.output)
    if options.check:
        if not into_folder:
            raise UsageError("--check is for the folder of shards that --output names")
        paths = input_paths(options) if options.input else None
        found = check_folder(options.codes, options.output, options.merges, paths, **_settings(options))
        inputs = "inputs not compared: name them with --input" if paths is None else "the inputs are unchanged"
        print(
            f"{options.output}: {found.shards:,} shards, {found.documents:,} documents, {found.ids:,} ids of "
            f"{found.bytes:,} bytes: as written ({inputs})"
        )
        return
    encode = encode_folder if into_folder else encode_documents
    encode(
        options.codes,
        input_paths(options),
        options.output,
        merges=options.merges,
        num_workers=options.num_workers,
        **_settings(options),
    )


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    names = "format field dtype index append in_text dropout uniform_sampling seed epoch".split()
    return {"special_tokens": options.special, **{name: getattr(options, name) for name in names}}
