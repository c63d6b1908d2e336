"""``mt-scaffold export-tokenizers``: codes → files of other programs."""

from __future__ import annotations

import argparse
import sys

from mt_scaffold.commands.arguments import add_codes, add_merges
from mt_scaffold.errors import UsageError
from mt_scaffold.integrations.tokenizers import EXACT, PATTERN_CHOICES, export_tokenizers
from mt_scaffold.integrations.vocabularies.exporting import TARGETS, export_codes

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
        "--pattern",
        choices=PATTERN_CHOICES,
        default=EXACT,
        help="exact: every version of tokenizers cuts words as the codes do; published: ByteLevel, or the pattern as "
        "it was published with GPT-2, cl100k or o200k, for programs that know it by its text, such as gigatoken and "
        "llama.cpp (default: %(default)s)",
    )
    parser.add_argument(
        "--to",
        choices=TARGETS,
        default=TARGETS[0],
        help="what to write: tokenizer.json, tiktoken's ranks, a model of SentencePiece (imported codes, also with "
        "scaffold tokens), or fastBPE's codes (default: %(default)s)",
    )
    parser.add_argument(
        "--check", metavar="TEXT", help="write only if tokenizers segments every line of this text as the codes do"
    )


def run(options: argparse.Namespace) -> None:
    if options.to != TARGETS[0]:
        if options.vocabulary or options.special or options.check or options.merges != -1 or options.pattern != EXACT:
            raise UsageError(f"--to {options.to} has no other options than --codes and --output")
        print(f"{options.output}: {export_codes(options.codes, options.output, options.to):,} tokens", file=sys.stderr)
        return
    exported = export_tokenizers(
        options.codes,
        options.output,
        vocabulary=options.vocabulary,
        merges=options.merges,
        special_tokens=options.special,
        check=options.check,
        pattern=options.pattern,
    )
    checked = f", the same as the codes on all {exported.lines} lines of {options.check}" if options.check else ""
    print(f"{options.output}: {exported.n_vocab} ids{checked}", file=sys.stderr)
