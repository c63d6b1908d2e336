"""Reading inputs and writing outputs: the one place that opens files for the commands.

Inputs may be gzip-compressed (``.gz``). Outputs are written beside their final name and renamed when
complete, so that a killed run never leaves half a file under the final name.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from mt_scaffold.errors import MTScaffoldError

PathLike = str | os.PathLike[str]


def explain_os_error(error: OSError, path: PathLike) -> MTScaffoldError:
    """One line that says what went wrong with ``path``."""
    reason = error.strerror or str(error) or type(error).__name__
    return MTScaffoldError(f"{os.fspath(path)}: {reason}")


@contextlib.contextmanager
def open_input(path: PathLike) -> Iterator[BinaryIO]:
    """Open ``path`` for reading bytes, decompressed where the name ends in ``.gz``.

    Raises MTScaffoldError where the file is missing, unreadable, or not the gzip file its name promises.
    """
    try:
        if os.fspath(path).endswith(".gz"):
            stream = cast(BinaryIO, gzip.open(path, "rb"))
        else:
            stream = open(path, "rb")
    except OSError as error:
        raise explain_os_error(error, path) from error
    try:
        with stream:
            yield stream
    except (gzip.BadGzipFile, EOFError) as error:
        raise MTScaffoldError(f"{os.fspath(path)}: not a complete gzip file ({error})") from error


def read_pairs(source: PathLike, target: PathLike) -> Iterator[tuple[bytes, bytes]]:
    """The lines of two parallel files, pair by pair, as they stand (LF included where there is one).

    Raises MTScaffoldError, naming both counts, at the end of the shorter file where the other goes on.
    """
    with open_input(source) as source_stream, open_input(target) as target_stream:
        for count, (source_line, target_line) in enumerate(itertools.zip_longest(source_stream, target_stream)):
            if source_line is None or target_line is None:
                source_count = count + (source_line is not None) + sum(1 for _ in source_stream)
                target_count = count + (target_line is not None) + sum(1 for _ in target_stream)
                raise MTScaffoldError(
                    f"{os.fspath(source)} has {source_count} lines and {os.fspath(target)} has {target_count}: "
                    "line i of one must translate line i of the other"
                )
            yield source_line, target_line


@contextlib.contextmanager
def open_output(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file for writing bytes that takes the name ``path`` only when the block ends well.

    A path that exists and is no regular file (``/dev/null``, a named pipe) is written to directly.
    Raises MTScaffoldError where the folder is missing or the disk is full.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            with open(target, "wb") as stream:
                yield stream
            return
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except FileNotFoundError as error:
        raise MTScaffoldError(f"{os.fspath(path)}: there is no folder {target.parent}") from error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise explain_os_error(error, path) from error
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
        # mkstemp makes files of mode 600; a result has the mode any new file would have.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~umask)
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename is None:
            raise explain_os_error(error, path) from error
        raise


def standard_input() -> BinaryIO:
    """Standard input as bytes."""
    return cast(BinaryIO, sys.stdin.buffer)


def standard_output() -> BinaryIO:
    """Standard output as bytes."""
    return cast(BinaryIO, sys.stdout.buffer)


def write_text(path: PathLike, text: str) -> None:
    """Write ``text`` as UTF-8 under ``path``, whole or not at all."""
    with open_output(path) as stream:
        stream.write(text.encode("utf-8"))
