"""The plain Python reference of ids: bytes ⇄ ids, one word at a time, to be read alongside ``ids.py``.

``ReferenceBPE`` merges; bytes are written in GPT-2's notation, so that a token is a string.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from mt_scaffold.analysis.reference import ReferenceBPE, Survives, always

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
NOTATION = {byte: chr(byte) for byte in _PRINTABLE} | {byte: chr(256 + n) for n, byte in enumerate(_OTHERS)}
_BYTES = {character: byte for byte, character in NOTATION.items()}


def to_notation(data: bytes) -> str:
    """Return bytes as GPT-2 prints them."""
    return "".join(NOTATION[byte] for byte in data)


def from_notation(token: str) -> bytes:
    """Return the bytes of a printed token."""
    return bytes(_BYTES[character] for character in token)


class ReferenceIds:
    """Encodes and decodes as ``BPE`` does.

    bpe: with merges in GPT-2's notation. split: cuts a text into words, which concatenate to it.
    """

    def __init__(
        self,
        bpe: ReferenceBPE,
        split: Callable[[bytes], Iterable[bytes]],
        special_tokens: Sequence[str] = (),
        multiple: int = 1,
    ) -> None:
        self.bpe = bpe
        self.split = split
        self.special = [token.encode("utf-8") for token in special_tokens]
        tokens = [bytes((byte,)) for byte in range(256)]
        for left, right in sorted(bpe.rank, key=lambda pair: bpe.rank[pair]):
            if left + right not in bpe.scaffold and (token := from_notation(left + right)) not in tokens:
                tokens.append(token)
        self.first_special = len(tokens)
        self.tokens = tokens + self.special
        while len(self.tokens) % multiple:
            self.tokens.append(b"")
        # Without special tokens: their bytes in a text do not get their ids.
        self.id = {token: number for number, token in enumerate(tokens)}

    # -- encoding

    def encode(self, text: bytes, allowed: Collection[str] = (), survives: Survives = always) -> list[int]:
        """Return the ids of a text; allowed special tokens in it become their ids, the longest first."""
        longest_first = sorted((token.encode("utf-8") for token in allowed), key=len, reverse=True)
        pieces = [text]
        if longest_first:
            pieces = re.split(b"(" + b"|".join(map(re.escape, longest_first)) + b")", text)
        ids = []
        for number, piece in enumerate(pieces):
            if number % 2:
                ids.append(self.first_special + self.special.index(piece))
            else:
                ids += [id for word in self.split(piece) for id in self._encode_word(word, survives)]
        return ids

    def _encode_word(self, word: bytes, survives: Survives) -> list[int]:
        symbols = self.bpe.scaffolding([NOTATION[byte] for byte in word], survives)
        return [self.id[from_notation(piece)] for symbol in symbols for piece in self.bpe.demolish(symbol)]

    # -- decoding

    def decode(self, ids: Iterable[int]) -> bytes:
        """Return the text of any ids."""
        return b"".join(self.tokens[id] for id in ids)
