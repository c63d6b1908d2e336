"""What the native core is given: inputs of any kind, worker counts, progress."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, TextIO, cast

from mt_scaffold import _core
from mt_scaffold.errors import UsageError
from mt_scaffold.files import open_input, shown

PathLike = str | os.PathLike[str]
# A path (``.gz`` too), an open file, or lines of text.
TextSource = PathLike | BinaryIO | TextIO | Iterable[str]
_MOST_WORKERS = 4096


def worker_count(workers: int) -> int:
    """The number of threads: as given, or all cores this process may use for -1, as in subword-nmt."""
    if workers == -1:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not 1 <= workers <= _MOST_WORKERS:
        raise UsageError(f"the number of workers must be 1 to {_MOST_WORKERS}, or -1 for all cores, not {workers}")
    return workers


class _Lines(io.RawIOBase):
    """Lines of text as a stream of bytes."""

    def __init__(self, lines: Iterable[str | bytes]) -> None:
        self._lines = iter(lines)
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        parts = [self._rest]
        length = len(self._rest)
        while length < size:
            line = next(self._lines, None)
            if line is None:
                break
            data = line if isinstance(line, bytes) else line.encode("utf-8")
            parts.append(data if data.endswith(b"\n") else data + b"\n")
            length += len(parts[-1])
        data = b"".join(parts)
        self._rest = data[size:]
        return data[:size]


class _Encoded(io.RawIOBase):
    """An open text file as a stream of bytes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        if not self._rest:
            self._rest = self._stream.read(size).encode("utf-8")
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


class _Buffered(io.RawIOBase):
    """A pipe with what Python has taken from it already."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        return self._stream.read1(size)


@contextlib.contextmanager
def core_input(source: TextSource) -> Iterator[_core.Input]:
    """Open a text for the core: a file that has a descriptor is read by the core itself."""
    if isinstance(source, str | os.PathLike):
        with open_input(source) as stream:
            compressed = os.fspath(source).endswith(".gz")
            yield shown(source), stream if compressed else stream.fileno()
        return
    name = getattr(source, "name", "input")
    name = "standard input" if name in ("<stdin>", 0) else str(name)
    if isinstance(source, io.TextIOBase):
        buffer = getattr(source, "buffer", None)
        if buffer is None or not _is_utf8(source) or _holds_text(source, buffer):
            source = cast(BinaryIO, _Encoded(cast(TextIO, source)))
        else:
            source = buffer
    if isinstance(source, io.FileIO) or (
        isinstance(source, io.BufferedReader) and isinstance(source.raw, io.FileIO) and _is_unread(source)
    ):
        yield name, source.fileno()
    elif isinstance(source, io.BufferedReader):
        yield name, cast(BinaryIO, _Buffered(source))
    elif hasattr(source, "read"):
        yield name, cast(BinaryIO, source)
    else:
        yield name, cast(BinaryIO, _Lines(cast(Iterable[str], source)))


def _holds_text(stream: io.TextIOBase, buffer: BinaryIO) -> bool:
    """Whether a text file has taken bytes from its buffer that it has not given out as text yet."""
    try:
        if stream.seekable():
            return stream.tell() != buffer.tell()
        # Refused, as it says, after the first read; otherwise it changes nothing.
        cast(io.TextIOWrapper, stream).reconfigure(encoding=stream.encoding, errors=stream.errors)
        return False
    except (OSError, AttributeError):  # in the middle of iteration, or a stream of another kind
        return True


def _is_utf8(stream: io.TextIOBase) -> bool:
    """Whether the bytes of a text file are those of its text in UTF-8."""
    return codecs.lookup(stream.encoding or "utf-8").name in ("utf-8", "ascii")


def _is_unread(stream: io.BufferedReader) -> bool:
    """Whether the descriptor gives all that the stream would; of a pipe nobody can tell."""
    return stream.seekable() and stream.tell() == stream.raw.tell()


@contextlib.contextmanager
def progress_line(what: str, unit: str = "bytes") -> Iterator[Callable[[int], None] | None]:
    """A line on a terminal's stderr that says how far the core has come; nothing in a log."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    start = last = time.monotonic()
    shown = False

    def show(done: int) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if now - last < 0.5:
            return
        last, shown = now, True
        amount = (
            f"{done / 1e6:,.0f} MB, {done / 1e6 / (now - start):,.0f} MB/s" if unit == "bytes" else f"{done:,} {unit}"
        )
        print(f"\r{what}: {amount} ", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if shown:
            print(file=sys.stderr)
