"""Manifests: JSON files next to a command's outputs, with the digest of each and the settings needed to read them.

Every manifest has ``format``, ``kind`` (what was written), ``mt-scaffold`` (the version that wrote it) and ``files``,
the SHA-256 digest of each file by its name. The other entries depend on the kind; ``CodesUsed`` is the entry ``codes``
of everything made with codes.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any, NamedTuple

from mt_scaffold.corpus.files import PathLike, explain_os_error, open_input, shown, write_text
from mt_scaffold.errors import MTScaffoldError

FORMAT = 1
_ENDING = "manifest.json"
_VERSION = "mt-scaffold"
_HEADER = ("format", "kind", _VERSION, "files")


class Manifest(NamedTuple):
    """The content of a manifest.

    kind: what was written, such as ``ids``. files: the SHA-256 digest of each file, as stored, by its name in the
    folder of the manifest. content: the other entries, as JSON has them.
    """

    kind: str
    files: dict[str, str]
    content: dict[str, Any]


# In place of the digest of ids, if a manifest does not record it.
UNRECORDED = "unrecorded"


class CodesUsed(NamedTuple):
    """The codes that something was made with.

    name: of their file, without its folder. sha256: of their text, decompressed. merges: how many of them were used.
    ids: the digest of the ids of imported codes; None if tokens are numbered by rank; ``UNRECORDED`` in the first
    manifests. ``Codes.used`` makes it.
    """

    name: str
    sha256: str
    merges: int
    ids: str | None = UNRECORDED

    def same_as(self, other: CodesUsed) -> bool:
        """Return whether both segment alike and give the same ids, whatever the names of the files."""
        return self[1:3] == other[1:3] and (self.ids == other.ids or UNRECORDED in (self.ids, other.ids))

    def __str__(self) -> str:
        ids = "" if self.ids in (None, UNRECORDED) else f", with the ids {self.ids[:12]} of {manifest_path(self.name)}"
        return f"{self.name} (sha256 {self.sha256[:12]}, {self.merges:,} merges{ids})"


def manifest_path(path: PathLike) -> str:
    """Return the path of the manifest of a file: ``NAME.manifest.json`` for ``NAME.bin``.

    >>> manifest_path("ids/train.bin"), manifest_path("tokenizer.json")
    ('ids/train.manifest.json', 'tokenizer.json.manifest.json')
    """
    return f"{os.fspath(path).removesuffix('.bin')}.{_ENDING}"


def raw_digest(path: PathLike, kind: str = "sha256") -> str:
    """Return the digest of a file as stored, in hexadecimal. Raises MTScaffoldError if it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, kind).hexdigest()
    except OSError as error:
        raise explain_os_error(error, path) from error


def write_manifest(path: PathLike, manifest: Manifest) -> None:
    """Write a manifest, completely or not at all. Raises MTScaffoldError if the file cannot be written."""
    import json  # takes longer than loading codes

    from mt_scaffold import __version__

    header = dict(zip(_HEADER, (FORMAT, manifest.kind, __version__, manifest.files), strict=True))
    # In ASCII, as names of files need not be UTF-8.
    write_text(path, json.dumps(header | manifest.content, indent=2) + "\n")


def read_manifest(path: PathLike, kind: str, remedy: str) -> Manifest:
    """Read a manifest of this ``kind``; remedy: what errors advise about a damaged one.

    Raises MTScaffoldError if the file cannot be read, is not a manifest, or is of another kind or a newer format.
    """
    with open_input(path) as stream:
        return parse_manifest(stream.read(), shown(path), kind, remedy)


def parse_manifest(content: bytes, name: str, kind: str, remedy: str) -> Manifest:
    """Parse the content of a manifest file; name: of the file, for errors. Raises as ``read_manifest`` does."""
    import json

    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise MTScaffoldError(f"{name}: not JSON ({error}); {remedy}") from None
    found = document.get("format") if isinstance(document, dict) else None
    if not isinstance(found, int) or not _are_digests(document.get("files")):
        raise MTScaffoldError(f"{name}: not a manifest of mt-scaffold; {remedy}")
    if found > FORMAT:
        raise MTScaffoldError(f"{name}: format {found} is of a newer mt-scaffold, this one reads {FORMAT}; update it")
    if document.get("kind") != kind:
        raise MTScaffoldError(f"{name}: the manifest of something else ({document.get('kind')}, not {kind}); {remedy}")
    others = {key: value for key, value in document.items() if key not in _HEADER}
    return Manifest(kind, document["files"], others)


def _are_digests(files: object) -> bool:
    return isinstance(files, dict) and all(isinstance(digest, str) for digest in files.values())


def codes_used(path: PathLike, manifest: Manifest, remedy: str) -> CodesUsed:
    """Return the entry ``codes`` of the manifest at ``path``; raise MTScaffoldError if it is malformed."""
    try:
        found = CodesUsed(**manifest.content["codes"])
    except (KeyError, TypeError):
        found = None
    right = found is not None and isinstance(found.ids, str | None)
    if found is None or not right or [type(each) for each in found[:3]] != [str, str, int]:
        raise MTScaffoldError(f"{shown(path)}: codes: must be a name, a sha256, merges and ids; {remedy}")
    return found
