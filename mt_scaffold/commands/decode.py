"""``mt-scaffold decode``: ids → documents."""

from __future__ import annotations

import argparse

from mt_scaffold.commands.arguments import add_codes, add_merges
from mt_scaffold.commands.encode import add_special_tokens
from mt_scaffold.corpus.files import output_or_standard, standard_input, standard_output
from mt_scaffold.corpus.id_files import DTYPES
from mt_scaffold.errors import UsageError
from mt_scaffold.segment.encode import DECODED_FORMATS, decode_documents
from mt_scaffold.segment.streams import decode_stream

EXAMPLES = """\
mt-scaffold decode --codes codes --input train.bin --output train.txt
server | mt-scaffold decode --codes codes --stream
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", "-i", metavar="NAME.bin", help="ids (from encode)")
    parser.add_argument(
        "--stream",
        action="store_true",
        help="write the text of ids as they arrive on standard input, as in NAME.bin, only in whole characters",
    )
    add_codes(parser)
    add_merges(parser)
    parser.add_argument("--output", "-o", metavar="PATH", help="output text (default: standard output)")
    parser.add_argument(
        "--format",
        choices=DECODED_FORMATS,
        default="lines",
        help="each document followed by a line end, as it is, or in a JSON object, where U+FFFD replaces what is not "
        "UTF-8 (default: %(default)s)",
    )
    parser.add_argument(
        "--field", default="text", metavar="NAME", help="the key of the text in JSONL (default: %(default)s)"
    )
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        help="type of an id, if there is no NAME.idx (default: uint16, uint32 for codes of more than 65,536 ids)",
    )
    add_special_tokens(
        parser,
        "leave out this token, which encode appended, at the end of documents (default: the one in NAME.manifest.json)",
    )


def run(options: argparse.Namespace) -> None:
    if options.stream:
        if options.input or options.output or options.append or options.merges != -1 or options.format != "lines":
            raise UsageError(
                "--stream reads standard input and writes standard output; of the other options give only --dtype and "
                "--special"
            )
        decode_stream(
            options.codes, standard_input(), standard_output(), dtype=options.dtype, special_tokens=options.special
        )
        return
    if not options.input:
        raise UsageError("--input NAME.bin is missing; or give --stream")
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
