"""Codes with the ids of the program that they come from: the result of the readers of all formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from mt_scaffold.codes import Codes
from mt_scaffold.corpus.text import WORD_START, bytes_to_notation, notation_to_bytes
from mt_scaffold.errors import MTScaffoldError, printable
from mt_scaffold.integrations.vocabularies.merging import first_out_of_order
from mt_scaffold.segment.numbering import Numbering, Spaces, ordinary_tokens

SPACE = WORD_START
# A piece of byte fallback.
BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")
# A library's segmentation of a text: ids, or subwords if the format has no ids.
Original = Callable[[str], Sequence[int] | Sequence[str]]


class Imported(NamedTuple):
    """A file of another program as codes.

    numbering: None if the format has no ids. notes: messages about contents of the file that codes do not have.
    """

    codes: Codes
    numbering: Numbering | None
    notes: Sequence[str] = ()


class Pieces(NamedTuple):
    """The arguments from which ``of_pieces`` makes given codes; U+2581 represents a space.

    merges: of characters, in order, including those of scaffold tokens. ids: of every piece that text can get.
    byte_ids: of byte fallback. others: ids used in decoding only.
    """

    merges: list[tuple[str, str]]
    ids: dict[str, int]
    byte_ids: dict[int, int]
    others: dict[int, str]


def numbered(name: str, codes: Codes, numbering: Numbering, notes: Sequence[str] = ()) -> Imported:
    """Return imported codes with their ids. Raises MTScaffoldError for duplicate and impossible ids and names."""
    if (fault := numbering.fault(codes)) is not None:
        raise refused(name, fault)
    return Imported(codes, numbering, notes)


def refused(name: str, what: str) -> MTScaffoldError:
    """Return the error for something that codes cannot express."""
    return MTScaffoldError(f"{name}: {printable(what)}, which codes cannot express exactly; nothing was written")


def codes_of_merges(name: str, pretokeniser: str, merges: Iterable[tuple[bytes, bytes]]) -> Codes:
    """Return codes of bytes from merges. Raises MTScaffoldError if one uses a token before it is made."""
    pairs = list(merges)
    wrong = first_out_of_order(pairs)
    if wrong is not None:
        shown = " ".join(map(bytes_to_notation, wrong))
        raise refused(name, f"the merge '{shown}' comes before a merge that makes one of its tokens")
    return _codes(name, pretokeniser, ((left, right, False) for left, right in pairs))


def _codes(name: str, pretokeniser: str, merges: Iterable[tuple[bytes, bytes, bool]]) -> Codes:
    lines = [f"#version: 0.3 bytes {pretokeniser}"]
    for left, right, scaffold in merges:
        lines.append(f"{bytes_to_notation(left)} {bytes_to_notation(right)}{' scaffold' * scaffold}")
    return Codes(("\n".join(lines) + "\n").encode("utf-8"), name)


def ids_of_bytes(name: str, codes: Codes, ids: Mapping[bytes, int]) -> tuple[int, ...]:
    """Return the ids of all tokens of codes, in their order. Raises MTScaffoldError if a token has none."""
    found = []
    for token in ordinary_tokens(codes):
        number = ids.get(notation_to_bytes(token))
        if number is None:
            raise refused(name, f"'{token}' has no id")
        _check_not_negative(name, token, number)
        found.append(number)
    return tuple(found)


def _check_not_negative(name: str, token: str, number: int) -> None:
    """Raise MTScaffoldError for a negative id, even -1, which in a ``Numbering`` means that a token has no id."""
    if number < 0:
        raise refused(name, f"'{token}' has the id {number}, which is not from 0 up")


def of_pieces(
    name: str,
    pretokeniser: str,
    merges: Sequence[tuple[str, str]],
    pieces: Mapping[str, int],
    byte_ids: Mapping[int, int],
    unknown: int | None,
    spaces: Spaces,
    special: Mapping[str, int],
    others: Mapping[int, bytes],
    source: Mapping[str, str],
) -> tuple[Codes, Numbering]:
    """Return codes of bytes for pieces of characters, in which U+2581 represents a space.

    Merges of bytes into characters come before those of characters. A part of a character is scaffold, and so is a
    character or merged token without an id: when it remains, it is taken apart, down to bytes, as by byte fallback.

    merges: of characters, in order. pieces: the id of every piece that text can get. byte_ids: of byte fallback.
    unknown: the id of bytes without one. others: ids used in decoding only.
    """
    wrong = first_out_of_order(merges)
    if wrong is not None:
        raise refused(name, f"the merge '{' '.join(wrong)}' comes before a merge that makes one of its pieces")
    if " " in "".join(pieces):
        raise refused(name, "a piece contains a space")
    for piece, number in pieces.items():
        _check_not_negative(name, piece, number)
    if SPACE not in pieces:
        raise refused(name, f"'{SPACE}' is not a piece by itself")
    spelled = (*pieces, *(left + right for left, right in merges))
    crossing = next((piece for piece in spelled if re.search(f"[^{SPACE}]{SPACE}", piece)), None)
    if pretokeniser == "metaspace-runs" and crossing is not None:
        raise refused(name, f"the piece '{crossing}' crosses the start of a word")
    characters = sorted({each for piece in spelled for each in piece})
    lines: dict[tuple[bytes, bytes], bool] = {}
    for character in characters:
        encoded = _bytes(character)
        for end in range(2, len(encoded) + 1):
            whole = end == len(encoded)
            lines[encoded[: end - 1], encoded[end - 1 : end]] = not (whole and character in pieces)
    for left, right in merges:
        lines[_bytes(left), _bytes(right)] = left + right not in pieces
    codes = _codes(name, pretokeniser, ((left, right, scaffold) for (left, right), scaffold in lines.items()))
    ids = {bytes_to_notation(_bytes(piece)): number for piece, number in pieces.items()}
    for byte, number in byte_ids.items():
        ids.setdefault(bytes_to_notation(bytes((byte,))), number)
    if unknown is None and len(byte_ids) < 256:
        raise refused(name, "there is neither a piece for unknown characters nor one for each byte")
    numbers = tuple(ids.get(token, -1) for token in ordinary_tokens(codes))
    given = {number for number in numbers if number >= 0}
    decoded = {number: bytes((byte,)) for byte, number in byte_ids.items()}
    decoded |= {number: _bytes(piece) for piece, number in pieces.items()} | dict(others)
    rest = {number: token for number, token in decoded.items() if number not in given}
    return codes, Numbering(numbers, special, rest, unknown if -1 in numbers else None, spaces, source)


def _bytes(piece: str) -> bytes:
    return piece.replace(SPACE, " ").encode("utf-8")


def pieces_of(codes: Codes, numbering: Numbering, program: str) -> Pieces:
    """Return the arguments from which ``of_pieces`` made these codes, which may have been trimmed or extended since.

    Raises MTScaffoldError for codes of another form, which ``program`` cannot have since it merges characters.
    """
    merges: list[tuple[str, str]] = []
    for left, right, scaffold in codes.merges:
        parts = notation_to_bytes(left), notation_to_bytes(right)
        text, whole = _text(b"".join(parts)), [_text(part) for part in parts]
        if text is not None and len(text) > 1 and whole[0] and whole[1]:
            merges.append((whole[0], whole[1]))
        elif merges or len(parts[1]) > 1 or not (scaffold or text) or not _begins_character(b"".join(parts)):
            raise MTScaffoldError(
                f"{codes.name}: the merge '{left} {right}' is of parts of characters, which {program} does not merge"
            )
    by_both = {token for token in numbering.others.values() if len(token) == 1}
    fallback = all(number >= 0 for number in numbering.ids[128:256])
    ids: dict[str, int] = {}
    byte_ids = {token[0]: number for number, token in numbering.others.items() if len(token) == 1}
    for token, number in zip(map(notation_to_bytes, ordinary_tokens(codes)), numbering.ids, strict=True):
        text = _text(token)
        if number >= 0 and (text is None or (fallback and len(token) == 1 and token not in by_both)):
            byte_ids[token[0]] = number
        elif number >= 0 and text is not None:
            ids[text] = number
    if 0 < len(byte_ids) < 256:
        byte, number = next(iter(byte_ids.items()))
        raise MTScaffoldError(
            f"{codes.name}: no text gets the id {number} of the byte 0x{byte:02X}, which {program} cannot express"
        )
    others = {
        number: token.decode("utf-8").replace(" ", SPACE)
        for number, token in numbering.others.items()
        if len(token) != 1
    }
    return Pieces(merges, ids, byte_ids, others)


def check_merges(codes: Codes, pieces: Pieces, program: str) -> None:
    """Raise MTScaffoldError unless merging one place at a time, with pairs by their ids, gives the result of codes."""
    marked = (merge.token for merge in codes.merges if not merge.normal)
    scaffold = next((token for token in marked if _text(notation_to_bytes(token)) is not None), None)
    if scaffold is not None:
        raise MTScaffoldError(
            f"{codes.name}: {program} cannot take scaffold tokens apart, such as '{scaffold}'; use the tokenizer of "
            "mt_scaffold.integrations.transformers"
        )
    made: set[str] = set()
    for left, right in pieces.merges:
        for part in (left, right):
            if part not in pieces.ids or (len(part) > 1 and part not in made):
                merge = printable(f"'{left} {right}' uses '{part}'")
                raise MTScaffoldError(f"{codes.name}: the merge {merge}, which is not a piece yet")
        if left + right in made:
            token = printable(left + right)
            raise MTScaffoldError(f"{codes.name}: two merges make '{token}'; {program} allows only one")
        made.add(left + right)


def check_no_gaps(codes: Codes, numbers: Collection[int], n_vocab: int, program: str) -> None:
    """Raise MTScaffoldError unless every id below ``n_vocab`` is among those of pieces."""
    if len(numbers) != n_vocab:
        missing = next(number for number in range(n_vocab) if number not in numbers)
        raise MTScaffoldError(f"{codes.name}: no token has the id {missing}, and {program} allows no gaps")


def _text(token: bytes) -> str | None:
    try:
        return token.decode("utf-8").replace(" ", SPACE)
    except UnicodeDecodeError:
        return None


def _begins_character(token: bytes) -> bool:
    return token[0] >= 0xC0 and all(0x80 <= byte < 0xC0 for byte in token[1:])
