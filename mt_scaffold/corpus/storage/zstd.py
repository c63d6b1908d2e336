"""``.zst`` files, with Python's own module (from 3.14) or its backport."""

from __future__ import annotations

import io
import sys
from typing import Any, BinaryIO, cast

from mt_scaffold.errors import MTScaffoldError

# Compresses about as well as gzip, and many times faster.
_LEVEL = 3
# Windows of any size (zstd --long=31), as a logarithm.
_WINDOW = 31


class ZstdReader(io.RawIOBase):
    """The content of a ``.zst`` file of any number of frames.

    stream: the file, open for bytes; closed with the reader. name: of the file, for errors.

    Reading raises EOFError if the file is cut off, and OSError without an errno if it is damaged. Raises
    MTScaffoldError if no module reads the format.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        zstd = _zstd(name)
        self._stream = stream
        self._error: type[Exception] = zstd.ZstdError
        self._file = zstd.ZstdFile(stream, options={zstd.DecompressionParameter.window_log_max: _WINDOW})

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object, /) -> int:
        try:
            return int(self._file.readinto(buffer))
        except self._error as error:
            raise OSError(str(error)) from error

    def close(self) -> None:
        self._stream.close()
        super().close()


def compressing(stream: BinaryIO, name: str) -> BinaryIO:
    """Return a file whose bytes are written to ``stream`` as one frame; closing it leaves ``stream`` open."""
    file = _zstd(name).ZstdFile(stream, "wb", level=_LEVEL)
    file.write(b"")  # an empty file is a frame too
    return cast(BinaryIO, file)


def _zstd(name: str) -> Any:
    if sys.version_info >= (3, 14):
        import compression.zstd as zstd
    else:
        try:
            import backports.zstd as zstd
        except ModuleNotFoundError as error:
            raise MTScaffoldError(
                f"{name}: .zst needs the Python package backports.zstd (or Python 3.14): in the source folder, "
                "pip install '.[documents]'"
            ) from error
    return zstd
