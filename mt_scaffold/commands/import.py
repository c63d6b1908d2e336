"""``mt-scaffold import``: vocabularies of other programs → codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from mt_scaffold.errors import UsageError
from mt_scaffold.integrations.vocabularies.importing import FORMATS, import_codes
from mt_scaffold.manifest import manifest_path
from mt_scaffold.options_from_signature import Name, Option


class _Special(NamedTuple):
    token: str
    id: int


def _special(value: str) -> _Special:
    token, equals, number = value.rpartition("=")
    if not equals or not token or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"give a token and its id, such as '<|endoftext|>=50256', not '{value}'")
    return _Special(token, int(number))


def run(
    file: Annotated[str, Option("FILE")],
    /,
    output: Annotated[str, Option("CODES", "-o")],
    format: Annotated[str | None, Option(choices=FORMATS)] = None,
    pretokenise: Name | None = None,
    special: Annotated[Sequence[_Special], Option("TOKEN=ID", convert=_special)] = (),
    check: Annotated[str | None, Option("TEXT")] = None,
) -> None:
    """Write the codes of another program's vocabulary.

    file: tokenizer.json, tiktoken's ranks, BPE model of SentencePiece, fastBPE's codes
    output: codes file; CODES.manifest.json has ids and special tokens
    format: format of FILE (default: inferred from its content)
    pretokenise: tiktoken's ranks that are not OpenAI's: how text becomes words
    special: tiktoken's ranks that are not OpenAI's: special tokens and their ids
    check: write only if the library of FILE, installed, gives the same ids for this text
    """
    ids_of = dict(special)
    if len(ids_of) < len(special):
        tokens = [token for token, _ in special]
        token = next(token for token in tokens if tokens.count(token) > 1)
        raise UsageError(f"--special: duplicate token '{token}'; give it once")
    written = import_codes(
        file, output, format=format, pretokenise=pretokenise, special_tokens=ids_of or None, check=check
    )
    codes, numbering = written.imported.codes, written.imported.numbering
    for note in written.imported.notes:
        print(f"warning: {file}: {note}", file=sys.stderr)
    ids = "no ids" if numbering is None else f"{numbering.n_vocab:,} ids in {manifest_path(output)}"
    checked = f"; the same as the original on all {written.lines:,} lines of {check}" if check else ""
    print(f"{output}: {written.format}, {len(codes.merges):,} merges, {ids}{checked}", file=sys.stderr)
