"""The codes file as Python objects; the native core reads and writes the format itself."""

from __future__ import annotations

import os
from typing import NamedTuple

from mt_scaffold import _core
from mt_scaffold.files import open_input, shown

CodesSource = str | os.PathLike[str] | bytes


class Merge(NamedTuple):
    """One line of a codes file: two symbols that are merged, and whether what they make is scaffold."""

    left: str
    right: str
    scaffold: bool = False

    @property
    def token(self) -> str:
        """The merged symbol, with ``</w>`` where it ends a word."""
        return self.left + self.right


def codes_text(codes: CodesSource) -> tuple[bytes, str]:
    """The bytes of a codes file and the name to call it by in messages; bytes are taken as the file itself."""
    if isinstance(codes, bytes):
        return codes, "codes"
    with open_input(codes) as stream:
        return stream.read(), shown(codes)


def read_codes(codes: CodesSource, merges: int = -1) -> list[Merge]:
    """Read a codes file (a path or its bytes): its merges in order of rank.

    ``merges``: only the first so many; -1 for all. Raises MTScaffoldError with file name and line number where
    the file is malformed.
    """
    text, name = codes_text(codes)
    return [Merge(*fields) for fields in _core.parse_codes(text, name, merges)]


def format_codes(merges: list[Merge]) -> bytes:
    """The bytes of a codes file with these merges."""
    return _core.format_codes([(merge.left, merge.right, merge.scaffold) for merge in merges])
