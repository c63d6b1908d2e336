"""The inputs of a call as the native core reads them: paths, open files and lines; and its output."""

from __future__ import annotations

import codecs
import contextlib
import encodings.utf_8
import io
import os
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, cast

from mt_scaffold.corpus.files import (
    LONGEST_MAGIC,
    MAGIC,
    PathLike,
    Readable,
    Waiting,
    Writable,
    check_plain,
    compression_of,
    open_input,
    refuse_no_text,
    shown,
    stream_name,
    warn_of_mark,
)
from mt_scaffold.errors import MTScaffoldError, UsageError

# A path (``.gz`` too), or a file open for bytes or text.
TextFile = PathLike | Readable[bytes] | Readable[str]
# An input of the core: a name for messages, with a file descriptor, the bytes already read from one and the descriptor,
# bytes, or an object to read from.
CoreInput = tuple[str, object]
# Called with the first bytes of a text.
Look = Callable[[bytes], None]
# Lines of text or UTF-8, each with its LF or without.
Lines = Iterable[str | bytes]
# Bytes per read when a whole stream is read.
_PART = 1 << 20
# The capacity of a pipe.
_TAKEN = 1 << 16


def text_source(infile: TextFile | None, lines: Lines | None) -> TextFile:
    """Return the input of a call that takes a single file, or lines; raises UsageError as ``text_sources`` does."""
    exactly_one(infile=infile, lines=lines)
    if lines is not None:
        return _line_stream(lines)
    return _one_file(infile, "pass lines of text as lines=[...]")


def text_sources(
    infile: TextFile | None = None, paths: Iterable[TextFile] | None = None, lines: Lines | None = None
) -> list[TextFile]:
    """Return the input of a call as the files that are read, one after the other, as one text.

    infile: one path (``.gz`` too) or open file. paths: several. lines: strings or UTF-8.

    Raises UsageError unless exactly one is given, and for a value that belongs to another, such as a list as
    ``infile``.
    """
    exactly_one(infile=infile, paths=paths, lines=lines)
    if lines is not None:
        return [_line_stream(lines)]
    if paths is None:
        return [_one_file(infile, "pass several files as paths=[...], lines of text as lines=[...]")]
    if isinstance(paths, str | bytes | os.PathLike) or hasattr(paths, "read"):
        raise UsageError("paths= takes a list of paths or open files; pass a single one as infile")
    return [_one_file(path, "pass lines of text as lines=[...]", "paths= takes paths and open files") for path in paths]


def exactly_one(**inputs: object) -> None:
    """Raise UsageError unless exactly one of a call's inputs is given, the others being None."""
    given = [name for name, value in inputs.items() if value is not None]
    if len(given) != 1:
        problem = f"{' and '.join(given)} are given together" if given else "there is no input"
        raise UsageError(f"{problem}; give exactly one of {', '.join(inputs)}")


def _one_file(source: object, otherwise: str, wanted: str = "infile is one path or one open file") -> TextFile:
    if not (isinstance(source, str | os.PathLike) or hasattr(source, "read")):
        raise UsageError(f"{wanted}, not a {type(source).__name__}; {otherwise}")
    check_plain(source)
    return cast(TextFile, source)


def _line_stream(lines: Lines) -> Readable[bytes]:
    if isinstance(lines, str | bytes | os.PathLike):
        raise UsageError("lines= takes a list of lines; pass a file as infile, a single line as lines=[line]")
    return _Lines(lines)


def lone_surrogate(place: str, error: UnicodeEncodeError) -> MTScaffoldError:
    """Return the error for a text, named by ``place``, that cannot be UTF-8."""
    wrong = ascii(error.object[error.start])
    return MTScaffoldError(f"{place} holds {wrong}, a lone surrogate and not a character; remove it, or pass bytes")


# Sentinel: end of iteration. A None among the lines is an error.
_END = object()


class _Stream(io.RawIOBase):
    """A stream of bytes made of parts that may be longer than what is asked for."""

    def __init__(self) -> None:
        self._rest, self._at = b"", 0

    def read(self, size: int | None = -1) -> bytes:
        """Return up to ``size`` bytes, nothing only at the end; without a size, all that are left."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(_PART), b""))
        if not self._rest:
            self._rest = self._part(size)
        data = self._rest[self._at : self._at + size]
        self._at += size
        if self._at >= len(self._rest):
            self._rest, self._at = b"", 0
        return data

    def _part(self, size: int) -> bytes:
        """Return about ``size`` more bytes, nothing only at the end."""
        raise NotImplementedError


class _Lines(_Stream):
    """Lines of text as a stream of bytes."""

    def __init__(self, lines: Lines) -> None:
        super().__init__()
        self._lines = iter(lines)
        self._number = 0

    def _part(self, size: int) -> bytes:
        parts: list[bytes] = []
        length = 0
        while length < size and (line := next(self._lines, _END)) is not _END:
            if not isinstance(line, str | bytes):
                raise UsageError(f"lines= takes strings or UTF-8, not a {type(line).__name__}")
            self._number += 1
            try:
                data = line if isinstance(line, bytes) else line.encode("utf-8")
            except UnicodeEncodeError as error:
                raise lone_surrogate(f"line {self._number}", error) from None
            parts.append(data if data.endswith(b"\n") else data + b"\n")
            length += len(parts[-1])
        return b"".join(parts)


class Changed(_Stream):
    """Parts of a text, made one by one, as a stream of bytes."""

    def __init__(self, parts: Iterable[bytes], name: str) -> None:
        super().__init__()
        self._parts, self.name = iter(parts), name

    def _part(self, size: int) -> bytes:
        return next(filter(None, self._parts), b"")


class _Encoded(_Stream):
    """An open file, of text or bytes, as a stream of bytes."""

    def __init__(self, stream: Readable[str] | Readable[bytes], look: Look | None = None) -> None:
        super().__init__()
        self._stream = stream
        self._look = look

    def _part(self, size: int) -> bytes:
        content = self._read(size)
        data = content.encode("utf-8") if isinstance(content, str) else content
        if self._look is not None:
            self._look(data)
            self._look = None
        return data

    def _read(self, size: int) -> str | bytes:
        if not isinstance(self._stream, codecs.StreamReader):
            return self._stream.read(size)
        # Without a number of characters, half a character gives an empty string, like the end.
        text = self._stream.read(size, size)
        if not text and self._stream.bytebuffer:
            raise MTScaffoldError(f"{stream_name(self._stream, 'input')}: ends within a character; is it complete?")
        return text


class Begun(Waiting):
    """A pipe whose first bytes have been read into ``taken``; reading begins with them.

    The constructor waits for these bytes and reads as many as there are.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        super().__init__(descriptor)
        self.shown_name = name
        self.taken = super().read(_TAKEN)
        # Enough to recognise a compressed file, but not beyond a line of text: its writer may wait for an answer.
        while any(magic.startswith(self.taken) for magic in MAGIC) and (more := super().read(_TAKEN)):
            self.taken += more

    def take(self) -> bytes:
        """Return ``taken`` and empty it."""
        taken, self.taken = self.taken, b""
        return taken

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to ``size`` bytes; without a size, all that are left."""
        if size is None or size < 0:
            return self.take() + super().read()
        if not self.taken:
            return super().read(size)
        taken, self.taken = self.taken[:size], self.taken[size:]
        return taken


class _Buffered(io.RawIOBase):
    """A compressed file, or a pipe together with what Python's buffer already holds of it."""

    def __init__(self, stream: io.BufferedReader, look: Look | None = None) -> None:
        self._stream = stream
        self._look = look

    def read(self, size: int | None = -1) -> bytes:
        data = self._stream.read() if size is None or size < 0 else self._stream.read1(size)
        if self._look is not None:
            self._look(data)
            self._look = None
        return data


class _Rest(_Stream):
    """A pipe as a stream that begins with the bytes already read from it."""

    def __init__(self, taken: bytes, descriptor: int) -> None:
        super().__init__()
        self._rest = taken
        self._file = Waiting(descriptor)

    def _part(self, size: int) -> bytes:
        return self._file.read(size)


def readable(opened: object) -> Readable[bytes]:
    """Return an input that ``core_input`` opened as a stream for Python."""
    if isinstance(opened, tuple):
        return _Rest(*opened)
    return Waiting(opened) if isinstance(opened, int) else cast(BinaryIO, opened)


def source_name(source: TextFile) -> str:
    """Return how messages name a path or an open file."""
    if isinstance(source, str | os.PathLike):
        return shown(source)
    name = source.shown_name if isinstance(source, Begun) else stream_name(source, "input")
    return "standard input" if name in ("<stdin>", "0") else name


def whole_lines(source: TextFile) -> Iterator[bytes]:
    """Yield a text in blocks of whole lines; only the last may lack its LF. Warns of a byte order mark."""
    with core_input(source) as (_, opened):
        stream = readable(opened)
        rest: list[bytes] = []
        while data := stream.read(_PART):
            whole, line_end, after = data.rpartition(b"\n")
            if line_end:
                yield b"".join([*rest, whole, line_end])
                rest = []
            rest.append(after)
        if last := b"".join(rest):
            yield last


@contextlib.contextmanager
def core_input(source: TextFile, warn: bool = True) -> Iterator[CoreInput]:
    """Open a text for the core, as a descriptor wherever the core can read the bytes itself.

    warn: warn of a byte order mark, which is kept; False if the reader removes the mark.

    Raises MTScaffoldError for a compressed text and other files that are none.
    """
    name = source_name(source)

    def look(beginning: bytes) -> None:
        refuse_no_text(beginning, name)
        if warn:
            warn_of_mark(beginning, name)

    if isinstance(source, str | os.PathLike):
        with open_input(source, guard=False) as stream:
            if compression_of(source):
                yield name, _Buffered(cast(io.BufferedReader, stream), look)
            else:
                yield name, _looked_at(stream, look)
        return
    if isinstance(source, Begun):
        look(source.taken)
        yield name, (source.take(), source.fileno())
        return
    # A file from codecs.open reads through a codecs.StreamReader.
    source = _bytes_beneath(source.reader if isinstance(source, codecs.StreamReaderWriter) else source)
    if isinstance(source, io.FileIO) or (
        isinstance(source, io.BufferedReader) and isinstance(source.raw, io.FileIO) and _is_unread(source)
    ):
        yield name, _looked_at(source, look)
    elif isinstance(source, io.BufferedReader):
        yield name, _Buffered(source, look)
    else:
        yield name, _Encoded(cast(BinaryIO, source), look)


def _looked_at(stream: io.IOBase | BinaryIO, look: Look) -> int | tuple[bytes, int]:
    """Return the descriptor of a text; for a pipe, also the bytes read from it to look for a byte order mark."""
    descriptor = stream.fileno()
    with contextlib.suppress(OSError):  # reported by the core when it reads
        if os.isatty(descriptor):
            return descriptor
        if stream.seekable():
            look(os.pread(descriptor, LONGEST_MAGIC, os.lseek(descriptor, 0, os.SEEK_CUR)))
            return descriptor
        begun = Begun(descriptor, "")
        look(begun.taken)
        return begun.take(), descriptor
    return descriptor


def core_output(stream: Writable, name: str | None = None) -> tuple[str, int | Writable]:
    """Return an output for the core: the descriptor if bytes can go straight to it, otherwise the stream.

    A stream that compresses has a descriptor too, but for other bytes.
    """
    name = name or stream_name(stream, "output")
    if isinstance(stream, io.FileIO) or (isinstance(stream, io.BufferedWriter) and isinstance(stream.raw, io.FileIO)):
        stream.flush()
        return name, stream.fileno()
    return name, stream


def _bytes_beneath(source: TextFile) -> TextFile:
    """Return the file of bytes beneath a file open for text if it is UTF-8 and unread, otherwise ``source``."""
    if isinstance(source, io.TextIOBase):
        buffer = getattr(source, "buffer", None)
        if buffer is not None and _is_utf8(source.encoding) and not _holds_text(source, buffer):
            return cast(BinaryIO, buffer)
    elif isinstance(source, codecs.StreamReader):
        untouched = not (source.bytebuffer or source.charbuffer or source.linebuffer)
        if untouched and source.errors == "strict" and isinstance(source, encodings.utf_8.StreamReader):
            return _bytes_beneath(cast(TextFile, source.stream))
    return source


def _holds_text(stream: io.TextIOBase, buffer: BinaryIO) -> bool:
    """Return whether a text file has taken bytes from its buffer that it has not returned as text yet."""
    try:
        if stream.seekable():
            return stream.tell() != buffer.tell()
        # Raises io.UnsupportedOperation after the first read; before it, nothing changes.
        cast(io.TextIOWrapper, stream).reconfigure(encoding=stream.encoding, errors=stream.errors)
        return False
    except (OSError, AttributeError):  # in the middle of iteration, or a stream of another kind
        return True


def _is_utf8(encoding: str | None) -> bool:
    """Return whether a text file of this encoding holds its text as UTF-8."""
    return codecs.lookup(encoding or "utf-8").name in ("utf-8", "ascii")


def _is_unread(stream: io.BufferedReader) -> bool:
    """Return whether reading the descriptor gives all that the stream would; False for a pipe, as that is unknown."""
    return stream.seekable() and stream.tell() == stream.raw.tell()
