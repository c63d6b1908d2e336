"""Warnings of text that is segmented already, or has words that are ambiguous once segmented."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from mt_scaffold._core import WordEndings
from mt_scaffold.corpus.files import compression_of, open_input
from mt_scaffold.corpus.inputs import Begun, source_name
from mt_scaffold.corpus.text import SEPARATOR, WORD_START

_WORD_START = WORD_START.encode()
# The capacity of a pipe, and more than enough.
_LOOKED_AT = 1 << 16
# The share of words that must look like a part of one. Few codes split so few words, and raw text has none.
_SPLIT, _STARTED = 0.01, 0.5


def looks_segmented(text: bytes, separator: str = SEPARATOR) -> str | None:
    """Return a subword of a text that looks segmented already, or None.

    It does if one word in a hundred ends in ``@@`` or ``separator``, or every second one begins with SentencePiece's
    U+2581.

    >>> looks_segmented(b"Schaff@@ ell@@ en sind keine"), looks_segmented(b"@@ -1,3 +1,3 @@")
    ('Schaff@@', None)
    """
    words = text.split()
    ends = tuple({mark.encode("utf-8", "surrogateescape") for mark in (SEPARATOR, separator) if mark})
    split = [word for word in words if word.endswith(ends) and word.strip(b"@") and word not in ends]
    started = [word for word in words if word.startswith(_WORD_START)]
    for found, share in ((split, _SPLIT), (started, _STARTED)):
        if found and len(found) >= share * len(words):
            return found[0].decode("utf-8", "replace")
    return None


@contextlib.contextmanager
def warning_of_inputs(
    sources: Iterable[str | BinaryIO], separator: str = SEPARATOR
) -> Iterator[tuple[list[str | BinaryIO | Begun], WordEndings]]:
    """Warn of inputs that are segmented already, and at the end of words that end in the separator.

    In segmented text such words look like the inside of others. Yields the inputs to read instead
    (``warned_of_segmented``), and the counter of such words.
    """
    examined = warned_of_segmented(sources, separator)
    endings = WordEndings(separator.encode("utf-8", "surrogateescape"))
    yield examined, endings
    if endings.count:
        words = "1 word ends" if endings.count == 1 else f"{endings.count:,} words end"
        _warn(
            f"{endings.first}: {words} in '{separator}' (this is the first), and join drops the space that follows; "
            "give apply-bpe and join a --separator that ends no word"
        )


def warned_of_segmented(sources: Iterable[str | BinaryIO], separator: str = SEPARATOR) -> list[str | BinaryIO | Begun]:
    """Warn of inputs that are segmented already, and return the inputs to read instead.

    Only their beginnings are examined; reading a pipe begins with the bytes taken from it.
    """
    found = [_beginning(source) for source in sources]
    for source, text in found:
        if (subword := looks_segmented(text, separator)) is not None:
            _warn(f"{source_name(source)}: looks segmented already (such as '{subword}'); give it words")
    return [source for source, _ in found]


def warn_of_separator(separator: str) -> None:
    """Warn of a separator that is empty or has white space."""
    if not separator or set(separator) & set(" \t\r\n"):
        what = "has white space" if separator else "is empty"
        _warn(f"the separator {what}, so that the words cannot be joined again; leave --separator out")


def warn_of_glossaries(glossaries: Iterable[str] | None) -> None:
    """Warn of an empty glossary."""
    if glossaries and "" in glossaries:
        _warn("a glossary is empty, and matches between all characters; leave it out")


def _warn(what: str) -> None:
    print(f"warning: {what}", file=sys.stderr)


def _beginning(source: str | BinaryIO) -> tuple[str | BinaryIO | Begun, bytes]:
    """Return what to read a text from now, and its first bytes; none of a terminal or an unreadable file."""
    try:
        if isinstance(source, str):
            if not os.path.isfile(source):
                return source, b""
            if not compression_of(source):
                with open(source, "rb", buffering=0) as plain:
                    return source, plain.read(_LOOKED_AT)
            with open_input(source) as stream:
                return source, stream.read(_LOOKED_AT)
        descriptor = source.fileno()
        if os.isatty(descriptor):
            return source, b""
        if source.seekable():
            return source, os.pread(descriptor, _LOOKED_AT, os.lseek(descriptor, 0, os.SEEK_CUR))
        begun = Begun(descriptor, source_name(source))
        return begun, begun.taken
    except OSError:
        return source, b""  # reported when it is read
