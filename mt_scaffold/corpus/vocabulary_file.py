"""The vocabulary file, for ``--vocabulary``, and fairseq's dictionary, which gives each subword an id."""

from __future__ import annotations

import io
import os
from typing import Any

from mt_scaffold.corpus.files import PathLike, Readable, open_input, read_file, shown, stream_name, without_mark
from mt_scaffold.corpus.text import LINE_MARGIN, decode
from mt_scaffold.errors import MTScaffoldError

# The first ids of every dictionary of fairseq.
SPECIAL_SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>")
# The mark in a dictionary after a subword that is spelled like one of these.
OVERWRITE = "#fairseq:overwrite"


def read_vocabulary(
    file: PathLike | Readable[bytes] | Readable[str], threshold: int | None = None, byte_level: bool = False
) -> set[str]:
    """Return the subwords of a vocabulary file (``get-vocab``) whose count reaches ``threshold``; None for all.

    file: a path (``.gz`` too), or a file open for bytes or text. byte_level: subwords may be any bytes, and have lone
    surrogates for those that are not UTF-8. A byte order mark is removed, with a warning.

    Raises MTScaffoldError with the line number if a line is not UTF-8, or not a subword, one space and a count.
    """
    vocabulary = set()
    name = shown(file) if isinstance(file, str | os.PathLike) else stream_name(file, "vocabulary")
    try:
        content = read_file(file)
    except UnicodeDecodeError as error:
        raise not_decoded(file, name, error) from None
    content = without_mark(content, name) if byte_level else decode(content, name).encode()
    for number, line in enumerate(io.BytesIO(content), 1):
        word, space, count = line.rstrip(LINE_MARGIN.encode()).partition(b" ")
        try:
            if not space or not word or not count.isdigit():
                raise ValueError
            frequency = int(count)
            subword = word.decode("utf-8", "surrogateescape")
        except ValueError:
            raise MTScaffoldError(f"{name}: line {number}: expected a subword, one space and its count") from None
        if threshold is None or frequency >= threshold:
            vocabulary.add(subword)
    return vocabulary


def read_dictionary(path: PathLike) -> list[tuple[str, int]]:
    """Return the subwords of a dictionary with their counts, in the order of their ids (the first has id 4).

    Raises MTScaffoldError, with the line, if the file is not a dictionary.
    """
    with open_input(path) as stream:
        lines = decode(stream.read(), shown(path)).removesuffix("\n").split("\n")
    entries = []
    for number, line in enumerate(lines, start=1):
        # From the right: a subword may hold any character but a space.
        form, _, count = line.removesuffix(f" {OVERWRITE}").rpartition(" ")
        if not form or not count.isdecimal():
            raise MTScaffoldError(
                f"{shown(path)}: line {number}: expected a subword, one space and its count; give a fairseq dictionary"
            )
        entries.append((form, int(count)))
    return entries


def not_decoded(file: object, name: str, error: UnicodeDecodeError) -> MTScaffoldError:
    """Return the error for an open file that is not UTF-8, with line and byte offset if it can be read again."""
    # Files from open() and codecs hold the file of bytes that they decode.
    beneath: Any = getattr(file, "buffer", None) or getattr(file, "stream", file)
    try:
        beneath.seek(0)
        decode(beneath.read(), name)
    except MTScaffoldError as found:
        return found
    except (OSError, AttributeError):
        pass
    return MTScaffoldError(f"{name}: {error}")
