"""The map of removed and new tokens that ``trim`` and ``extend`` write, for a model's embeddings to follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike
from mt_scaffold.corpus.symbols import token_name
from mt_scaffold.corpus.text import is_base_symbol, notation_to_bytes
from mt_scaffold.errors import UsageError
from mt_scaffold.manifest import Manifest, write_manifest
from mt_scaffold.segment.apply import BPE
from mt_scaffold.segment.numbering import Numbering, numbering_of, ordinary_tokens, write_numbered

KIND = "codes map"


class IdMap(NamedTuple):
    """Old ids and new ones, of codes of bytes without ``</w>``.

    old, new: the number of each. ids: for each old id the new one, or None if its token is gone. pieces: for the new id
    of each new token the old ids that its string was segmented into.
    """

    old: int
    new: int
    ids: Sequence[int | None]
    pieces: Mapping[int, Sequence[int]]


class SubwordMap(NamedTuple):
    """Subwords that only the old or only the new codes have, for words between spaces.

    Subwords have their names in dictionaries (``symbol_name``). removed: each subword that is gone, with the subwords
    of the new codes in its place. added: each new one, with the subwords of the old codes that it is made of.
    """

    removed: Mapping[str, Sequence[str]]
    added: Mapping[str, Sequence[str]]


def write_surgery(
    codes: Codes, changed: Codes, outfile: PathLike | None, map_file: PathLike | None
) -> IdMap | SubwordMap | None:
    """Write the map, and the ids of changed codes next to them if the old ones were imported.

    outfile: path of the changed codes; None for standard output. Returns the map; None if nothing is to be written.

    Raises UsageError for imported codes without ``outfile``, and for a map of codes whose subwords may not be text.
    """
    if codes.header.end_of_word:
        if map_file is None:
            return None
        if codes.header.bytes:
            raise UsageError(f"{codes.name}: subwords of bytes between spaces may not be text; omit --map")
        subwords = subword_map(codes, changed)
        write_manifest(map_file, Manifest(KIND, {}, subwords._asdict()))
        return subwords
    numbering = numbering_of(codes)
    if numbering is None and map_file is None:
        return None
    if numbering is not None and outfile is None:
        raise UsageError(f"{codes.name}: imported codes have ids, which are written next to --output; give it")
    found = _id_map(codes, changed, numbering, outfile)
    if map_file is not None:
        content = {
            "old_ids": found.old,
            "new_ids": found.new,
            "ids": list(found.ids),
            "pieces": {str(number): parts for number, parts in found.pieces.items()},
        }
        write_manifest(map_file, Manifest(KIND, {}, content))
    return found


def _id_map(codes: Codes, changed: Codes, numbering: Numbering | None, outfile: PathLike | None) -> IdMap:
    """Return the map of codes with ids; those of imported ones are written next to ``outfile``."""
    before, now = ordinary_tokens(codes), ordinary_tokens(changed)
    if numbering is None:
        # Ids are ranks: a token that PickyBPE removed and then makes again has its old rank.
        old = Numbering(tuple(range(len(before))))
        number_of = {token: number for number, token in enumerate(now)}
        ids, new = [number_of.get(token) for token in before], len(now)
    else:
        old = numbering
        after, ids = old.after(codes, changed)
        number_of, new = dict(zip(now, after.ids, strict=True)), after.n_vocab
        if outfile is not None:
            write_numbered(changed, after, outfile)
    known = dict(zip(before, old.ids, strict=True))
    bpe, pieces = BPE(codes, numbering=old), {}
    for token in now:
        if token not in known:
            parts = (known[part.decode("utf-8")] for part in bpe.segment_tokens([notation_to_bytes(token)]))
            # -1: a byte without an id.
            numbers = [old.unknown if part < 0 else part for part in parts]
            pieces[number_of[token]] = [number for number in numbers if number is not None]
    return IdMap(old.n_vocab, new, ids, pieces)


def subword_map(codes: Codes, changed: Codes) -> SubwordMap:
    """Return the map between codes of words between spaces; a token is made of the parts of its first merge."""
    made_of: dict[str, tuple[str, str]] = {}
    for left, right, _ in changed.merges:
        made_of.setdefault(left + right, (left, right))

    def parts(token: str, known: set[str]) -> list[str]:
        found, left = [], [token]
        while left:
            part = left.pop()
            if part in known or is_base_symbol(part):
                found.append(token_name(part))
            else:
                left += reversed(made_of[part])
        return found

    before, after = codes.normal, changed.normal
    return SubwordMap(
        {token_name(token): parts(token, after) for token in sorted(before - after)},
        {token_name(token): parts(token, before) for token in sorted(after - before)},
    )
