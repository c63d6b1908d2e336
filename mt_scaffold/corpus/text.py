"""Lines, words and subwords of a text: the conventions that every module shares.

A line ends at LF and nowhere else. CRs and spaces at either end of a line are its margins and belong to no word; words
are what ASCII spaces separate (docs/semantics.md).
"""

from __future__ import annotations

import functools
import itertools
import os
import re
from collections.abc import Iterator
from typing import AnyStr

from mt_scaffold import _core
from mt_scaffold.corpus.files import PathLike, check_plain, open_input, read_file, shown, without_mark
from mt_scaffold.errors import MTScaffoldError, WrongTypeError

# The last symbol of a word carries it, in codes files and in memory (subword-nmt format 0.2).
END_OF_WORD = "</w>"
# Every subword of segmented text but a word's last ends in it.
SEPARATOR = "@@"
# Represents a space in pieces of SentencePiece, where it begins every word.
WORD_START = "\u2581"
LINE_MARGIN = "\r\n "
_MARGIN = LINE_MARGIN.encode()
_LINES = 10_000


def words_of(line: str) -> list[str]:
    """Return the words of a line.

    >>> words_of(" to be  or\\r\\n")
    ['to', 'be', 'or']
    """
    return [word for word in line.strip(LINE_MARGIN).split(" ") if word]


def word_count(line: bytes) -> int:
    """Count the words in a line of UTF-8.

    >>> word_count(b"\\r\\n")
    0
    """
    line = line.strip(_MARGIN)
    if b"  " in line:
        return sum(map(bool, line.split(b" ")))
    return line.count(b" ") + 1 if line else 0


def is_base_symbol(token: str, end_of_word: bool = True) -> bool:
    """Return whether a token is a single symbol, inside a word or at its end.

    token: as in ``Merge``: a byte is one character too. end_of_word: whether a word's last symbol carries ``</w>``.

    A merge can also make such a token, if a word spells out ``</w>``; it is a base symbol all the same.

    >>> is_base_symbol("a</w>"), is_base_symbol("an"), is_base_symbol("a</w>", end_of_word=False)
    (True, False, False)
    """
    return len(token.removesuffix(END_OF_WORD) if end_of_word else token) == 1


def surface_form(token: str, separator: str = SEPARATOR) -> str:
    """Return a token of a codes file as segmented text shows it.

    >>> surface_form("zona"), surface_form("zona</w>")
    ('zona@@', 'zona')
    """
    return token.removesuffix(END_OF_WORD) if token.endswith(END_OF_WORD) else token + separator


def bytes_to_notation(text: bytes) -> str:
    """Return GPT-2's printable notation of bytes: one character for each, of which none is a space.

    Bytes 33 to 126, 161 to 172 and 174 to 255 are the characters of their values; the other 68, in order, are U+0100
    to U+0143 (Radford et al., 2019, ``encoder.py``).

    >>> bytes_to_notation(" the é\\n".encode())
    'ĠtheĠÃ©Ċ'
    """
    return _core.bytes_to_notation(text)


def notation_to_bytes(notation: str) -> bytes:
    """Return the bytes that GPT-2's notation stands for; raise MTScaffoldError for a character outside the notation.

    >>> notation_to_bytes("ĠtheĠÃ©Ċ").decode()
    ' the é\\n'
    """
    return _core.notation_to_bytes(notation)


def join_subwords(line: str, separator: str = SEPARATOR) -> str:
    """Join the subwords of a line into words.

    >>> join_subwords("Schaff@@ ell@@ ös@@ ung .")
    'Schaffellösung .'
    """
    if "\n" in line or "\r" in line or " " in separator:
        return joining(separator).sub("", line)
    # The same, and faster.
    joined = f"{line} ".replace(f"{separator} ", "")
    return joined if line.endswith(separator) else joined[:-1]


@functools.cache
def joining(separator: str) -> re.Pattern[str]:
    """Return a pattern for what joining removes from a text: each separator with the space after it.

    At the end of a line, where a translation may break off within a word, no space is needed.
    """
    return re.compile(re.escape(separator) + r"(?: |(?=\r?(?:\n|\Z)))")


def check_text(given: object) -> None:
    """Raise WrongTypeError for anything but text and bytes, such as None."""
    if not isinstance(given, str | bytes):
        raise WrongTypeError(f"give text as str or bytes, not as {type(given).__name__}")


def as_bytes(text: str | bytes, errors: str = "surrogateescape") -> bytes:
    """Return text as bytes, with lone surrogates as the bytes that they stand for; raise MTScaffoldError for others."""
    check_text(text)
    if isinstance(text, bytes):
        return text
    try:
        return text.encode("utf-8", errors)
    except UnicodeEncodeError as error:
        wrong = ascii(text[error.start])
        raise MTScaffoldError(f"the sentence holds {wrong}, a lone surrogate and not a character; remove it") from None


def like(given: AnyStr, text: str) -> AnyStr:
    """Return ``text`` as a string or as bytes, like ``given``."""
    check_text(given)
    return text if isinstance(given, str) else as_bytes(text)


def not_utf8(name: str, line: int, offset: int, byte: int) -> MTScaffoldError:
    """Return the error for a byte that is not UTF-8, worded as in the native core.

    line: counted from 1. offset: bytes before it in the file.
    """
    return MTScaffoldError(
        f"{name}: line {line}, byte offset {offset}: 0x{byte:02X} is not UTF-8; convert the file to UTF-8 first"
    )


def decode(content: bytes, name: str) -> str:
    """Decode a whole file, removing a byte order mark with a warning.

    Raises MTScaffoldError with file, line and byte offset if it is not UTF-8.
    """
    rest = without_mark(content, name)
    try:
        return rest.decode("utf-8")
    except UnicodeDecodeError as error:
        offset = len(content) - len(rest) + error.start
        raise not_utf8(name, content.count(b"\n", 0, offset) + 1, offset, content[offset]) from None


def read_lines(path: PathLike) -> list[str]:
    """Read the lines of a UTF-8 text without their line ends, LF or CR LF.

    Raises MTScaffoldError if the file cannot be read or is not UTF-8.
    """
    return lines_in(read_file(path), shown(path))


def lines_in(content: bytes, name: str) -> list[str]:
    """Return the lines of a whole file as ``read_lines`` does; name: of the file, for errors."""
    lines = decode(content, name).split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def read_pairs(source: PathLike, target: PathLike) -> Iterator[tuple[bytes, bytes]]:
    """Yield the lines of two parallel files, pair by pair, each with its LF if it has one.

    Raises MTScaffoldError, naming both counts, at the end of the shorter file.
    """
    for source_lines, target_lines in read_parallel(source, target):
        yield from zip(source_lines, target_lines, strict=True)


def read_parallel(source: PathLike, target: PathLike) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Yield the lines of two parallel files as read_pairs does, but many at a time."""
    count = 0
    check_plain(source)
    check_plain(target)
    with open_input(source) as source_stream, open_input(target) as target_stream:
        while True:
            # Short lines on this side may be long ones on the other.
            source_lines = list(itertools.islice(source_stream, _LINES))
            target_lines = list(itertools.islice(target_stream, len(source_lines) or 1))
            if shorter := min(len(source_lines), len(target_lines)):
                yield source_lines[:shorter], target_lines[:shorter]
            if len(source_lines) != len(target_lines):
                source_count = count + len(source_lines) + sum(1 for _ in source_stream)
                target_count = count + len(target_lines) + sum(1 for _ in target_stream)
                check_parallel(source, source_count, target, target_count)
            if not source_lines:
                return
            count += shorter


def check_parallel(source: PathLike, source_lines: int, target: PathLike, target_lines: int) -> None:
    """Raise MTScaffoldError unless two sides of a parallel text have the same number of lines."""
    if source_lines != target_lines:
        raise MTScaffoldError(
            f"{os.fspath(source)} has {source_lines} lines and {os.fspath(target)} has {target_lines}: "
            "line i of one must translate line i of the other"
        )
