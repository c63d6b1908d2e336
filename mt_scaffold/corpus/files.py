"""Reading inputs and writing outputs: the one place that opens files for the commands.

A name that ends in ``.gz`` or ``.zst`` means a compressed file. An output is written next to its final name and renamed
when complete, so that a killed run never leaves half a file under the final name (``corpus.storage.parts``).
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Protocol, TypeVar, cast

from mt_scaffold.corpus.storage.parts import create_part
from mt_scaffold.errors import MTScaffoldError, UsageError

PathLike = str | os.PathLike[str]
Content = TypeVar("Content", str, bytes, covariant=True)


class Readable(Protocol[Content]):
    """A file open for reading, as a caller may pass it."""

    def read(self, size: int = -1, /) -> Content: ...


class Writable(Protocol):
    """A file open for writing bytes."""

    def write(self, data: bytes, /) -> object: ...


class WritableText(Protocol):
    """A file open for writing text."""

    def write(self, text: str, /) -> object: ...


# A path (``.gz`` and ``.zst`` too), or a file open for bytes or text.
Output = PathLike | Writable | WritableText

_TEMPORARY = "MT_SCAFFOLD_TMP"
# U+FEFF, which some editors put before a text.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# The first bytes of files that are no text; and the program that decompresses each kind, with the ending of names if we
# do it too.
_NO_TEXT = re.compile(
    rb"(?P<gzip>\x1f\x8b\x08)|(?P<zstd>\x28\xb5/\xfd)|(?P<xz>\xfd7zXZ\0)|(?P<bzip2>BZh[1-9]1AY&SY)"
    rb"|(?P<zip>PK(?:\x03\x04|\x05\x06))|(?P<Parquet>PAR1[\0-\x1f])"
)
MAGIC = (b"\x1f\x8b\x08", b"\x28\xb5/\xfd", b"\xfd7zXZ\0", b"PK\x03\x04")
LONGEST_MAGIC = 16
_REMEDIES = {
    "gzip": ("zcat", ".gz"),
    "zstd": ("zstdcat", ".zst"),
    "xz": ("xzcat", None),
    "bzip2": ("bzcat", None),
    "zip": ("unzip -p", None),
}
_FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
# Fast, and compresses well enough.
_GZIP_LEVEL = 3
# Names for files that this process has open: writing to such a name must neither replace nor truncate the file.
_OPEN_FILE = re.compile(r"/dev/(?:fd/(\d+)|(stdout|stderr))|/proc/self/fd/(\d+)")


def shown(path: PathLike) -> str:
    """Return a path as messages show it, with escapes for bytes that are not UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def path_of(stream: object) -> str | None:
    """Return the path of an open file, or None if it has none or the path no longer leads to it."""
    name = getattr(stream, "name", None)
    if not isinstance(name, str | bytes | os.PathLike):
        return None
    try:
        same = os.path.samestat(os.fstat(stream.fileno()), os.stat(name))  # type: ignore[attr-defined]
    except (OSError, ValueError, AttributeError, TypeError):
        return None
    return os.fsdecode(name) if same else None


def stream_name(stream: object, otherwise: str) -> str:
    """Return the name of an open file as messages show it, or ``otherwise`` if it has none."""
    name = getattr(stream, "name", otherwise)
    return shown(name) if isinstance(name, str | os.PathLike) else str(name)


def explain_os_error(error: OSError, path: PathLike) -> MTScaffoldError:
    """Return the one-line error for an OSError about ``path``."""
    reason = error.strerror or str(error) or type(error).__name__
    return MTScaffoldError(f"{os.fspath(path)}: {reason}")


def compression_of(path: PathLike) -> str | None:
    """Return the compression that a file's name implies: ``gzip``, ``zstd``, or None."""
    name = os.fspath(path)
    return "gzip" if name.endswith(".gz") else "zstd" if name.endswith(".zst") else None


def without_compression(path: PathLike) -> str:
    """Return a path without its ending, if ``compression_of`` recognises that."""
    name = os.fspath(path)
    return name.rpartition(".")[0] if compression_of(name) else name


def format_by_name(name: PathLike) -> str:
    """Infer a file's format from its name.

    >>> format_by_name("de/00.jsonl.zst"), format_by_name("train.de")
    ('jsonl', 'lines')
    """
    return _FORMATS.get(os.path.splitext(without_compression(name))[1].lower(), "lines")


def check_plain(source: object) -> None:
    """Raise UsageError for a path that its name says to be JSONL or Parquet, where a text of lines is read."""
    if isinstance(source, str | os.PathLike) and (found := format_by_name(source)) != "lines":
        kind = "JSON Lines; extract the text, as with jq -r .text" if found == "jsonl" else "Parquet; extract the text"
        raise UsageError(f"{shown(source)}: plain text is read here, and the name says {kind}")


def refuse_no_text(beginning: bytes, name: str) -> None:
    """Raise MTScaffoldError for a file, named by ``name``, that begins as a compressed one or as Parquet does."""
    if (found := _NO_TEXT.match(beginning)) is None:
        return
    kind = found.lastgroup or ""
    if kind == "Parquet":
        raise MTScaffoldError(f"{name}: Parquet, not text; give --format parquet if there is one, or extract its text")
    program, ending = _REMEDIES[kind]
    otherwise = "" if ending is None else f", or pass a file whose name ends in {ending}"
    raise MTScaffoldError(f"{name}: compressed by {kind}; decompress it with {program}{otherwise}")


@contextlib.contextmanager
def open_input(path: PathLike, guard: bool = True) -> Iterator[BinaryIO]:
    """Open a path for reading bytes, decompressed if the name ends in ``.gz`` or ``.zst``.

    guard: refuse what ``refuse_no_text`` does; False for a reader of the descriptor.

    Raises MTScaffoldError if the file is missing, unreadable, or not the complete gzip or zstd file that its name
    promises, and if ``.zst`` needs a package that is not installed.
    """
    compression = compression_of(path)
    try:
        stream: BinaryIO = open(path, "rb")  # noqa: SIM115 (closed below, outside this try)
        if compression is not None:
            # Reading lines from an unbuffered decompressor is slow.
            stream = cast(BinaryIO, io.BufferedReader(_decompressing(stream, compression, shown(path)), 1 << 17))
    except OSError as error:
        raise explain_os_error(error, path) from error
    except EOFError as error:
        stream.close()
        raise _incomplete(path, compression, error) from error
    try:
        with stream:
            if guard:
                refuse_no_text(cast(io.BufferedReader, stream).peek(LONGEST_MAGIC), shown(path))
            yield stream
    except (OSError, EOFError, zlib.error) as error:
        # Errors about the format itself are OSErrors without an errno.
        if compression is None or (isinstance(error, OSError) and error.errno is not None):
            raise
        raise _incomplete(path, compression, error) from error


def _incomplete(path: PathLike, compression: str | None, error: Exception) -> MTScaffoldError:
    return MTScaffoldError(f"{os.fspath(path)}: not a complete {compression} file ({error})")


def _decompressing(stream: BinaryIO, compression: str, name: str) -> io.RawIOBase:
    if compression == "zstd":
        from mt_scaffold.corpus.storage.zstd import ZstdReader

        return ZstdReader(stream, name)
    import gzip

    if not cast(io.BufferedReader, stream).peek(1):  # gzip would read it as an empty text
        raise EOFError("it is empty")
    return cast(io.RawIOBase, gzip.open(stream, "rb"))


def read_file(file: PathLike | Readable[bytes] | Readable[str]) -> bytes:
    """Return the rest of a file as UTF-8: a path, opened as ``open_input`` does, or a file open for bytes or text."""
    if isinstance(file, str | os.PathLike):
        with open_input(file) as stream:
            return stream.read()
    content = file.read()
    data = content.encode("utf-8") if isinstance(content, str) else content
    refuse_no_text(data[:LONGEST_MAGIC], stream_name(file, "input"))
    return data


@contextlib.contextmanager
def open_output(path: PathLike, compress: bool = True, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a file for writing bytes that takes the name ``path`` only if the block ends without an error.

    A ``.gz`` or ``.zst`` file is compressed, without name and time, so that the same bytes give the same file;
    ``compress=False`` is for bytes that are compressed already. A path that exists and is not a regular file
    (``/dev/null``, a named pipe, ``/dev/fd/N``) is written to directly. ``durable=False`` does not wait for the disk,
    for large outputs that are quickly rebuilt: after a power failure such a file may be empty.

    Raises MTScaffoldError if the folder is missing or the disk is full.
    """
    with _open_plain_output(path, durable) as stream:
        compression = compression_of(path) if compress else None
        if compression is None:
            yield stream
            return
        if compression == "zstd":
            from mt_scaffold.corpus.storage.zstd import compressing

            with compressing(stream, shown(path)) as compressed:
                yield compressed
            return
        import gzip

        with gzip.GzipFile("", "wb", _GZIP_LEVEL, stream, mtime=0) as gzip_file:
            yield cast(BinaryIO, gzip_file)


def gzipped(content: bytes) -> bytes:
    """Compress ``content`` as open_output does; several results concatenated are a gzip file too."""
    import gzip

    return gzip.compress(content, _GZIP_LEVEL, mtime=0)


@contextlib.contextmanager
def _open_plain_output(path: PathLike, durable: bool) -> Iterator[BinaryIO]:
    if (in_place := _open_in_place(path)) is not None:
        try:
            with in_place:
                yield in_place
        except BrokenPipeError:
            raise
        except OSError as error:
            if error.filename is None and error.errno is not None:
                raise explain_os_error(error, path) from error
            raise
        return
    if not os.path.basename(path):
        raise UsageError(f"'{os.fspath(path)}' names no file; give the output a name")
    target = os.path.realpath(path)
    folder, replaced = os.path.dirname(target), None
    try:
        if os.path.exists(target):
            replaced = stat.S_IMODE(os.stat(target).st_mode)
            # Renaming would replace even a write-protected file.
            if not os.access(target, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        descriptor, temporary = create_part(target, 0o666 if replaced is None else replaced)
    except FileNotFoundError as error:
        raise MTScaffoldError(f"{os.fspath(path)}: no folder {folder}; create it first") from error
    except OSError as error:
        raise explain_os_error(error, path) from error
    try:
        # A duplicate: closing the last descriptor gives the part up, which must be renamed before.
        with os.fdopen(os.dup(descriptor), "wb") as stream:
            if replaced is not None and stat.S_IMODE(os.fstat(descriptor).st_mode) != replaced:
                os.fchmod(descriptor, replaced)  # the umask has masked it
            yield stream
            if durable:
                stream.flush()
                _sync(descriptor)
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        # An error without an errno is not the system's: a broken gzip file, for example, is explained by its reader.
        if isinstance(error, OSError) and error.filename in (None, temporary) and error.errno is not None:
            raise explain_os_error(error, path) from error
        raise
    finally:
        os.close(descriptor)


def _sync(descriptor: int) -> None:
    """Wait until a file is on the disk, if the file system supports that."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise


def _open_in_place(path: PathLike) -> BinaryIO | None:
    """Open an existing ``path`` that is not a regular file; return None for a regular file and for a new one."""
    try:
        if match := _OPEN_FILE.fullmatch(os.fspath(path)):
            number = {"stdout": 1, "stderr": 2}.get(match[2]) or int(match[1] or match[3])
            return open(os.dup(number), "wb")
        if os.path.exists(path) and not os.path.isfile(path):
            return open(path, "wb")
    except OSError as error:
        raise explain_os_error(error, path) from error
    return None


def make_folder(path: PathLike) -> None:
    """Create a folder, and those above it, if needed. Raises MTScaffoldError if that fails."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise explain_os_error(error, path) from error


def refuse_overwriting(outputs: Iterable[object], inputs: Iterable[object] = ()) -> None:
    """Raise UsageError if two outputs are the same file, or an output would replace an input.

    None, and anything but a regular file (``/dev/null``, a pipe), is ignored.
    """
    seen: dict[_Place, str] = {}
    for role, files in (("an input", inputs), ("an output", outputs)):
        for file in files:
            if (place := _place_of(file)) is None:
                continue
            if role == "an output" and (taken := next((each for each in seen if _is_same(place, each)), None)):
                name = shown(file) if isinstance(file, str | os.PathLike) else stream_name(file, "output")
                raise UsageError(f"{name}: is {seen[taken]} already and cannot be an output too")
            seen[place] = role


# The real path, None for an open file; the device and inode, None for a path that does not exist yet.
_Place = tuple[str | None, tuple[int, int] | None]


def _place_of(file: object) -> _Place | None:
    """Return the place of a path or an open file; None for anything but an existing or future regular file."""
    real, found = None, None
    try:
        if not isinstance(file, str | os.PathLike):
            found = os.fstat(file.fileno())  # type: ignore[attr-defined]
        else:
            real = os.path.realpath(file)
            found = os.stat(real) if os.path.exists(real) else None
    except (OSError, ValueError, AttributeError, TypeError):
        return None
    if found is None:
        return real, None
    return (real, (found.st_dev, found.st_ino)) if stat.S_ISREG(found.st_mode) else None


def _is_same(one: _Place, other: _Place) -> bool:
    """Return whether writing to one place is writing to the other; two hard links are not, as outputs are renamed."""
    if one[0] is not None and other[0] is not None:
        return one[0] == other[0]
    return one[1] is not None and one[1] == other[1]


class AsBytes:
    """A file open for text, to be written to as UTF-8; a character may be split between two writes.

    Raises UsageError for bytes that are not UTF-8.
    """

    def __init__(self, stream: WritableText) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self.name = stream_name(stream, "output")

    def write(self, data: bytes, /) -> None:
        self._write(data, final=False)

    def end(self) -> None:
        """End the text, which must not break off within a character."""
        self._write(b"", final=True)

    def _write(self, data: bytes, final: bool) -> None:
        try:
            self._stream.write(self._decode(data, final))
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{self.name}: is open for text, but the output has 0x{error.object[error.start]:02X}, which is not "
                "UTF-8; open it for bytes"
            ) from None


def takes_text(stream: object) -> bool:
    """Return whether an open file takes text, as one from ``codecs.open`` does."""
    # Only files open for text have an encoding; those from codecs.getwriter have none.
    return hasattr(stream, "encoding") or isinstance(stream, codecs.StreamWriter)


@contextlib.contextmanager
def writing_to(outfile: Output | None, durable: bool = True) -> Iterator[Writable]:
    """Open a path as ``open_output`` does, or pass on an open file, as one that takes bytes.

    Opened before a long computation, an output that cannot be written is reported at once. Raises UsageError for None.
    """
    if outfile is None:
        raise UsageError("give an output: outfile, a path or an open file")
    if isinstance(outfile, str | os.PathLike):
        with open_output(outfile, durable=durable) as stream:
            yield stream
    elif takes_text(outfile):
        as_bytes = AsBytes(cast(WritableText, outfile))
        yield as_bytes
        as_bytes.end()
    else:
        yield cast(Writable, outfile)


class Waiting(io.FileIO):
    """A file for reading from a descriptor that stays open. Reading waits even if the descriptor is non-blocking."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "rb", closefd=False)

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to ``size`` bytes, nothing only at the end; without a size, all that are left."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(1 << 20), b""))
        while (data := super().read(size)) is None:
            import select

            waiting = select.poll()
            waiting.register(self, select.POLLIN)
            waiting.poll()
        return data


def input_or_standard(path: str | None) -> str | BinaryIO:
    """Return the input of a command: a path, or unread standard input for None or ``-``.

    If that is a terminal, a line on stderr says that the command waits for text.
    """
    if path is not None and path != "-":
        return path
    stream = standard_input()
    if path is None and stream.isatty():
        print("mt-scaffold: reading from the terminal up to Ctrl-D; give files as --input FILE", file=sys.stderr)
    if not (isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO)):
        return stream
    return cast(BinaryIO, Waiting(stream.fileno()))


def output_or_standard(path: str | None) -> str | BinaryIO:
    """Return the output of a command: a path, or standard output for None or ``-``."""
    return standard_output() if path is None or path == "-" else path


def standard_input() -> BinaryIO:
    """Return standard input as a stream of bytes."""
    if sys.stdin is None:
        raise MTScaffoldError("standard input is closed; name an input file")
    return cast(BinaryIO, sys.stdin.buffer)


def standard_output() -> BinaryIO:
    """Return standard output as a stream of bytes."""
    if sys.stdout is None:
        raise MTScaffoldError("standard output is closed; name an output file")
    return cast(BinaryIO, sys.stdout.buffer)


def write_text(path: PathLike, text: str) -> None:
    """Write ``text`` as UTF-8 to ``path``, completely or not at all."""
    with open_output(path) as stream:
        stream.write(text.encode("utf-8"))


def temporary_folder() -> str:
    """Return the folder for what does not fit into memory: MT_SCAFFOLD_TMP, or else the system's (TMPDIR, /tmp).

    Raises MTScaffoldError if MT_SCAFFOLD_TMP is not a folder.
    """
    given = os.environ.get(_TEMPORARY)
    if not given:
        import tempfile

        return tempfile.gettempdir()
    if not os.path.isdir(given):
        raise MTScaffoldError(f"{_TEMPORARY} is {given}, which is not a folder; create it, or name another")
    return given


def warn_of_mark(beginning: bytes, name: str | None) -> None:
    """Warn on stderr if a text whose words are used as they are begins with a byte order mark.

    beginning: its first bytes, three or more if it has them. name: of the text; None: do not warn.
    """
    if name is not None and beginning.startswith(BYTE_ORDER_MARK):
        print(
            f"warning: {name}: begins with a byte order mark (U+FEFF), which becomes part of the first word",
            file=sys.stderr,
        )


def without_mark(content: bytes, name: str) -> bytes:
    """Return the content of a file without a byte order mark, with a warning on stderr if there was one."""
    if not content.startswith(BYTE_ORDER_MARK):
        return content
    print(f"warning: {name}: removed a byte order mark (U+FEFF)", file=sys.stderr)
    return content.removeprefix(BYTE_ORDER_MARK)
