"""``mt-scaffold decode``: ids → documents."""

from __future__ import annotations

import argparse

from mt_scaffold.commands.arguments import add_codes, add_merges
from mt_scaffold.commands.encode import add_special_tokens
from mt_scaffold.corpus.files import output_or_standard
from mt_scaffold.corpus.id_files import DTYPES
from mt_scaffold.segment.encode import DECODED_FORMATS, decode_documents

EXAMPLES = """\
mt-scaffold decode --codes codes --input train.bin --output train.txt
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", "-i", required=True, metavar="NAME.bin", help="ids (from encode)")
    add_codes(parser)
    add_merges(parser)
    parser.add_argument("--output", "-o", metavar="PATH", help="output text (default: standard output)")
    parser.add_argument(
        "--format",
        choices=DECODED_FORMATS,
        default="lines",
        help="each document followed by a line end, as it is, or in a JSON object, where U+FFFD replaces what is not "
        "UTF-8 "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--field", default="text", metavar="NAME", help="the key of the text in JSONL (default: %(default)s)"
    )
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        help="type of an id, where there is no NAME.idx (default: uint16, uint32 for codes of more than 65,536 ids)",
    )
    add_special_tokens(
        parser,
        "leave this token out at the end of a document: the one that encode appended (default: what NAME.manifest.json "
        "records)",
    )


def run(options: argparse.Namespace) -> None:
    decode_documents(
        options.codes,
        options.input,
        output_or_standard(options.output),
        format=options.format,
        field=options.field,
        merges=options.merges,
        dtype=options.dtype,
        special_tokens=options.special,
        append=options.append,
    )
