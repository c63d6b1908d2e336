"""Files of ids: ``X.bin``, the ids of all documents, as nanoGPT maps it, and ``X.idx``, the beginning of each.

``X.bin`` holds only the ids, unsigned integers of 2 or 4 bytes, little-endian. The pair is fairseq's
memory-mapped data set (``--dataset-impl mmap``) or, with another index, Megatron's ``IndexedDataset``. Both indices
begin with the same bytes; their lengths tell them apart.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import tempfile
from array import array
from collections.abc import Iterator
from itertools import accumulate
from typing import BinaryIO, NamedTuple, cast

from mt_scaffold.corpus.files import PathLike, open_output, shown
from mt_scaffold.errors import MTScaffoldError, UsageError

_MAGIC = b"MMIDIDX\x00\x00"
_VERSION = 1
_BLOCK = 1 << 16
DTYPES = {"uint16": 2, "uint32": 4}
INDEXES = ("fairseq", "megatron")


class _Layout(NamedTuple):
    """How a program lays out its index.

    header: magic number, version, type of the ids and their sequences; for Megatron also how many bounds of documents
    follow the sizes (int32 each) and starts (int64 each) of the sequences.
    codes: the program's number for the type of the ids, by their width in bytes.
    """

    program: str
    header: struct.Struct
    codes: dict[int, int]

    def length(self, sequences: int, bounds: int) -> int:
        return self.header.size + 12 * sequences + 8 * bounds


# For Megatron, ids of 4 bytes are signed; none needs the sign bit.
_LAYOUTS = {
    "fairseq": _Layout("fairseq", struct.Struct("<9sQBQ"), {2: 8, 4: 9}),
    "megatron": _Layout("Megatron", struct.Struct("<9sQBQQ"), {2: 8, 4: 4}),
}


def id_width(n_vocab: int, dtype: str | None = None) -> int:
    """Return the width of an id in bytes: that of ``dtype``, or of the smallest type that holds ``n_vocab`` ids.

    Raises UsageError for a type that is unknown or too small.
    """
    if dtype is None:
        return 2 if n_vocab <= 1 << 16 else 4
    if dtype not in DTYPES:
        raise UsageError(f"there is no type of ids '{dtype}'; choose one of {', '.join(DTYPES)}")
    if n_vocab > 1 << (8 * DTYPES[dtype]):
        raise UsageError(f"{n_vocab:,} ids do not fit into {dtype}; choose uint32")
    return DTYPES[dtype]


def index_path(path: PathLike) -> str:
    """Return the path of the index next to ``X.bin``; raise UsageError for a path that does not end in ``.bin``."""
    name = os.fspath(path)
    if not name.endswith(".bin"):
        raise UsageError(f"{shown(path)}: not a file NAME.bin, with NAME.idx next to it; name one file per run")
    return name.removesuffix(".bin") + ".idx"


def write_index(stream: BinaryIO, width: int, documents: int, sizes: Iterator[bytes], index: str = "fairseq") -> None:
    """Write an index for ids of ``width`` bytes; sizes: each document's number of ids (int32), in blocks of any size.

    They are needed once as they are and once to be summed, so the iterator yields all of them twice.
    """
    layout = _LAYOUTS[index]
    bounds = (documents + 1,) if index == "megatron" else ()
    stream.write(layout.header.pack(_MAGIC, _VERSION, layout.codes[width], documents, *bounds))
    left = 4 * documents
    while left > 0:
        block = next(sizes)
        stream.write(block)
        left -= len(block)
    start = 0
    for block in sizes:
        starts = array("q", accumulate((width * size for size in array("i", block)), initial=start))
        start = starts.pop()
        stream.write(starts)
    stream.writelines(_document_bounds(*bounds))


def _document_bounds(count: int = 0) -> Iterator[array[int]]:
    """Yield Megatron's bounds of documents: each document is one sequence."""
    for start in range(0, count, _BLOCK):
        yield array("q", range(start, min(start + _BLOCK, count)))


class IdsWriter(NamedTuple):
    """Files for ids and for the number of ids of each document (int32), both open for writing bytes, in step.

    name, index_name: their names in messages.
    """

    ids: BinaryIO
    sizes: BinaryIO
    name: str
    index_name: str


@contextlib.contextmanager
def writing_ids(path: PathLike, width: int, index: str = "fairseq") -> Iterator[IdsWriter]:
    """Write ``NAME.bin`` and ``NAME.idx``, which take these names only if the block ends without an error.

    index: the program that reads the index, one of ``INDEXES``.

    Memory is bounded whatever the number of documents. Raises UsageError unless ``path`` ends in ``.bin``.
    """
    assert sys.byteorder == "little" and array("i").itemsize == 4
    index_file = index_path(path)
    folder = os.path.dirname(os.path.realpath(path))
    with (
        open_output(path, durable=False) as ids,
        open_output(index_file, durable=False) as stream,
        tempfile.TemporaryFile(dir=folder) as sizes,
    ):
        writer = IdsWriter(ids, cast(BinaryIO, sizes), shown(path), shown(index_file))
        yield writer
        sizes.flush()
        length = sizes.seek(0, os.SEEK_END)
        write_index(stream, width, length // 4, _twice(cast(BinaryIO, sizes)), index)


def _twice(stream: BinaryIO) -> Iterator[bytes]:
    for _ in range(2):
        stream.seek(0)
        while block := stream.read(4 * _BLOCK):
            yield block


class IdFile(NamedTuple):
    """A file of ids: ``width`` bytes each; the sizes of its documents, as blocks of int32.

    header: bytes of the index before the sizes.
    """

    path: str
    index_file: str
    width: int
    documents: int
    header: int

    def sizes(self) -> Iterator[array[int]]:
        """Yield the number of ids of each document, 65,536 at a time."""
        with open(self.index_file, "rb") as stream:
            stream.seek(self.header)
            left = self.documents
            while left > 0:
                block = array("i", stream.read(4 * min(left, _BLOCK)))
                if block and min(block) < 0:
                    raise MTScaffoldError(
                        f"{shown(self.index_file)}: a document of {min(block)} ids; encode the text again"
                    )
                yield block
                left -= len(block)


def read_index(path: PathLike, index: str | None = None) -> IdFile:
    """Read the index next to ``X.bin``; index: the program that must be able to read it, None for any.

    Raises MTScaffoldError if it is missing, malformed, another program's, or of another file than ``X.bin``.
    """
    index_file = index_path(path)
    try:
        with open(index_file, "rb") as stream:
            header = stream.read(_LAYOUTS["megatron"].header.size)
            length = stream.seek(0, os.SEEK_END)
        ids = os.path.getsize(path)
    except OSError as error:
        raise MTScaffoldError(f"{error.filename}: {error.strerror}") from error
    if length < _LAYOUTS["fairseq"].header.size or header[:9] != _MAGIC:
        raise MTScaffoldError(f"{shown(index_file)}: not an index of ids, as mt-scaffold encode and fairseq write it")
    _, version, code, documents, bounds = _LAYOUTS["megatron"].header.unpack(header.ljust(34, b"\0"))
    # For the same number of sequences Megatron's index is the longer one, whatever its bounds.
    lengths = [_LAYOUTS["fairseq"].length(documents, 0), _LAYOUTS["megatron"].length(documents, bounds)]
    written = INDEXES[lengths.index(length)] if length in lengths else None
    layout = _LAYOUTS[written or "fairseq"]
    if written and index not in (None, written):
        raise MTScaffoldError(
            f"{shown(index_file)}: an index for {layout.program}, not for {_LAYOUTS[str(index)].program}; encode the "
            f"text again with --index {index}"
        )
    width = {code: width for width, code in layout.codes.items()}.get(code)
    if version != _VERSION or (width is None and (written or code not in _LAYOUTS["megatron"].codes.values())):
        raise MTScaffoldError(
            f"{shown(index_file)}: ids of {layout.program}'s type {code}; only those of mt-scaffold encode are read"
        )
    if width is None or not written:
        raise MTScaffoldError(f"{shown(index_file)}: incomplete; encode the text again")
    found = IdFile(os.fspath(path), index_file, width, documents, layout.header.size)
    if written == "megatron" and not _one_sequence_each(index_file, documents, bounds):
        raise MTScaffoldError(
            f"{shown(index_file)}: its documents are of several sequences; only those of one sequence each are read"
        )
    if sum(map(sum, found.sizes())) * width != ids:
        raise MTScaffoldError(f"{shown(index_file)}: not the index of {shown(path)}, which has {ids:,} bytes")
    return found


def _one_sequence_each(index_file: str, sequences: int, bounds: int) -> bool:
    with open(index_file, "rb") as stream:
        stream.seek(_LAYOUTS["megatron"].length(sequences, 0))
        return bounds == sequences + 1 and all(
            stream.read(8 * len(block)) == block.tobytes() for block in _document_bounds(bounds)
        )
