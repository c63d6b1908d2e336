"""``.zst`` files, with Python's own module (from 3.14) or the package zstandard."""

from __future__ import annotations

import io
import sys
from typing import BinaryIO, Protocol, cast

from mt_scaffold.errors import MTScaffoldError

# Compresses about as well as gzip does, many times faster.
_LEVEL = 3
# Windows of any size (zstd --long=31), as a logarithm.
_WINDOW = 31
# How many bytes a step decompresses, about.
_STEP = 1 << 18
_LEAST, _MOST = 64, 1 << 16


class _Decompressor(Protocol):
    """One frame: what both modules have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


class ZstdReader(io.RawIOBase):
    """The bytes of a ``.zst`` file, whose frames follow one another.

    stream: the file, open for bytes; closed with the reader. name: what messages call it.

    Reading raises EOFError where the file is cut off, and OSError without a number where it is damaged. Raises
    MTScaffoldError where no module reads the format.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        _check_installed(name)
        self._stream = stream
        self._frame: _Decompressor | None = None
        self._frames = 0
        self._input = self._output = b""
        self._taken = 0
        # Adapted to the ratio of compression, which may be thousands to one: a step decompresses all it is given.
        self._chunk = _LEAST

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object, /) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        while self._taken == len(self._output):
            if not self._step():
                return 0
        part = self._output[self._taken : self._taken + len(view)]
        view[: len(part)] = part
        self._taken += len(part)
        return len(part)

    def _step(self) -> bool:
        """Decompress the next bytes of the file; False at its end."""
        data, self._input = self._input[: self._chunk], self._input[self._chunk :]
        data = data or self._stream.read(self._chunk)
        if not data:
            if self._frame is not None or self._frames == 0:
                raise EOFError("it ends within a frame" if self._frames or self._frame else "it is empty")
            return False
        frame = self._frame if self._frame is not None else _new_frame()
        self._output, self._taken = _decompress(frame, data), 0
        self._chunk = max(_LEAST, min(_MOST, len(data) * _STEP // max(len(self._output), 1)))
        self._frame = frame
        if frame.eof:
            self._input = frame.unused_data + self._input
            self._frame = None
            self._frames += 1
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()


if sys.version_info >= (3, 14):
    from compression import zstd as _zstd

    def _check_installed(name: str) -> None:
        pass

    def _new_frame() -> _Decompressor:
        return _zstd.ZstdDecompressor(options={_zstd.DecompressionParameter.window_log_max: _WINDOW})

    def _decompress(frame: _Decompressor, data: bytes) -> bytes:
        try:
            return frame.decompress(data)
        except _zstd.ZstdError as error:
            raise OSError(str(error)) from error

    def compressing(stream: BinaryIO, name: str) -> BinaryIO:
        file = _zstd.ZstdFile(stream, "wb", level=_LEVEL)
        file.write(b"")  # an empty file is a frame too
        return cast(BinaryIO, file)

else:

    def _check_installed(name: str) -> None:
        try:
            import zstandard  # noqa: F401
        except ModuleNotFoundError as error:
            raise MTScaffoldError(
                f"{name}: .zst needs the Python package zstandard (or Python 3.14): in the source folder, "
                "pip install '.[documents]'"
            ) from error

    def _new_frame() -> _Decompressor:
        import zstandard

        return cast(_Decompressor, zstandard.ZstdDecompressor(max_window_size=1 << _WINDOW).decompressobj())

    def _decompress(frame: _Decompressor, data: bytes) -> bytes:
        import zstandard

        try:
            return frame.decompress(data)
        except zstandard.ZstdError as error:
            raise OSError(str(error)) from error

    def compressing(stream: BinaryIO, name: str) -> BinaryIO:
        """Return a file open for bytes that are written to ``stream`` as one frame; closing it leaves that open."""
        _check_installed(name)
        import zstandard

        return cast(BinaryIO, zstandard.ZstdCompressor(level=_LEVEL).stream_writer(stream, closefd=False))
