"""``mt-scaffold export-tokenizers``: plain BPE codes → ``tokenizer.json``."""

from __future__ import annotations

import argparse
import sys

from mt_scaffold.commands.arguments import add_codes, add_merges
from mt_scaffold.integrations.tokenizers import export_tokenizers

EXAMPLES = """\
mt-scaffold export-tokenizers --codes codes --output tokenizer.json --check corpus.tok
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_codes(parser)
    add_merges(parser)
    parser.add_argument("--output", "-o", required=True, metavar="PATH", help="the tokenizer, such as tokenizer.json")
    parser.add_argument(
        "--vocabulary",
        metavar="PATH",
        help="a fairseq dictionary that gives the ids (default: the tokens of the codes, after <s> <pad> </s> <unk>)",
    )
    parser.add_argument(
        "--special",
        nargs="+",
        default=[],
        metavar="TOKEN",
        help="codes of bytes: special tokens, whose ids follow those of the codes",
    )
    parser.add_argument(
        "--check", metavar="TEXT", help="write only if tokenizers segments every line of this text as the codes do"
    )


def run(options: argparse.Namespace) -> None:
    exported = export_tokenizers(
        options.codes,
        options.output,
        vocabulary=options.vocabulary,
        merges=options.merges,
        special_tokens=options.special,
        check=options.check,
    )
    checked = f", the same as the codes on all {exported.lines} lines of {options.check}" if options.check else ""
    print(f"{options.output}: {exported.n_vocab} ids{checked}", file=sys.stderr)
