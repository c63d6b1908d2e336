"""``mt-scaffold import``: vocabularies of other programs → codes."""

from __future__ import annotations

import argparse
import sys

from mt_scaffold.errors import UsageError
from mt_scaffold.integrations.vocabularies.importing import FORMATS, import_codes
from mt_scaffold.manifest import manifest_path

EXAMPLES = """\
mt-scaffold import tokenizer.json --output model.codes --check corpus.txt
mt-scaffold import cl100k_base.tiktoken --output cl100k.codes
mt-scaffold import my.tiktoken --pretokenise gpt2 --special '<|endoftext|>=50256' --output my.codes
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        help="tokenizer.json, tiktoken's ranks, BPE model of SentencePiece, fastBPE's codes",
    )
    parser.add_argument(
        "--output",
        "-o",
        required=True,
        metavar="CODES",
        help="codes file; CODES.manifest.json has ids and special tokens",
    )
    parser.add_argument("--format", choices=FORMATS, help="format of FILE (default: inferred from its content)")
    parser.add_argument(
        "--pretokenise", metavar="NAME", help="tiktoken's ranks that are not OpenAI's: how text becomes words"
    )
    parser.add_argument(
        "--special",
        nargs="+",
        type=_special,
        default=[],
        metavar="TOKEN=ID",
        help="tiktoken's ranks that are not OpenAI's: special tokens and their ids",
    )
    parser.add_argument(
        "--check", metavar="TEXT", help="write only if the library of FILE, installed, gives the same ids for this text"
    )


def _special(value: str) -> tuple[str, int]:
    token, equals, number = value.rpartition("=")
    if not equals or not token or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"give a token and its id, such as '<|endoftext|>=50256', not '{value}'")
    return token, int(number)


def run(options: argparse.Namespace) -> None:
    special = dict(options.special)
    if len(special) < len(options.special):
        tokens = [token for token, _ in options.special]
        token = next(token for token in tokens if tokens.count(token) > 1)
        raise UsageError(f"--special: duplicate token '{token}'; give it once")
    written = import_codes(
        options.file,
        options.output,
        format=options.format,
        pretokenise=options.pretokenise,
        special_tokens=special or None,
        check=options.check,
    )
    codes, numbering = written.imported.codes, written.imported.numbering
    for note in written.imported.notes:
        print(f"warning: {options.file}: {note}", file=sys.stderr)
    ids = "no ids" if numbering is None else f"{numbering.n_vocab:,} ids in {manifest_path(options.output)}"
    checked = f"; the same as the original on all {written.lines:,} lines of {options.check}" if options.check else ""
    print(f"{options.output}: {written.format}, {len(codes.merges):,} merges, {ids}{checked}", file=sys.stderr)
