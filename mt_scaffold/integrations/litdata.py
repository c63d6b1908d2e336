"""Files of ids → the chunks that litdata streams, and litgpt with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.corpus.id_files import read_index

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


def documents_of(path: PathLike) -> Iterator[NDArray[numpy.uint16] | NDArray[numpy.int32]]:
    """Yield the ids of each document of ``NAME.bin`` that has some, as ``litdata.optimize`` takes them.

    They are uint16, or int32 where the file has 4 bytes for each. Raises as ``read_index`` does.
    """
    import numpy

    found = read_index(path)
    if not any(map(any, found.sizes())):
        return
    ids = numpy.memmap(found.path, "<u2" if found.width == 2 else "<i4", "r")
    begin = 0
    for sizes in found.sizes():
        for size in sizes:
            if size:
                yield numpy.array(ids[begin : begin + size])
            begin += size
