"""Documents, the units of a corpus for a language model, read from text, JSONL and Parquet in bounded memory.

A document is a string of bytes, pre-tokenised and encoded as a whole, line feeds included.
"""

from __future__ import annotations

import contextlib
import os
from array import array
from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple, cast

from mt_scaffold.corpus.files import compression_of, format_by_name, shown
from mt_scaffold.corpus.inputs import CoreInput, TextFile, core_input, lone_surrogate, readable, source_name
from mt_scaffold.errors import MTScaffoldError, UsageError

# Plain text with a document per line, or with one per file; JSON objects, one per line; tables.
DOCUMENT_FORMATS = ("lines", "files", "jsonl", "parquet")
DEFAULT_FIELD = "text"
_READ = 1 << 18
# Documents are handed to the core this many bytes at a time, or one by one if they are longer.
_BATCH = 1 << 18


class DocumentInput(NamedTuple):
    """One file of documents: a path or an open file, its name in errors, and its format."""

    source: TextFile
    name: str
    format: str


class Documents:
    """The documents of one or more files, in order; iterating reads the files again and yields each as bytes.

    paths: paths, globs (``"shards/*.jsonl.zst"``, sorted by name; ``**`` for folders at any depth) and open files.
    format: one of ``DOCUMENT_FORMATS`` for all; None to infer it from each name: ``.jsonl``, ``.ndjson``, ``.parquet``,
        and ``lines`` for any other; with ``.gz`` or ``.zst`` at the end, a compressed file (Parquet compresses itself).
    field: the key or column that holds the text in JSONL and Parquet; None for ``text``.

    A line's LF is not part of the document; blank lines of JSONL are skipped. Memory is bounded by the longest
    document, of which a few copies are held, and for Parquet by 512 rows of its column.

    Raises MTScaffoldError for a glob that matches nothing; UsageError for an unknown format, a field if no input has
    fields, and Parquet from a stream. Iterating raises MTScaffoldError with file and line or row if an input cannot be
    read, is cut off or malformed, or has no such field, or something other than a string in it.

    >>> import io
    >>> list(Documents([io.BytesIO(b'{"text": "one"}\\n{"text": "two\\\\nlines"}\\n')], format="jsonl"))
    [b'one', b'two\\nlines']
    """

    def __init__(self, paths: Iterable[TextFile], format: str | None = None, field: str | None = None) -> None:
        if isinstance(paths, str | bytes | os.PathLike) or hasattr(paths, "read"):
            raise UsageError("documents take a list of paths or open files; pass a single one as [path]")
        if format is not None and format not in DOCUMENT_FORMATS:
            raise UsageError(f"there is no format '{format}'; choose one of {', '.join(DOCUMENT_FORMATS)}")
        self.inputs = [_input(source, format) for path in paths for source in expanded(path)]
        if field is not None and not any(each.format in ("jsonl", "parquet") for each in self.inputs):
            name = self.inputs[0].name if self.inputs else "the input"
            raise UsageError(
                f"{name}: plain text has no field '{field}'; give --format jsonl or --format parquet, or omit --field"
            )
        self.field = DEFAULT_FIELD if field is None else field

    @property
    def sources(self) -> list[TextFile]:
        """The files, with globs expanded."""
        return [each.source for each in self.inputs]

    def __iter__(self) -> Iterator[bytes]:
        for each in self.inputs:
            yield from self.documents_of(each)

    def documents_of(self, each: DocumentInput, blank: array[int] | None = None) -> Generator[bytes, None, None]:
        """Yield the documents of one of ``inputs``; ``blank`` collects the numbers of JSONL lines without one."""
        if each.format == "parquet":
            from mt_scaffold.corpus.parquet import read_column

            yield from read_column(cast(str, each.source), each.name, self.field)
            return
        with core_input(each.source, warn=each.format != "jsonl") as (_, opened):
            stream = readable(opened)
            chunks = iter(lambda: stream.read(_READ), b"")
            if each.format == "files":
                yield b"".join(chunks)
            elif each.format == "jsonl":
                from mt_scaffold.corpus.jsonl import read_field

                yield from read_field(_lines(chunks), each.name, self.field, blank)
            else:
                yield from _lines(chunks)

    @contextlib.contextmanager
    def core_input_of(self, each: DocumentInput) -> Iterator[CoreInput]:
        """Open one of ``inputs`` for the core: plain text as a stream of bytes, other formats as documents."""
        if each.format in ("lines", "files"):
            with core_input(each.source) as opened:
                yield opened
            return
        documents = self.documents_of(each)
        with contextlib.closing(documents):
            yield each.name, _Batches(documents)


# ``Documents``, or the documents themselves.
AnyDocuments = Documents | Iterable[str | bytes]


def encoded(documents: Iterable[str | bytes]) -> Iterator[bytes]:
    """Return documents as bytes, each encoded only when it is read.

    Raises UsageError for a single string; reading raises it for what is neither a string nor bytes, and MTScaffoldError
    for a lone surrogate.
    """
    if isinstance(documents, str | bytes | os.PathLike):
        raise UsageError("documents= takes Documents, or a list of texts; pass a single one as documents=[text]")
    return _encoded(documents)


def _encoded(documents: Iterable[str | bytes]) -> Iterator[bytes]:
    for number, document in enumerate(documents, 1):
        if not isinstance(document, str | bytes):
            raise UsageError(f"documents are strings or bytes, not a {type(document).__name__}")
        try:
            yield document if isinstance(document, bytes) else document.encode("utf-8")
        except UnicodeEncodeError as error:
            raise lone_surrogate(f"document {number}", error) from None


def documents_input(documents: Iterator[bytes]) -> CoreInput:
    """Return documents as an input of the core."""
    return "documents", _Batches(documents)


class _Batches:
    """Documents for the core, many at a time."""

    def __init__(self, documents: Iterator[bytes]) -> None:
        self._documents = documents

    def read_documents(self) -> list[bytes] | None:
        """Return the next documents, of some 256 KiB; None after the last one."""
        batch, size = [], 0
        for document in self._documents:
            batch.append(document)
            size += len(document)
            if size >= _BATCH:
                break
        return batch or None


def _input(source: TextFile, format: str | None) -> DocumentInput:
    name = source_name(source)
    format = format or format_by_name(name)
    if format == "parquet":
        if not isinstance(source, str | os.PathLike):
            raise UsageError(f"{name}: Parquet cannot be read from a stream; name the file")
        if compression_of(source):
            raise UsageError(f"{name}: Parquet is compressed within; decompress the file first")
    return DocumentInput(source, name, format)


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines of a text without their LFs."""
    rest: list[bytes] = []
    for chunk in chunks:
        first, *lines = chunk.split(b"\n")
        rest.append(first)
        if lines:
            yield b"".join(rest)
            yield from lines[:-1]
            rest = [lines[-1]]
    if last := b"".join(rest):
        yield last


def expanded(path: TextFile) -> list[TextFile]:
    """Return a path as it is, or the sorted files that a glob matches.

    Raises MTScaffoldError if it matches none, and if its last part, such as ``*.parquet``, matches a folder.
    """
    if not isinstance(path, str | os.PathLike):
        return [path]
    name = os.fspath(path)
    if not any(character in name for character in "*?[") or os.path.lexists(name):
        return [path]
    import glob

    matches = sorted({*glob.iglob(name, recursive=True)})
    found = [match for match in matches if not os.path.isdir(match)]
    folders = [match for match in matches if os.path.isdir(match)]
    last = name.rpartition("/")[2]
    if folders and last.strip("*?"):
        raise MTScaffoldError(f"{shown(folders[0])}: a folder that {last} matches; name its files too, or rename it")
    if not found:
        raise MTScaffoldError(f"{shown(path)}: no file matches this pattern; check the folder and the ending")
    return list(found)
