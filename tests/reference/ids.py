"""The plain Python reference of ids: bytes ⇄ ids, one word at a time, to be read alongside ``ids.py``.

``ReferenceBPE`` merges; bytes are written in GPT-2's notation, so that a token is a string.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from mt_scaffold.analysis.reference import ReferenceBPE, Survives, always
from mt_scaffold.corpus.text import END_OF_WORD

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
NOTATION = {byte: chr(byte) for byte in _PRINTABLE} | {byte: chr(256 + n) for n, byte in enumerate(_OTHERS)}
_BYTES = {character: byte for byte, character in NOTATION.items()}
# A token: its bytes, and whether it is word-final.
Token = tuple[bytes, bool]


def to_notation(data: bytes) -> str:
    """Return bytes as GPT-2 prints them."""
    return "".join(NOTATION[byte] for byte in data)


def from_notation(token: str) -> bytes:
    """Return the bytes of a printed token."""
    return bytes(_BYTES[character] for character in token)


class ReferenceIds:
    """Encodes and decodes as ``BPE`` does.

    bpe: with merges in GPT-2's notation. split: cuts a text into words, which concatenate to it; None for words between
    spaces, whose last symbol carries ``</w>``.
    """

    def __init__(
        self,
        bpe: ReferenceBPE,
        split: Callable[[bytes], Iterable[bytes]] | None,
        special_tokens: Sequence[str] = (),
        multiple: int = 1,
    ) -> None:
        self.bpe = bpe
        self.split = split
        self.special = [token.encode("utf-8") for token in special_tokens]
        tokens: list[Token] = [(bytes((byte,)), False) for byte in range(256)]
        if split is None:
            tokens += [(bytes((byte,)), True) for byte in range(256)]
        for left, right in sorted(bpe.rank, key=lambda pair: bpe.rank[pair]):
            if left + right not in bpe.scaffold and (token := self._token(left + right)) not in tokens:
                tokens.append(token)
        self.first_special = len(tokens)
        self.tokens = tokens + [(token, False) for token in self.special]
        while len(self.tokens) % multiple:
            self.tokens.append((b"", False))
        # Without special tokens: their bytes in a text do not get their ids.
        self.id = {token: number for number, token in enumerate(tokens)}

    def _token(self, symbol: str) -> Token:
        final = self.split is None and symbol.endswith(END_OF_WORD) and symbol != END_OF_WORD
        return from_notation(symbol.removesuffix(END_OF_WORD) if final else symbol), final

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
            elif self.split is None:
                ids += self._encode_spaced(piece, survives)
            else:
                ids += [id for word in self.split(piece) for id in self._encode_word(word, survives)]
        return ids

    def _encode_word(self, word: bytes, survives: Survives) -> list[int]:
        symbols = [NOTATION[byte] for byte in word]
        if self.split is None:
            symbols[-1] += END_OF_WORD
        symbols = self.bpe.scaffolding(symbols, survives)
        symbols = [piece for symbol in symbols for piece in self.bpe.demolish(symbol)]
        ids = []
        for number, symbol in enumerate(symbols):
            token = self._token(symbol)
            if token[1] and number + 1 < len(symbols):
                # The word spells out "</w>": the symbol looks word-final, but the word does not end here.
                ids += [*from_notation(symbol)]
            else:
                ids.append(self.id[token])
        return ids

    def _encode_spaced(self, text: bytes, survives: Survives) -> list[int]:
        """Return the ids of words and of the gaps between them: a single space is implied, others are spelled out."""
        ids: list[int] = []
        gap, after_word = b"", False
        for number, line in enumerate(re.split(rb"(\n)", text)):
            if number % 2:
                gap += line
                continue
            core = line.strip(b" \r")
            start = line.index(core) if core else len(line)
            gap += line[:start]
            for part in re.split(rb"( +)", core) if core else ():
                if part.startswith(b" "):
                    gap += part
                elif part:
                    # The CR at the beginning of a word would be read as a margin.
                    if not (after_word and gap == b" " and not part.startswith(b"\r")):
                        ids += gap
                    ids += self._encode_word(part, survives)
                    gap, after_word = b"", True
            gap += line[start + len(core) :]
        return [*ids, *gap]

    # -- decoding

    def decode(self, ids: Iterable[int]) -> bytes:
        """Return the text of any ids."""
        text, ended = b"", False
        for id in ids:
            data, final = self.tokens[id]
            special = id >= self.first_special
            if special and not data:
                continue
            if ended and not special and (final or data not in (b" ", b"\n", b"\r")):
                text += b" "
            text += data
            ended = final
        return text
