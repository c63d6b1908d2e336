"""Vocabularies of other programs → codes and their ids: the command ``import``."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Protocol, cast

from mt_scaffold.corpus.files import (
    BYTE_ORDER_MARK,
    PathLike,
    open_input,
    open_output,
    read_file,
    refuse_overwriting,
    shown,
)
from mt_scaffold.corpus.text import not_utf8
from mt_scaffold.errors import MTScaffoldError, printable
from mt_scaffold.integrations.vocabularies.imported import Imported, Original
from mt_scaffold.manifest import manifest_path
from mt_scaffold.options import check_choice
from mt_scaffold.segment.apply import BPE
from mt_scaffold.segment.numbering import write_numbered

# Each is a module of this name, with _ for a dot.
FORMATS = ("tokenizer.json", "tiktoken", "sentencepiece", "fastbpe")
# The number of lines that are compared as one text, line ends included.
_LINES = 64


class Written(NamedTuple):
    """The result of ``import_codes``: the written codes, their format, and how many lines of a text were compared."""

    imported: Imported
    format: str
    lines: int


class _Reader(Protocol):
    """The module of a format."""

    def read(self, path: PathLike, pretokeniser: str | None, special: Mapping[str, int] | None) -> Imported: ...

    def original(self, path: PathLike, imported: Imported) -> Original: ...


def reader_of(format: str) -> _Reader:
    """Return the module that reads a format, one of FORMATS."""
    module = importlib.import_module(f"mt_scaffold.integrations.vocabularies.{format.replace('.', '_')}")
    return cast(_Reader, module)


def import_codes(
    path: PathLike,
    outfile: PathLike,
    *,
    format: str | None = None,
    pretokenise: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    check: PathLike | None = None,
) -> Written:
    """Write the codes of a file of another program, and next to them its ids and special tokens.

    format: one of FORMATS; None to detect it from the content. pretokenise, special_tokens: of tiktoken's ranks that
    are not OpenAI's. check: a text; codes are written only if the program itself, which must be installed, gives the
    same ids for it.

    Raises MTScaffoldError, with the reason, for anything that codes cannot express exactly, and for the first line of
    ``check`` with other ids.
    """
    refuse_overwriting([outfile, manifest_path(outfile)], [path, check])
    chosen = format_of(path) if format is None else check_choice("format", format, FORMATS)
    reader = reader_of(chosen)
    imported = reader.read(path, pretokenise, special_tokens)
    lines = 0 if check is None else compare(imported, _original(reader, path, imported), check)
    if imported.numbering is None:
        with open_output(outfile) as stream:
            stream.write(imported.codes.text)
    else:
        write_numbered(imported.codes, imported.numbering, outfile)
    return Written(imported, chosen, lines)


def _original(reader: _Reader, path: PathLike, imported: Imported) -> Original:
    try:
        return reader.original(path, imported)
    except MTScaffoldError:
        raise
    except Exception as error:  # each library raises its own type
        reason = printable(f"{type(error).__name__}: {error}")
        raise MTScaffoldError(
            f"{shown(path)}: its own program does not load it ({reason}); give a file that loads, or omit --check"
        ) from None


def format_of(path: PathLike) -> str:
    """Detect the format of a file from its content. Raises MTScaffoldError if it looks like none of them."""
    content = read_file(path).removeprefix(BYTE_ORDER_MARK)
    first = content.partition(b"\n")[0]
    fields = first.split()
    if first.startswith(b"#version:"):
        raise MTScaffoldError(
            f"{shown(path)}: already codes of learn-bpe or subword-nmt; give them to --codes without importing them"
        )
    if content.lstrip()[:1] == b"{":
        return "tokenizer.json"
    if content[:1] == b"\x0a" and b"\x00" in content[:4096]:
        return "sentencepiece"
    if len(fields) == 3 and fields[2].isdigit():
        return "fastbpe"
    if len(fields) == 2 and fields[1].isdigit():
        return "tiktoken"
    raise MTScaffoldError(f"{shown(path)}: its content looks like none of {', '.join(FORMATS)}; give --format")


def compare(imported: Imported, original: Original, path: PathLike) -> int:
    """Encode a text with both, and return its number of lines. Raises MTScaffoldError for the first that differs."""
    ours = segmentation(imported)
    number = 0
    for block in _blocks(path):
        whole = ["".join(block)] if imported.numbering is not None else [line.removesuffix("\n") for line in block]
        if any(list(ours(text)) != list(original(text)) for text in whole):
            for line, text in enumerate(block, number + 1):
                found, wanted = list(ours(text)), list(original(text))
                if found != wanted or line == number + len(block):
                    raise MTScaffoldError(
                        f"{shown(path)}: line {line}: {_some(wanted)} in the original, {_some(found)} with the codes; "
                        "nothing was written"
                    )
        number += len(block)
    return number


def segmentation(imported: Imported) -> Original:
    """Return a function from a text to its ids or, if the format has none, its subwords."""
    if imported.numbering is None:
        plain = BPE(imported.codes)
        return lambda text: plain.segment(text).split(" ")
    in_text = imported.numbering.in_text
    bpe = BPE(imported.codes, numbering=imported.numbering)
    return lambda text: bpe.encode(text, allowed_special=in_text, disallowed_special=())


def _some(ids: Sequence[object]) -> str:
    return " ".join(map(str, ids[:12])) + " ..." * (len(ids) > 12)


def _blocks(path: PathLike) -> Iterator[list[str]]:
    read = offset = 0
    with open_input(path) as stream:
        while lines := list(islice(stream, _LINES)):
            block = []
            for number, line in enumerate(lines, read + 1):
                try:
                    block.append(line.decode("utf-8"))
                except UnicodeDecodeError as error:
                    raise not_utf8(shown(path), number, offset + error.start, line[error.start]) from None
                offset += len(line)
            read += len(block)
            yield block
