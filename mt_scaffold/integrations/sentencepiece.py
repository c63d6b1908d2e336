"""SentencePiece's BPE models (``NAME.model``, sentencepiece_model.proto) ⇄ codes.

The few fields of that message that matter are read and written here, so that this needs no package. A piece of the type
UNUSED is merged like any other and taken apart afterwards (bpe_model.cc): it is a scaffold token.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike, read_file, shown
from mt_scaffold.corpus.text import is_base_symbol, notation_to_bytes
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.integrations.imported import SPACE, Imported, Original, of_pieces, refused
from mt_scaffold.integrations.merging import merges_of_ranks
from mt_scaffold.segment.numbering import Numbering, Spaces, ordinary_tokens

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")
_BPE = 2


class _Piece(NamedTuple):
    text: str
    score: float
    kind: int


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message of protocol buffers: number and value, which is an int, or bytes."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while at < len(data):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            yield number, varint()
            continue
        size = varint() if kind == 2 else {1: 8, 5: 4}.get(kind, -1)
        if not 0 <= size <= len(data) - at:
            raise ValueError(f"field {number} of type {kind} with {size} bytes")
        yield number, data[at : at + size]
        at += size


def _piece(data: bytes) -> _Piece:
    fields = dict(_fields(data))
    score = struct.unpack("<f", fields[2])[0] if 2 in fields else 0.0
    return _Piece(fields.get(1, b"").decode("utf-8"), score, fields.get(3, _NORMAL))


def read(path: PathLike, pretokeniser: str | None = None, special: Mapping[str, int] | None = None) -> Imported:
    """Read a BPE model; refuses Unigram, normalisers that change text, and other options that codes do not have."""
    name = shown(path)
    if pretokeniser is not None or special:
        raise UsageError(f"{name}: says what words and special tokens are; omit --pretokenise and --special")
    pieces: list[_Piece] = []
    settings: dict[int, dict[int, Any]] = {2: {}, 3: {}, 5: {}}
    try:
        for number, value in _fields(read_file(path)):
            if number == 1:
                pieces.append(_piece(value))
            elif number in settings:
                settings[number] = dict(_fields(value))
    except (ValueError, IndexError, AttributeError, struct.error) as error:
        raise MTScaffoldError(f"{name}: not a model of SentencePiece ({error})") from None
    trainer, normaliser, denormaliser = settings.values()
    if trainer.get(3, 1) != _BPE:
        raise refused(name, "the model is not BPE")
    if trainer.get(24):
        raise refused(name, "spaces end words (treat_whitespace_as_suffix)")
    if normaliser.get(2):
        raise refused(name, f"the normaliser {normaliser.get(1, b'').decode()} changes text")
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
    for number, (text, score, kind) in enumerate(pieces):
        if kind in (_NORMAL, _UNUSED):
            scores[text] = score
            if kind == _NORMAL:
                ids[text] = number
            else:
                others[number] = text.replace(SPACE, " ").encode("utf-8")
        elif kind == _BYTE:
            byte_ids[_byte(name, text)] = number
        else:
            if kind == _USER_DEFINED and SPACE in text:
                raise refused(name, f"the user-defined symbol '{text}' holds a space")
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
    return Imported(codes, numbering, in_text)


def _byte(name: str, text: str) -> int:
    found = _BYTE_PIECE.fullmatch(text)
    if found is None:
        raise MTScaffoldError(f"{name}: the piece '{text}' is no byte")
    return int(found[1], 16)


def original(path: PathLike, imported: Imported) -> Original:
    """Return SentencePiece's encoder for the file."""
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError:
        raise MTScaffoldError(
            "--check needs the package sentencepiece; run pip install 'mt-scaffold[unigram]'"
        ) from None
    return SentencePieceProcessor(model_file=str(path)).encode  # type: ignore[no-any-return]
