"""Byte offsets of the lines or documents of a stored text, and of its end: a memory-mapped NumPy file of int64."""

from __future__ import annotations

import tokenize
from typing import Any

from mt_scaffold.corpus.files import PathLike, explain_os_error

# NumPy's errors for a file that is empty, truncated, or has an impossible header.
_NO_ARRAY = (ValueError, EOFError, TypeError, AttributeError, LookupError, ArithmeticError, RuntimeError, MemoryError)
_NO_HEADER = (SyntaxError, tokenize.TokenError)
# Offsets compared at a time, which bounds the memory.
_BLOCK = 1 << 20


def map_offsets(path: PathLike, least: int = 0) -> Any:
    """Return the offsets in a file (int64): the first is 0, and each is ``least`` or more after the one before.

    All are compared once, gigabytes per second. Raises MTScaffoldError if the file cannot be read; ValueError if it
    does not hold such offsets.
    """
    import numpy

    try:
        # Unlike numpy.load, this accepts no zip files or pickles.
        with numpy.errstate(over="raise"):  # otherwise a shape that is too large is only a warning
            offsets = numpy.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise explain_os_error(error, path) from error
    except (*_NO_ARRAY, *_NO_HEADER) as error:
        raise ValueError(str(error)) from error
    if offsets.ndim != 1 or offsets.dtype != numpy.int64 or len(offsets) < 2 or offsets[0] != 0:
        raise ValueError("no offsets")
    for begin in range(0, len(offsets) - 1, _BLOCK):
        block = offsets[begin : begin + _BLOCK + 1]
        # Differences cannot overflow once the minimum is known to be 0 or more.
        if block.min() < 0 or numpy.diff(block).min() < least:
            raise ValueError("offsets that do not ascend")
    return offsets
