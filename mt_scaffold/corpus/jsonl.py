"""JSONL: documents as one field of JSON objects, one object per line."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator
from typing import Any

from mt_scaffold.corpus.files import without_mark
from mt_scaffold.corpus.text import not_utf8
from mt_scaffold.errors import MTScaffoldError

_MOST_SHOWN = 8


def read_field(lines: Iterable[bytes], name: str, field: str, blank: array[int] | None = None) -> Iterator[bytes]:
    """Yield one field of the JSON object in each line, as UTF-8; blank lines and a byte order mark are skipped.

    name: of the file, for errors. blank: collects the numbers of the lines that are skipped.

    Raises MTScaffoldError with file and line if a line is not a JSON object or lacks the field, or if its value is not
    a string, or holds a lone surrogate.
    """
    offset = 0
    for number, line in enumerate(lines, 1):
        document = _field_of_line(line, number, offset, name, field)
        offset += len(line) + 1
        if document is not None:
            yield document
        elif blank is not None:
            blank.append(number)


def _field_of_line(line: bytes, number: int, offset: int, name: str, field: str) -> bytes | None:
    """Return one field of a line of JSONL, or None for a blank line.

    number: of the line, from 1. offset: of its first byte in the file.
    """
    rest = line if offset else without_mark(line, name)
    try:
        text = rest.decode("utf-8")
    except UnicodeDecodeError as error:
        start = len(line) - len(rest) + error.start
        raise not_utf8(name, number, offset + start, line[start]) from None
    if not text or text.isspace():
        return None
    return _field_of(_parsed(text, f"{name}: line {number}"), f"{name}: line {number}", field)


def _parsed(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise MTScaffoldError(f"{place}: not JSON ({error.msg} at column {error.colno})") from None
    except (ValueError, RecursionError) as error:  # thousands of digits or brackets
        raise MTScaffoldError(f"{place}: not JSON that Python can read ({error})") from None


def _field_of(value: Any, place: str, field: str) -> bytes:
    if not isinstance(value, dict):
        raise MTScaffoldError(f"{place}: not a JSON object with the field '{field}'; write one object per line")
    if field not in value:
        raise MTScaffoldError(f"{place}: no field '{field}'; {fields_shown(value)}")
    text = value[field]
    if not isinstance(text, str):
        kind = _KINDS.get(type(text), "a number")
        others = value.keys() - {field}
        hint = fields_shown(others) if others and text is not None else "leave such lines out, or write a string there"
        raise MTScaffoldError(f"{place}: the field '{field}' is not a string but {kind}; {hint}")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        wrong = ascii(text[error.start])
        raise MTScaffoldError(
            f"{place}: the field '{field}' holds {wrong}, a lone surrogate and not a character; remove it"
        ) from None


_KINDS = {type(None): "null", bool: "true or false", list: "an array", dict: "an object"}


def fields_shown(names: Iterable[str], what: str = "field") -> str:
    """Return the hint that lists the names a user can choose from."""
    shown = sorted(name.replace("\n", "\\n") for name in names)
    if not shown:
        return f"there is no {what} at all"
    listed = ", ".join(shown[:_MOST_SHOWN]) + (", …" if len(shown) > _MOST_SHOWN else "")
    return f"name another with --field ({what}s: {listed})"
