"""What surgery on codes of bytes does to their ids: the map from old ids to new, which ``resize-embeddings`` takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike
from mt_scaffold.corpus.text import notation_to_bytes
from mt_scaffold.errors import UsageError
from mt_scaffold.manifest import Manifest, write_manifest
from mt_scaffold.segment.apply import BPE
from mt_scaffold.segment.numbering import Numbering, numbering_of, ordinary_tokens, write_numbered

KIND = "ids map"


class IdMap(NamedTuple):
    """Old ids and new ones.

    old, new: how many there are. ids: for each old id the new one, None where its token is gone. pieces: for the id of
    each new token the old ids that its string was segmented into; for that of a token that is gone, nothing.
    """

    old: int
    new: int
    ids: Sequence[int | None]
    pieces: dict[int, list[int]]


def write_surgery(codes: Codes, changed: Codes, outfile: PathLike | None, map_file: PathLike | None) -> IdMap | None:
    """Write the ids of changed codes next to them where the old ones were imported, and the map.

    outfile: where the changed codes are; None for standard output. Returns the map, None where none is wanted.

    Raises UsageError for imported codes without ``outfile``, and for a map of codes that have no ids.
    """
    numbering = None if codes.header.end_of_word else numbering_of(codes)
    if numbering is None and map_file is None:
        return None
    if codes.header.end_of_word:
        raise UsageError(f"{codes.name}: codes of words between spaces have no ids of their own to map; omit --map")
    if numbering is not None and outfile is None:
        raise UsageError(f"{codes.name}: imported codes have ids, which are written next to --output; give it")
    old = numbering or Numbering(tuple(range(len(ordinary_tokens(codes)))))
    new, ids = old.after(codes, changed)
    if numbering is not None and outfile is not None:
        write_numbered(changed, new, outfile)
    before = set(ordinary_tokens(codes))
    bpe, number_of = BPE(codes, numbering=old), dict(zip(ordinary_tokens(codes), old.ids, strict=True))
    pieces = {}
    for token, number in zip(ordinary_tokens(changed), new.ids, strict=True):
        if token not in before:
            parts = bpe.segment_tokens([notation_to_bytes(token)])
            pieces[number] = [number_of[part.decode("utf-8")] for part in parts]
    found = IdMap(old.n_vocab, new.n_vocab, ids, pieces)
    if map_file is not None:
        content = {
            "old_ids": found.old,
            "new_ids": found.new,
            "ids": list(ids),
            "pieces": {str(number): parts for number, parts in pieces.items()},
        }
        write_manifest(map_file, Manifest(KIND, {}, content))
    return found
