"""fastBPE's codes (two symbols and their count per line) ⇄ codes."""

from __future__ import annotations

from collections.abc import Mapping

from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike, read_file, shown
from mt_scaffold.corpus.text import decode
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.integrations.vocabularies.imported import Imported, Original, refused


def read(path: PathLike, pretokeniser: str | None = None, special: Mapping[str, int] | None = None) -> Imported:
    """Read fastBPE's codes, which have no ids; counts are ignored."""
    name = shown(path)
    if pretokeniser is not None or special:
        raise UsageError(f"{name}: words are between spaces and have no ids; omit --pretokenise and --special")
    lines: dict[str, int] = {}
    for number, line in enumerate(decode(read_file(path), name).removesuffix("\n").split("\n"), 1):
        fields = line.removesuffix("\r").split(" ")
        if len(fields) != 3 or not all(fields) or not fields[2].isdecimal():
            raise MTScaffoldError(f"{name}: line {number}: expected two symbols and their count")
        merge = " ".join(fields[:2])
        if merge.endswith("\r"):
            raise refused(name, f"line {number}: the symbol {fields[1]!r} ends in a CR")
        if lines.setdefault(merge, number) != number:
            raise refused(name, f"line {number}: the merge '{merge}' is also in line {lines[merge]}")
    content = "\n".join(["#version: 0.2", *lines]) + "\n"
    return Imported(Codes(content.encode("utf-8"), name), None)


def write(codes: Codes) -> bytes:
    """Return fastBPE's codes, with 0 for the counts, which fastBPE ignores when it segments.

    Raises MTScaffoldError for codes that it cannot express.
    """
    if codes.header != (codes.header._replace(symbols="characters", pretokeniser="spaces", picky=False)):
        raise MTScaffoldError(f"{codes.name}: fastBPE's symbols are characters, and its words between spaces")
    if codes.scaffold:
        raise MTScaffoldError(f"{codes.name}: fastBPE cannot take scaffold tokens apart")
    # Of duplicate merges, the last counts in fastBPE, the first in codes.
    merges = dict.fromkeys((left, right) for left, right, _ in codes.merges)
    return "".join(f"{left} {right} 0\n" for left, right in merges).encode("utf-8")


def original(path: PathLike, imported: Imported) -> Original:
    """Return fastBPE's segmentation with the file."""
    try:
        import fastBPE
    except ImportError:
        raise MTScaffoldError("--check needs the package fastBPE; run pip install fastBPE") from None
    bpe = fastBPE.fastBPE(str(path))
    return lambda text: bpe.apply([text])[0].split(" ")
