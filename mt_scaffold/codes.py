"""The codes file as a Python object; the core reads the format and writes what it learns (``core/codes/codes.cpp``)."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import NamedTuple

from mt_scaffold import _core
from mt_scaffold.cached import cached_property
from mt_scaffold.corpus.files import PathLike, Readable, path_of, read_file, shown, stream_name, without_mark
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.corpus.text import is_base_symbol, notation_to_bytes
from mt_scaffold.errors import UsageError
from mt_scaffold.manifest import CodesUsed, Manifest, manifest_path, parse_manifest
from mt_scaffold.options import check_merges

# The kind of the manifest of imported codes, and what to do about a damaged one.
MANIFEST_KIND, MANIFEST_REMEDY = "codes", "import the codes again, or remove the manifest to number tokens by rank"


class Merge(NamedTuple):
    """One line of a codes file: two symbols that are merged, and whether the merged token is scaffold.

    Symbols of bytes are in GPT-2's notation (``corpus.text.bytes_to_notation``), with ``</w>`` in codes for words
    between spaces.
    """

    left: str
    right: str
    scaffold: bool = False

    @property
    def token(self) -> str:
        """The merged symbol, with ``</w>`` if it ends a word."""
        return self.left + self.right

    @property
    def normal(self) -> bool:
        """Whether the merged token is part of the vocabulary."""
        return not self.scaffold


class PickyMerge(NamedTuple):
    """One merge of PickyBPE codes, as in ``Merge``, and whether the merged token is removed and not merged again."""

    left: str
    right: str
    removed: bool = False

    @property
    def token(self) -> str:
        """The merged symbol, with ``</w>`` if it ends a word."""
        return self.left + self.right

    @property
    def normal(self) -> bool:
        """Whether the merged token is part of the vocabulary."""
        return not self.removed


AnyMerge = Merge | PickyMerge


class Split(NamedTuple):
    """A ``split`` line of PickyBPE codes: from here on a token is not part of the vocabulary.

    after: the number of merges before it. token: as in ``Merge``. pieces: the symbols that replace the token.
    """

    after: int
    token: str
    pieces: tuple[str, ...]


class Codes:
    """A codes file in memory, read once. A malformed one is reported when its merges are first needed.

    text: the file, as bytes. name: its name in messages. manifest: the content of ``CODES.manifest.json``, which
    imported codes have next to them, or None.

    >>> codes = Codes(b"#version: 0.2\\na n scaffold\\nb an\\n")
    >>> [merge.token for merge in codes.merges]
    ['an', 'ban']
    """

    # Not a dataclass: importing those takes longer than segmenting a short text.
    def __init__(self, text: bytes, name: str = "codes", manifest: bytes | None = None) -> None:
        self.text = text
        self.name = name
        self.manifest = manifest

    def __repr__(self) -> str:
        return f"Codes(name={self.name!r})"

    @classmethod
    def read(cls, file: PathLike | Readable[bytes] | Readable[str]) -> Codes:
        """Read a codes file from a path (``.gz`` too) or an open file, whose name errors show.

        A byte order mark is removed, with a warning. A manifest next to the file is read too. Raises MTScaffoldError
        if a file cannot be read.
        """
        if isinstance(file, str | os.PathLike):
            text = without_mark(read_file(file), shown(file))
            return cls(text, shown(file), _manifest_next_to(file, text))
        if not hasattr(file, "read"):
            raise UsageError(f"codes are a path, an open file, bytes or Codes, not a {type(file).__name__}")
        name = stream_name(file, "codes")
        path, text = path_of(file), without_mark(read_file(file), name)
        return cls(text, name, None if path is None else _manifest_next_to(path, text))

    @classmethod
    def of(cls, source: CodesSource) -> Codes:
        """Return Codes, given Codes, the bytes of a codes file, a path or an open file."""
        if isinstance(source, Codes):
            return source
        return cls(source) if isinstance(source, bytes) else cls.read(source)

    @cached_property
    def header(self) -> CodesHeader:
        """The header line. Raises MTScaffoldError if the first line is not a header, or of another version."""
        symbols_are_bytes, pretokeniser, split_digits, picky = _core.parse_header(self.text, self.name)
        return CodesHeader("bytes" if symbols_are_bytes else "characters", pretokeniser, split_digits, picky)

    @property
    def symbols(self) -> str:
        """The kind of base symbols: "characters" or "bytes"."""
        return self.header.symbols

    @property
    def pretokeniser(self) -> str:
        """How text becomes words: "spaces", "gpt2", "cl100k", "o200k", "metaspace", "metaspace-runs" or a pattern."""
        return self.header.pretokeniser

    @property
    def split_digits(self) -> bool:
        """Whether every number character is a separate word."""
        return self.header.split_digits

    @cached_property
    def merges(self) -> list[AnyMerge]:
        """All merges in order of rank.

        Raises MTScaffoldError with name and line number if the file is malformed.
        """
        return self.first(-1)

    @cached_property
    def splits(self) -> list[Split]:
        """All splits in order, empty for codes other than PickyBPE's. Raises as ``merges`` does."""
        return self.first_splits(-1)

    def first_splits(self, merges: int) -> list[Split]:
        """Return the splits that follow each of the first ``merges`` merges, -1 for all."""
        if not self.header.picky:
            return []
        found = _core.parse_splits(self.text, self.name, check_merges(merges))
        return [Split(after, token, tuple(pieces)) for after, token, pieces in found]

    @property
    def scaffold(self) -> set[str]:
        """The tokens that are scaffold, or removed; no vocabulary has them."""
        return {merge.token for merge in self.merges if not merge.normal}

    @property
    def normal(self) -> set[str]:
        """The merged tokens that segmented text can hold: neither scaffold nor base symbols."""
        marked = self.header.end_of_word
        return {m.token for m in self.merges if m.normal and not is_base_symbol(m.token, marked)}

    def with_scaffold(self, tokens: Collection[str]) -> Codes:
        """Return codes with the same merges, of which those that make one of ``tokens`` are scaffold, and no others.

        tokens: as in ``Merge``; none of them a base symbol, which a codes file cannot mark.
        """
        encode = notation_to_bytes if self.header.bytes and self.header.end_of_word else str.encode
        merges: list[AnyMerge] = [Merge(left, right, left + right in tokens) for left, right, _ in self.merges]
        lines = [self.text.partition(b"\n")[0].removesuffix(b"\r")]
        lines += [encode(left) + b" " + encode(right) + b" scaffold" * scaffold for left, right, scaffold in merges]
        codes = Codes(b"\n".join(lines) + b"\n", self.name)
        codes.merges = merges
        return codes

    def first(self, merges: int) -> list[AnyMerge]:
        """Return the first ``merges`` merges, -1 for all; lines after them are not read and may be malformed."""
        kind = PickyMerge if self.header.picky else Merge
        return [kind(*fields) for fields in _core.parse_codes(self.text, self.name, check_merges(merges))]

    @cached_property
    def ids(self) -> Manifest | None:
        """The manifest of imported codes; None for others, whose tokens are numbered by rank.

        Raises MTScaffoldError if it is damaged or not a manifest of codes.
        """
        if self.manifest is None or self.header.end_of_word:
            return None
        return parse_manifest(self.manifest, manifest_path(self.name), MANIFEST_KIND, MANIFEST_REMEDY)

    def used(self, merges: int = -1) -> CodesUsed:
        """Return the entry of manifests for these codes with the first ``merges`` in use, -1 for all.

        Raises as ``merges`` and ``ids`` do.
        """
        import hashlib

        digest = hashlib.sha256(self.text).hexdigest()
        return CodesUsed(os.path.basename(self.name), digest, len(self.first(merges)), self._ids_digest())

    def _ids_digest(self) -> str | None:
        if self.ids is None:
            return None
        import hashlib
        import json

        # Only of the entries that determine ids.
        content = {key: value for key, value in self.ids.content.items() if key not in ("codes", "source", "shown")}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _manifest_next_to(path: PathLike, text: bytes) -> bytes | None:
    """Return the content of the manifest next to a codes file of this text, or None."""
    name = manifest_path(path)
    return read_file(name) if os.path.isfile(name) else None


# Codes, the bytes of a codes file, a path (``.gz`` too), or a file open for bytes or text.
CodesSource = Codes | bytes | PathLike | Readable[bytes] | Readable[str]


def read_codes(codes: CodesSource, merges: int = -1) -> list[AnyMerge]:
    """Return the merges of a codes file in order of rank.

    codes: a path (``.gz`` too), an open file, its bytes, or Codes. merges: use only the first ``merges``; -1 for all.

    Raises MTScaffoldError with file name and line number if the file is malformed.
    """
    return Codes.of(codes).first(merges)
