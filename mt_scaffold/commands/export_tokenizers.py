"""``mt-scaffold export-tokenizers``: codes → files of other programs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

from mt_scaffold.errors import UsageError
from mt_scaffold.integrations.tokenizers import EXACT, PATTERN_CHOICES, export_tokenizers
from mt_scaffold.integrations.vocabularies.exporting import TARGETS, export_codes
from mt_scaffold.options_from_signature import CODES, MERGES, Option


def run(
    codes: Annotated[str, CODES],
    output: Annotated[str, Option("PATH", "-o")],
    merges: Annotated[int, MERGES] = -1,
    vocabulary: Annotated[str | None, Option("PATH")] = None,
    special: Annotated[Sequence[str], Option("TOKEN")] = (),
    pattern: Annotated[str, Option(choices=PATTERN_CHOICES)] = EXACT,
    to: Annotated[str, Option(choices=TARGETS)] = TARGETS[0],
    check: Annotated[str | None, Option("TEXT")] = None,
) -> None:
    """Write codes for another program.

    output: the tokenizer, such as tokenizer.json
    vocabulary: a fairseq dictionary that gives the ids (default: the tokens of the codes, after <s> <pad> </s> <unk>)
    special: codes of bytes: special tokens, whose ids follow those of the codes
    pattern: exact: every version of tokenizers cuts words as the codes do; published: ByteLevel, or the pattern as it
        was published with GPT-2, cl100k or o200k, for programs that know it by its text, such as gigatoken and
        llama.cpp
    to: what to write: tokenizer.json, tiktoken's ranks, a model of SentencePiece (imported codes, also with scaffold
        tokens), or fastBPE's codes
    check: write only if tokenizers segments every line of this text as the codes do
    """
    if to != TARGETS[0]:
        if vocabulary or special or check or merges != -1 or pattern != EXACT:
            raise UsageError(f"--to {to} has no other options than --codes and --output")
        print(f"{output}: {export_codes(codes, output, to):,} tokens", file=sys.stderr)
        return
    exported = export_tokenizers(
        codes, output, vocabulary=vocabulary, merges=merges, special_tokens=special, check=check, pattern=pattern
    )
    checked = f", the same as the codes on all {exported.lines} lines of {check}" if check else ""
    print(f"{output}: {exported.n_vocab} ids{checked}", file=sys.stderr)
