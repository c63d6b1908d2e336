"""fairseq's memory-mapped data set of documents, ``PATH.bin`` and ``PATH.idx``, written and read in bounded memory."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.files import PathLike, explain_os_error, open_output

_MAGIC = b"MMIDIDX\x00\x00"
_HEADER = "<QBQ"
_HEADER_SIZE = len(_MAGIC) + struct.calcsize(_HEADER)
# fairseq's numbers for the types of ids that we write.
_TYPES = {8: "<u2", 9: "<u4"}


def id_type(symbols: int) -> str:
    """Return NumPy's name of the smallest type of fairseq's that holds the ids of a dictionary of this size."""
    return "<u2" if symbols <= 1 << 16 else "<u4"


class IdsWriter:
    """Writes the ids of documents, block by block."""

    def __init__(self, stream: Any, kind: str) -> None:
        self._stream, self._kind = stream, kind
        self._sizes: list[Any] = []

    def write(self, ids: Any, offsets: Any) -> None:
        """Append documents: their ids in one array, and where each begins (one offset more than documents)."""
        import numpy

        self._stream.write(ids.astype(self._kind, copy=False).tobytes())
        sizes = numpy.diff(offsets)
        if len(sizes) and int(sizes.max()) > 0x7FFFFFFF:
            raise MTScaffoldError("a document of more than 2,147,483,647 tokens, which fairseq cannot read; split it")
        self._sizes.append(sizes.astype("<i4"))

    def index(self) -> bytes:
        """Return the content of the ``.idx`` file."""
        import numpy

        sizes = numpy.concatenate([numpy.zeros(0, "<i4"), *self._sizes]).astype("<i4")
        starts = numpy.zeros(len(sizes), "<i8")
        if len(sizes):
            numpy.cumsum(sizes[:-1], dtype=numpy.int64, out=starts[1:])
        starts *= numpy.dtype(self._kind).itemsize
        code = next(code for code, kind in _TYPES.items() if kind == self._kind)
        header = _MAGIC + struct.pack(_HEADER, 1, code, len(sizes))
        return header + sizes.tobytes() + starts.tobytes()


@contextlib.contextmanager
def writing_ids(path: Path, symbols: int) -> Iterator[IdsWriter]:
    """Write ``PATH.bin`` as documents come, and ``PATH.idx`` at the end; both appear only once complete."""
    with open_output(path.with_name(f"{path.name}.bin")) as stream:
        writer = IdsWriter(stream, id_type(symbols))
        yield writer
    with open_output(path.with_name(f"{path.name}.idx")) as stream:
        stream.write(writer.index())


def read_ids(path: PathLike) -> tuple[Any, Any]:
    """Return the ids of all documents in one array, mapped from ``PATH.bin``, and where each begins (int64).

    The offsets are one more than the documents. Raises MTScaffoldError where a file is missing, or not as written.
    """
    import numpy

    index = Path(f"{path}.idx")
    try:
        content = index.read_bytes()
        if content[: len(_MAGIC)] != _MAGIC or len(content) < _HEADER_SIZE:
            raise _damaged(index)
        _, code, documents = struct.unpack_from(_HEADER, content, len(_MAGIC))
        if code not in _TYPES or len(content) != _HEADER_SIZE + 12 * documents:
            raise _damaged(index)
        sizes = numpy.frombuffer(content, "<i4", documents, _HEADER_SIZE)
        offsets = numpy.zeros(documents + 1, numpy.int64)
        numpy.cumsum(sizes, out=offsets[1:])
        binary = Path(f"{path}.bin")
        if binary.stat().st_size != offsets[-1] * numpy.dtype(_TYPES[code]).itemsize or not offsets[-1]:
            raise _damaged(binary)
        return numpy.memmap(binary, _TYPES[code], "r"), offsets
    except OSError as error:
        raise explain_os_error(error, error.filename or index) from error


def _damaged(path: Path) -> MTScaffoldError:
    return MTScaffoldError(f"{path}: not as binarise-documents wrote it; run mt-scaffold binarise-documents again")
