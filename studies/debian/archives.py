"""Extract the text of a .deb archive, with its licences, into a file of JSON lines."""

from __future__ import annotations

import json
import posixpath
import re
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from mt_scaffold.corpus.files import open_input, open_output
from mt_scaffold.errors import MTScaffoldError

from . import formats
from .mirror import Package, wanted

# The version of the extracted files; raised with every change of their content, so that older ones are rewritten.
EDITION = 1
# Larger files are lists or generated; one of this size takes a second.
MOST_BYTES = 20_000_000


def text_of(path: str, content: bytes) -> dict[str, Any]:
    """Return the text of a file: ``pairs`` of a catalogue, or ``blocks`` of a document (formats.py)."""
    if path.endswith(".mo"):
        return {"pairs": formats.catalogue(content)}
    if "/man/" in path:
        return {"blocks": formats.manual_page(content)}
    if path.endswith(".html"):
        return {"blocks": formats.html(content)}
    return {"blocks": formats.xml(content)}


def document_key(path: str, language: str) -> str:
    """Return the name that a document shares with its translations: its path with the language as ``*``.

    >>> document_key("usr/share/help/de/gedit/index.page", "de")
    'usr/share/help/*/gedit/index.page'
    """
    names = {"C", "en-US", "en"} if language == "en" else {language}
    parts = ["*" if part in names else part for part in path.split("/")]
    parts[-1] = re.sub(rf"[._]{language}(?=\.html$)", ".*", parts[-1])
    if parts[:3] == ["usr", "share", "man"] and language == "en":
        parts.insert(3, "*")
    return "/".join(re.sub(rf"-{language}$", "-*", part) for part in parts)


def licences(copyright_file: bytes) -> list[str]:
    """Return the licences that a package's copyright file names.

    These are the short names in a machine-readable file, whatever their paragraph; in any other file, the texts in
    /usr/share/common-licenses that it refers to, each preceded by "mentions".
    """
    text = copyright_file.decode("utf-8", errors="replace")
    if re.match(r"\s*Format(?:-Specification)?:", text):
        return sorted({" ".join(name.split()) for name in re.findall(r"^License:[ \t]*(\S.*)$", text, re.MULTILINE)})
    found = re.findall(r"common-licenses/([A-Za-z][\w.+-]*\w)", text)
    return sorted({f"mentions {name}" for name in found})


def extract(package: Package, archive: Path, languages: Sequence[str], output: Path) -> None:
    """Write the text of ``package`` in English and ``languages``, read from ``archive``, to ``output``.

    The first line has the licences; every other line has one file: path, language, document (the name that translations
    share), and pairs or blocks, or an ``error`` if the file cannot be read. The statistics count these.

    Raises MTScaffoldError if ``archive`` is not a Debian package.
    """
    patterns = [(language, pattern) for language in ("en", *languages) for pattern in wanted(language)]
    head: dict[str, Any] = {"edition": EDITION, "languages": list(languages), "licences": [], "licences_of": None}
    records = []
    command = ["dpkg-deb", "--fsys-tarfile", str(archive)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        stream: IO[bytes] = process.stdout  # type: ignore[assignment]
        try:
            with tarfile.open(fileobj=stream, mode="r|") as members:
                for member in members:
                    path = posixpath.normpath(member.name).lstrip("/")
                    documents = f"usr/share/doc/{package.name}"
                    if path == documents and member.issym():
                        # It shares the folder, and so the licence, of another package.
                        head["licences_of"] = posixpath.basename(member.linkname)
                    if path == f"{documents}/copyright" and member.isfile():
                        file = members.extractfile(member)
                        assert file is not None
                        head["licences"] = licences(file.read())
                    language = next((language for language, pattern in patterns if pattern.search(path)), None)
                    if language is None or not member.isfile() or member.size > MOST_BYTES or "/examples/" in path:
                        continue
                    file = members.extractfile(member)
                    assert file is not None
                    record: dict[str, Any] = {
                        "path": path,
                        "language": language,
                        "document": document_key(path, language),
                    }
                    try:
                        record |= text_of(path, file.read())
                    except ValueError as error:
                        record["error"] = str(error)[:200]
                    records.append(record)
            stream.read()
        except tarfile.TarError as error:
            process.kill()
            raise MTScaffoldError(f"{archive}: not a Debian package ({error}); delete it and run again") from error
    if process.returncode:
        raise MTScaffoldError(f"{archive}: not a Debian package; delete it and run again")
    records.sort(key=lambda record: str(record["path"]))
    with open_output(output) as out:
        for line in (head, *records):
            out.write(json.dumps(line, ensure_ascii=False).encode("utf-8", errors="surrogatepass") + b"\n")


def extracted(path: Path, languages: Sequence[str]) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    """Return the head and the records that ``extract`` wrote; None if they are missing or have other settings."""
    if not path.exists():
        return None
    with open_input(path) as stream:
        head, *records = [json.loads(line) for line in stream]
    if head["edition"] != EDITION or head["languages"] != list(languages):
        return None
    return head, records
