"""Files of ids: ``X.bin``, the ids of all documents, as nanoGPT maps it, and ``X.idx``, where each begins.

``X.bin`` is nothing but the ids, unsigned integers of 2 or 4 bytes, little-endian. The pair is fairseq's
memory-mapped data set (``--dataset-impl mmap``).
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
_HEADER = struct.Struct("<9sQBQ")
# fairseq's numbers for unsigned integers, by their bytes.
_CODES = {2: 8, 4: 9}
_BLOCK = 1 << 16
DTYPES = {"uint16": 2, "uint32": 4}


def id_width(n_vocab: int, dtype: str | None = None) -> int:
    """Return the bytes of an id: of ``dtype``, or of the smallest type that holds ``n_vocab`` ids.

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
    """Return the path of the index beside ``X.bin``; UsageError for a path that does not end so."""
    name = os.fspath(path)
    if not name.endswith(".bin"):
        raise UsageError(f"{shown(path)}: ids are written to a file NAME.bin, with NAME.idx beside it")
    return name.removesuffix(".bin") + ".idx"


def write_index(stream: BinaryIO, width: int, documents: int, sizes: Iterator[bytes]) -> None:
    """Write fairseq's index for ids of ``width`` bytes; sizes: the numbers of ids (int32), twice over, in any blocks.

    They are needed once as they are and once to be summed, so the iterator gives them all, then all of them again.
    """
    stream.write(_HEADER.pack(_MAGIC, _VERSION, _CODES[width], documents))
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


class IdsWriter(NamedTuple):
    """Files for ids and for the number of ids of each document (int32), both open for writing bytes, in step.

    name, index_name: what messages call what is written.
    """

    ids: BinaryIO
    sizes: BinaryIO
    name: str
    index_name: str


@contextlib.contextmanager
def writing_ids(path: PathLike, width: int) -> Iterator[IdsWriter]:
    """Write ``NAME.bin`` and ``NAME.idx``, which take these names only if the block ends without an error.

    Memory is bounded whatever the number of documents. Raises UsageError unless ``path`` ends in ``.bin``.
    """
    assert sys.byteorder == "little" and array("i").itemsize == 4
    index = index_path(path)
    folder = os.path.dirname(os.path.realpath(path))
    with open_output(path) as ids, open_output(index) as stream, tempfile.TemporaryFile(dir=folder) as sizes:
        writer = IdsWriter(ids, cast(BinaryIO, sizes), shown(path), shown(index))
        yield writer
        sizes.flush()
        length = sizes.seek(0, os.SEEK_END)
        write_index(stream, width, length // 4, _twice(cast(BinaryIO, sizes)))


def _twice(stream: BinaryIO) -> Iterator[bytes]:
    for _ in range(2):
        stream.seek(0)
        while block := stream.read(4 * _BLOCK):
            yield block


class IdFile(NamedTuple):
    """A file of ids: ``width`` bytes each; the sizes of its documents, as blocks of int32."""

    path: str
    index_file: str
    width: int
    documents: int

    def sizes(self) -> Iterator[array[int]]:
        """Yield the number of ids of each document, some 65,536 at a time."""
        with open(self.index_file, "rb") as stream:
            stream.seek(_HEADER.size)
            left = self.documents
            while left > 0:
                block = array("i", stream.read(4 * min(left, _BLOCK)))
                yield block
                left -= len(block)


def read_index(path: PathLike) -> IdFile:
    """Return what the index beside ``X.bin`` says.

    Raises MTScaffoldError where it is missing, malformed, or of another file than ``X.bin``.
    """
    index = index_path(path)
    try:
        with open(index, "rb") as stream:
            header = stream.read(_HEADER.size)
            length = stream.seek(0, os.SEEK_END)
        ids = os.path.getsize(path)
    except OSError as error:
        raise MTScaffoldError(f"{error.filename}: {error.strerror}") from error
    if len(header) < _HEADER.size or header[:9] != _MAGIC:
        raise MTScaffoldError(f"{shown(index)}: not an index of ids, as mt-scaffold encode and fairseq write it")
    _, version, code, documents = _HEADER.unpack(header)
    width = {code: width for width, code in _CODES.items()}.get(code)
    if version != _VERSION or width is None:
        raise MTScaffoldError(f"{shown(index)}: ids of fairseq's type {code}; only uint16 and uint32 are read")
    if length != _HEADER.size + 12 * documents:
        raise MTScaffoldError(f"{shown(index)}: incomplete; encode the text again")
    found = IdFile(os.fspath(path), index, width, documents)
    if sum(map(sum, found.sizes())) * width != ids:
        raise MTScaffoldError(f"{shown(index)}: not the index of {shown(path)}, which has {ids:,} bytes")
    return found
