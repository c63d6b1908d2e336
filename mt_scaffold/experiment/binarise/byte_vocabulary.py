"""Byte codes → the symbols of fairseq's dictionary, and text → their ids."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_scaffold.corpus.files import PathLike, shown
from mt_scaffold.corpus.text import bytes_to_notation
from mt_scaffold.corpus.vocabulary_file import SPECIAL_SYMBOLS
from mt_scaffold.experiment.binarise.dictionary import END_ID, dictionary_text
from mt_scaffold.segment.apply import BPE
from mt_scaffold.segment.numbering import refuse_imported

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Ids = NDArray[numpy.uint32]
    Offsets = NDArray[numpy.int64]

# fairseq's own symbols come first.
FIRST_ID = len(SPECIAL_SYMBOLS)


def digest_of(tokens: Iterable[bytes]) -> str:
    """Return the SHA-256 digest of all tokens in order: two vocabularies with the same one have the same ids."""
    digest = hashlib.sha256()
    for token in tokens:
        digest.update(len(token).to_bytes(8, "little") + token)
    return digest.hexdigest()


class Vocabulary:
    """The tokens of byte codes, with their ids in fairseq: those of ``BPE.encode``, plus 4.

    tokens: the bytes of each token, by its id in ``BPE``. Raises MTScaffoldError if the codes are malformed or
    have no ids.
    """

    def __init__(self, codes: PathLike) -> None:
        self.codes = Path(codes)
        self._bpe = BPE(codes)
        refuse_imported(self._bpe.numbering, shown(codes), "a fairseq dictionary")
        self.tokens: list[bytes] = self._bpe.tokens

    @property
    def digest(self) -> str:
        """The digest of the tokens (``digest_of``)."""
        return digest_of(self.tokens)

    def symbols(self, padding_factor: int) -> int:
        """Return the size of fairseq's dictionary, padded to a multiple of ``padding_factor``."""
        used = FIRST_ID + len(self.tokens)
        return used + -used % padding_factor

    def dictionary(self, counts: Sequence[int], padding_factor: int) -> str:
        """Return the text of ``dict.txt``: each token in GPT-2's notation of bytes, with its count, then padding.

        counts: by fairseq's id.
        """
        fillers = self.symbols(padding_factor) - FIRST_ID - len(self.tokens)
        names = [bytes_to_notation(token) for token in self.tokens] + [
            f"madeupword{number:04d}" for number in range(fillers)
        ]
        return dictionary_text(zip(names, counts[FIRST_ID:], strict=True))

    def token_bytes(self, symbols: int) -> Any:
        """Return the bytes of text in each of ``symbols`` ids (int64); 0 for fairseq's own symbols and padding."""
        import numpy

        found = numpy.zeros(symbols, numpy.int64)
        found[FIRST_ID : FIRST_ID + len(self.tokens)] = [len(token) for token in self.tokens]
        return found

    def encode(
        self,
        documents: Sequence[bytes],
        *,
        num_workers: int | None = None,
    ) -> tuple[Ids, Offsets]:
        """Return fairseq's ids of all documents in one array, each ending in ``</s>``, and their offsets in it.

        The offsets are one more than the documents.
        """
        import numpy

        ids, offsets = self._bpe.encode_batch(documents, num_workers=num_workers)
        ends = offsets[1:] + numpy.arange(len(documents))
        joined = numpy.full(len(ids) + len(documents), END_ID, numpy.uint32)
        inside = numpy.ones(len(joined), bool)
        inside[ends] = False
        joined[inside] = ids + FIRST_ID
        return joined, numpy.concatenate([[0], ends + 1]).astype(numpy.int64)

    def decode(self, ids: Sequence[int]) -> bytes:
        """Return the text of fairseq's ids, skipping its own symbols and padding."""
        last = FIRST_ID + len(self.tokens)
        return self._bpe.decode_bytes([int(number) - FIRST_ID for number in ids if FIRST_ID <= number < last])
