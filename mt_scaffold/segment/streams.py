"""Text in pieces → ids, and ids in pieces → text, with the same result as all at once."""

from __future__ import annotations

from typing import BinaryIO

from mt_scaffold.codes import CodesSource
from mt_scaffold.corpus.files import Waiting
from mt_scaffold.corpus.id_files import DTYPES, id_width
from mt_scaffold.corpus.text import as_bytes
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.segment.apply import BPE
from mt_scaffold.segment.ids import IncrementalDecoder, Some


class IncrementalEncoder:
    """Encodes a text that arrives in pieces, cut anywhere, within a character too.

    Ids are returned as soon as nothing that follows can change them: up to the last word that is certain to end, or
    with codes for words between spaces the last line end. If the pre-tokeniser is a pattern, they all come at the end.

    bpe: codes of bytes. allowed_special, disallowed_special: as for ``BPE.encode``.

    >>> encoder = IncrementalEncoder(BPE(b"#version: 0.3 bytes gpt2\\na n\\nb an\\n"))
    >>> encoder.encode("ban"), encoder.encode("an, an", final=True)
    ([], [257, 256, 44, 32, 256])
    """

    def __init__(self, bpe: BPE, *, allowed_special: Some = (), disallowed_special: Some = "all") -> None:
        self._bpe = bpe
        self._states = bpe.special_states(allowed_special, disallowed_special)
        self._special = [token.encode("utf-8") for token in bpe.special_tokens]
        self._first = True
        self._pending = b""

    def encode(self, text: str | bytes, final: bool = False) -> list[int]:
        """Return the ids that have become certain; final: the text ends here. Raises as ``BPE.encode`` does."""
        self._pending += as_bytes(text)
        end = len(self._pending) if final else self._cut()
        piece, self._pending = self._pending[:end], self._pending[end:]
        first, self._first = self._first, final or (self._first and not piece)
        return self._bpe.ids_in_core.encode(piece, self._states, continued=not first)

    def _cut(self) -> int:
        """Return where the pending text may be cut: not within a special token, nor within what may become one."""
        text = self._pending
        beginning = [
            at
            for token in self._special
            for size in range(1, min(len(token), len(text) + 1))
            if text.endswith(token[:size])
            for at in (len(text) - size,)
        ]
        cut = self._certain(text[: min(beginning, default=len(text))])
        while cut:
            within = [at for token in self._special if (at := self._around(text, token, cut)) >= 0]
            if not within:
                break
            cut = self._certain(text[: min(within)])
        return cut

    def _certain(self, text: bytes) -> int:
        pretokeniser = self._bpe.pretokeniser
        return text.rfind(b"\n") + 1 if pretokeniser is None else pretokeniser.last_certain_cut(text)

    @staticmethod
    def _around(text: bytes, token: bytes, cut: int) -> int:
        """Return where a token that spans the cut begins, or -1."""
        return text.find(token, max(0, cut - len(token) + 1), cut + len(token) - 1)


def decode_stream(
    codes: CodesSource, infile: BinaryIO, outfile: BinaryIO, *, dtype: str | None = None, special_tokens: Some = ()
) -> None:
    """Write the text of ids as they arrive, in UTF-8 with U+FFFD for other bytes, as ``decode --stream`` does.

    infile: the ids as in ``NAME.bin``, of the type ``dtype``; None for the type that ``encode`` uses for the codes.

    Raises MTScaffoldError for an id out of range, and if the ids end within one.
    """
    bpe = BPE(codes, special_tokens=special_tokens)
    width = id_width(bpe.n_vocab) if dtype is None else DTYPES[dtype]
    decoder, pending = IncrementalDecoder(bpe), b""
    reader = Waiting(infile.fileno())
    while data := reader.read(1 << 16):
        pending += data
        whole = len(pending) // width * width
        outfile.write(decoder.decode(memoryview(pending[:whole]).cast("H" if width == 2 else "I").tolist()).encode())
        outfile.flush()
        pending = pending[whole:]
    if pending:
        raise MTScaffoldError(f"the ids end within one: {len(pending)} of {width} bytes; is the input complete?")
    outfile.write(decoder.decode([], final=True).encode())
    outfile.flush()
