"""Where each line or document of a stored text begins: a NumPy file of int64, one more than these, mapped."""

from __future__ import annotations

import tokenize
from typing import Any

from mt_scaffold.corpus.files import PathLike, explain_os_error

# What NumPy raises for a file that is empty, cut, or says of itself what cannot be.
_NO_ARRAY = (ValueError, EOFError, TypeError, AttributeError, LookupError, ArithmeticError, RuntimeError, MemoryError)
_NO_HEADER = (SyntaxError, tokenize.TokenError)
# Offsets compared at once, so that no more than these take memory.
_BLOCK = 1 << 20


def map_offsets(path: PathLike, least: int = 0) -> Any:
    """Return the offsets in a file (int64): the first is 0, and each is ``least`` or more after the one before.

    All are compared once, gigabytes in a second. Raises MTScaffoldError where the file cannot be read; ValueError for
    one that holds no such offsets.
    """
    import numpy

    try:
        # This reads nothing else, such as the zip files and pickles that numpy.load takes.
        with numpy.errstate(over="raise"):  # it only warns of a shape that is too large
            offsets = numpy.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise explain_os_error(error, path) from error
    except (*_NO_ARRAY, *_NO_HEADER) as error:
        raise ValueError(str(error)) from error
    if offsets.ndim != 1 or offsets.dtype != numpy.int64 or len(offsets) < 2 or offsets[0] != 0:
        raise ValueError("no offsets")
    for begin in range(0, len(offsets) - 1, _BLOCK):
        block = offsets[begin : begin + _BLOCK + 1]
        # No difference overflows: what comes before is 0 or more.
        if block.min() < 0 or numpy.diff(block).min() < least:
            raise ValueError("offsets that do not ascend")
    return offsets
