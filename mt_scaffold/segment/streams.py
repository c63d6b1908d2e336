"""Ids in pieces → text, with the same result as all at once."""

from __future__ import annotations

from typing import BinaryIO

from mt_scaffold.codes import CodesSource
from mt_scaffold.corpus.files import Waiting
from mt_scaffold.corpus.id_files import DTYPES, id_width
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.segment.apply import BPE
from mt_scaffold.segment.ids import IncrementalDecoder, Some


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
