"""The ids of a split, mapped from fairseq's memory-mapped data set, ``PATH.bin`` and ``PATH.idx``."""

from __future__ import annotations

from typing import Any

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.corpus.id_files import id_width, read_index
from mt_scaffold.errors import MTScaffoldError


def id_type(symbols: int) -> str:
    """Return NumPy's name of the smallest type of fairseq's that holds the ids of a dictionary of this size."""
    return f"<u{id_width(symbols)}"


def read_ids(path: PathLike) -> tuple[Any, Any]:
    """Return the ids of all documents in one array, mapped from ``PATH.bin``, and where each begins (int64).

    The offsets are one more than the documents. Raises MTScaffoldError where a file is missing, or not as written.
    """
    import numpy

    found = read_index(f"{path}.bin")
    offsets = numpy.zeros(found.documents + 1, numpy.int64)
    if not found.documents:
        raise MTScaffoldError(f"{found.index}: no document; run mt-scaffold binarise-documents again")
    numpy.cumsum(numpy.concatenate([numpy.asarray(sizes) for sizes in found.sizes()]), out=offsets[1:])
    return numpy.memmap(found.path, f"<u{found.width}", "r"), offsets
