"""SentencePiece's BPE models (``NAME.model``, sentencepiece_model.proto) ⇄ codes.

This module reads and writes the few relevant fields of that message itself, so it needs no package. A piece of the type
UNUSED is merged like any other and taken apart afterwards (bpe_model.cc): it is a scaffold token.
"""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Any, NamedTuple

from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike, read_file, shown
from mt_scaffold.corpus.text import notation_to_bytes
from mt_scaffold.errors import MTScaffoldError, UsageError, printable
from mt_scaffold.integrations.vocabularies.imported import (
    BYTE_PIECE,
    SPACE,
    Imported,
    Original,
    Pieces,
    check_no_gaps,
    numbered,
    of_pieces,
    pieces_of,
    refused,
)
from mt_scaffold.integrations.vocabularies.merging import merges_of_ranks
from mt_scaffold.segment.numbering import Numbering, Spaces

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
_BPE = 2
# Types of fields: a whole number, bytes, and four bytes.
_VARINT, _BYTES, _FLOAT = 0, 2, 5
# The fields to read, and their types, of TrainerSpec, NormalizerSpec and the denormaliser's NormalizerSpec.
_SETTINGS = {
    2: {3: _VARINT, 24: _VARINT},
    3: {1: _BYTES, 2: _BYTES, 3: _VARINT, 4: _VARINT, 5: _VARINT},
    5: {2: _BYTES},
}


class _Piece(NamedTuple):
    text: str
    score: float
    kind: int


def _fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Yield the fields of a protocol buffer message: number, type, and value, an int or bytes."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = 0
        for shift in range(0, 70, 7):
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a whole number of more than 10 bytes")

    while at < len(data):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            yield number, kind, varint()
            continue
        size = varint() if kind == _BYTES else {1: 8, _FLOAT: 4}.get(kind, -1)
        if not 0 <= size <= len(data) - at:
            raise ValueError(f"field {number} of type {kind} with {size} bytes")
        yield number, kind, data[at : at + size]
        at += size


def _known(data: bytes, types: Mapping[int, int]) -> dict[int, Any]:
    """Return the values of a message's fields that ``types`` lists. Raises ValueError if one has another type."""
    found = {}
    for number, kind, value in _fields(data):
        if types.get(number, kind) != kind:
            raise ValueError(f"field {number} has the type {kind}, not {types[number]}")
        if number in types:
            found[number] = value
    return found


def _piece(data: bytes) -> _Piece:
    fields = _known(data, {1: _BYTES, 2: _FLOAT, 3: _VARINT})
    score = struct.unpack("<f", fields.get(2, bytes(4)))[0]
    kind = fields.get(3, _NORMAL)
    if math.isnan(score) or not _NORMAL <= kind <= _BYTE:
        raise ValueError(f"a piece with the score {score} and the type {kind}")
    return _Piece(fields.get(1, b"").decode("utf-8"), score, kind)


def read(path: PathLike, pretokeniser: str | None = None, special: Mapping[str, int] | None = None) -> Imported:
    """Read a BPE model.

    Raises MTScaffoldError for Unigram, normalisers that change text, and other options that codes do not have.
    """
    name = shown(path)
    if pretokeniser is not None or special:
        raise UsageError(f"{name}: defines its own words and special tokens; omit --pretokenise and --special")
    pieces: list[_Piece] = []
    settings: dict[int, dict[int, Any]] = {number: {} for number in _SETTINGS}
    try:
        for number, kind, value in _fields(read_file(path)):
            if number != 1 and number not in _SETTINGS:
                continue
            if kind != _BYTES:
                raise ValueError(f"field {number} has the type {kind}, not {_BYTES}")
            if number == 1:
                pieces.append(_piece(value))
            else:
                settings[number] |= _known(value, _SETTINGS[number])
        trainer, normaliser, denormaliser = settings.values()
        rules = normaliser.get(1, b"").decode("utf-8")
    except (ValueError, IndexError) as error:
        raise MTScaffoldError(f"{name}: not a model of SentencePiece ({error})") from None
    if trainer.get(3, 1) != _BPE:
        raise refused(name, "the model is not BPE")
    if trainer.get(24):
        raise refused(name, "spaces end words (treat_whitespace_as_suffix)")
    if normaliser.get(2):
        raise refused(name, f"the normaliser {rules} changes text")
    if denormaliser.get(2):
        raise refused(name, "a denormaliser changes text")
    for option, number, wanted in (("remove_extra_whitespaces", 4, 0), ("escape_whitespaces", 5, 1)):
        if normaliser.get(number, 1) != wanted:
            raise refused(name, f"{option} is {'false' if wanted else 'true'}")
    return _imported(name, pieces, Spaces("always" if normaliser.get(3, 1) else "none"))


def _imported(name: str, pieces: list[_Piece], spaces: Spaces) -> Imported:
    scores: dict[str, float] = {}
    ids: dict[str, int] = {}
    special: dict[str, int] = {}
    byte_ids: dict[int, int] = {}
    others: dict[int, bytes] = {}
    unknown, in_text = None, []
    if (fault := _fault(pieces)) is not None:
        raise MTScaffoldError(f"{name}: SentencePiece does not load {fault}")
    for number, (text, score, kind) in enumerate(pieces):
        if kind in (_NORMAL, _UNUSED):
            scores[text] = score
            if kind == _NORMAL:
                ids[text] = number
            else:
                others[number] = text.replace(SPACE, " ").encode("utf-8")
        elif kind == _BYTE:
            byte_ids[_byte(name, text)] = number
        elif kind == _USER_DEFINED and SPACE in text:
            raise refused(name, f"the user-defined symbol '{text}' contains a space")
        elif kind == _USER_DEFINED and " " in text:
            # SentencePiece looks for symbols after it has replaced spaces, so text never gets this id.
            others[number] = text.encode("utf-8")
        else:
            special[text] = number
            unknown = number if kind == _UNKNOWN else unknown
            in_text += [text] * (kind == _USER_DEFINED)
    order = {text: rank for rank, text in enumerate(sorted(scores, key=lambda text: -scores[text]))}
    merged = [text for text in order if len(text) > 1]
    if len({scores[text] for text in merged}) < len(merged):
        raise refused(name, "two pieces have the same score")
    merges, unmade = merges_of_ranks(order, list)
    for text in unmade:
        others[ids.pop(text, -1)] = text.replace(SPACE, " ").encode("utf-8")
    others.pop(-1, None)
    source = {"format": "sentencepiece"}
    byte_ids = byte_ids if len(byte_ids) == 256 else {}
    codes, numbering = of_pieces(
        name, "metaspace-runs", merges, ids, byte_ids, unknown, spaces, special, others, source
    )
    return numbered(name, codes, replace(numbering, in_text=tuple(in_text), shown=tuple(in_text)))


def _byte(name: str, text: str) -> int:
    found = BYTE_PIECE.fullmatch(text)
    if found is None:
        raise MTScaffoldError(f"{name}: not a model of SentencePiece (the piece '{printable(text)}' is not a byte)")
    return int(found[1], 16)


def write(codes: Codes, numbering: Numbering | None) -> bytes:
    """Return a BPE model with the ids of imported codes; scaffold tokens are pieces of the type UNUSED.

    Scaffold tokens without an id come after all others, so that a model's embeddings need no rows for them.

    Raises MTScaffoldError for codes without the form of those imported from SentencePiece: bytes are merged into
    characters before anything else, and words begin with spaces.
    """
    if numbering is None or numbering.spaces is None or codes.header.picky:
        raise MTScaffoldError(
            f"{codes.name}: SentencePiece merges characters, in words that begin with spaces; only codes that were "
            "imported from it, or from Metaspace, have this form"
        )
    if numbering.spaces.prefix == "unless-there" or numbering.spaces.each:
        raise MTScaffoldError(f"{codes.name}: SentencePiece puts a space before every text or before none")
    unknown = numbering.special.get("<unk>") if numbering.unknown is None else numbering.unknown
    if unknown is None:
        raise MTScaffoldError(f"{codes.name}: SentencePiece needs an id for unknown characters, '<unk>'")
    if numbering.unknown is not None and numbering.unknown_token in numbering.in_text:
        raise MTScaffoldError(
            f"{codes.name}: unlike these codes, SentencePiece does not find '{numbering.unknown_token}', its piece for "
            "unknown characters, in a text; use the tokenizer of mt_scaffold.integrations.transformers"
        )
    spaced = next((token for token in numbering.in_text if " " in token or SPACE in token), None)
    if spaced is not None:
        spaced = printable(spaced)
        raise MTScaffoldError(f"{codes.name}: SentencePiece cannot find symbols with a space, such as '{spaced}'")
    form = pieces_of(codes, numbering, "SentencePiece")
    if codes.header.pretokeniser == "metaspace":
        inner = next((left + right for left, right in form.merges if SPACE in (left + right)[1:]), None)
        if inner is not None:
            raise MTScaffoldError(
                f"{codes.name}: SentencePiece would make '{printable(inner)}', but in the codes every space begins a "
                "word"
            )
    scores = _scores(codes, form)
    scaffold = {token.replace(" ", SPACE) for token in _texts(codes.scaffold)}
    lost = next((number for number, text in form.others.items() if text not in scaffold), None)
    if lost is not None:
        raise MTScaffoldError(f"{codes.name}: no merge makes '{printable(form.others[lost])}', which has id {lost}")
    least = -float(len(scores))
    pieces = {number: _Piece(text, scores.get(text, least), _NORMAL) for text, number in form.ids.items()}
    pieces |= {number: _Piece(text, scores.get(text, least), _UNUSED) for number, text in form.others.items()}
    pieces |= {number: _Piece(f"<0x{byte:02X}>", 0.0, _BYTE) for byte, number in form.byte_ids.items()}
    for text, number in numbering.special.items():
        kind = _USER_DEFINED if text in numbering.in_text else _UNKNOWN if number == unknown else _CONTROL
        pieces[number] = _Piece(text, 0.0, kind)
    check_no_gaps(codes, pieces, numbering.n_vocab, "SentencePiece")
    present = {piece.text for piece in pieces.values() if piece.kind != _BYTE}
    listed = [pieces[number] for number in sorted(pieces)]
    listed += [_Piece(text, score, _UNUSED) for text, score in scores.items() if text not in present]
    if (fault := _fault(listed)) is not None:
        raise MTScaffoldError(f"{codes.name}: SentencePiece does not load {fault}, which these ids need")
    prefix = numbering.spaces.prefix == "always"
    trainer = _message((3, _BPE), (4, len(listed)), (35, int(bool(form.byte_ids))), (40, unknown))
    normaliser = _message((1, b"identity"), (3, int(prefix)), (4, 0), (5, 1))
    return _message(*((1, _packed(piece)) for piece in listed), (2, trainer), (3, normaliser))


def _fault(pieces: Iterable[_Piece]) -> str | None:
    """Return why SentencePiece does not load pieces (model_interface.cc), or None."""
    seen = set()
    unknown = 0
    for piece in pieces:
        named = piece.text, piece.kind in (_NORMAL, _USER_DEFINED, _UNUSED)
        if not piece.text:
            return "a piece without a name"
        if named in seen:
            return f"two pieces named '{printable(piece.text)}'"
        seen.add(named)
        unknown += piece.kind == _UNKNOWN
        if unknown > 1:
            return "two pieces for unknown characters"
    return None


def _scores(codes: Codes, form: Pieces) -> dict[str, float]:
    """Return the score of every piece made by merges of characters: scores from which the same merges follow."""
    scores: dict[str, float] = {}
    for left, right in form.merges:
        scores.setdefault(left + right, -float(len(scores)))
    found, _ = merges_of_ranks({text: rank for rank, text in enumerate(scores)}, list)
    wanted = list(dict.fromkeys(form.merges))
    if found != wanted:
        pairs = next(pairs for pairs in zip_longest(wanted, found, fillvalue=("", "")) if pairs[0] != pairs[1])
        ours, theirs = (printable(" ".join(pair)) for pair in pairs)
        raise MTScaffoldError(f"{codes.name}: SentencePiece would merge '{theirs}' where the codes merge '{ours}'")
    return scores


def _texts(tokens: Iterable[str]) -> Iterator[str]:
    for token in tokens:
        with contextlib.suppress(UnicodeDecodeError):
            yield notation_to_bytes(token).decode("utf-8")


def _packed(piece: _Piece) -> bytes:
    score = b"\x15" + struct.pack("<f", piece.score)
    return _message((1, piece.text.encode("utf-8"))) + score + _message((3, piece.kind))


def _message(*fields: tuple[int, int | bytes]) -> bytes:
    """Return a protocol buffer message of fields that are whole numbers or bytes."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts.append(_varint(number << 3) + _varint(value))
        else:
            parts.append(_varint(number << 3 | 2) + _varint(len(value)) + value)
    return b"".join(parts)


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes((*parts, value))


def original(path: PathLike, imported: Imported) -> Original:
    """Return SentencePiece's encoder for the file."""
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError:
        raise MTScaffoldError("--check needs the package sentencepiece; run pip install '.[vocabularies]'") from None
    return SentencePieceProcessor(model_file=str(path)).encode
