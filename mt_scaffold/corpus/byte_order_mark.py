"""The byte order mark (U+FEFF) that some editors put before a text: taken off, or only reported."""

from __future__ import annotations

import sys

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def warn_of_mark(beginning: bytes, name: str | None) -> None:
    """Warn on stderr where a text, whose words are used as they are, begins with the mark.

    beginning: its first bytes, three or more if it has them. name: of the text; None: do not warn.
    """
    if name is not None and beginning.startswith(BYTE_ORDER_MARK):
        print(
            f"warning: {name}: begins with a byte order mark (U+FEFF), which becomes part of the first word",
            file=sys.stderr,
        )


def without_mark(content: bytes, name: str) -> bytes:
    """Return the content of a file without the mark; a warning on stderr says that there was one."""
    if not content.startswith(BYTE_ORDER_MARK):
        return content
    print(f"warning: {name}: removed a byte order mark (U+FEFF)", file=sys.stderr)
    return content.removeprefix(BYTE_ORDER_MARK)
