"""Documents → counts and ids inside other libraries' workers, which rebuild the encoder from its arguments."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mt_scaffold.cached import cached_property
from mt_scaffold.codes import CodesSource
from mt_scaffold.corpus.count import write_counts
from mt_scaffold.corpus.id_files import id_width
from mt_scaffold.options import check_choice, worker_count
from mt_scaffold.segment.apply import BPE
from mt_scaffold.segment.encode import IN_TEXT, bpe_of, states_in_text
from mt_scaffold.segment.ids import check_special_tokens

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


@dataclass(frozen=True)
class WordCounting:
    """The options of ``write_counts`` for counting documents. num_workers: threads of each worker."""

    pretokenise: str = "spaces"
    split_digits: bool = False
    byte_level: bool = False
    max_memory: int | str | None = None
    num_workers: int = 1

    def counts(self, documents: Iterable[str]) -> bytes:
        """Return the count file of some documents; ``merge_counts`` of them all is the corpus's, byte for byte."""
        stream = io.BytesIO()
        write_counts(stream, documents=documents, **vars(self))
        return stream.getvalue()


@dataclass(frozen=True)
class DocumentEncoder:
    """Codes with the options of ``encode_documents``, for turning documents into ids.

    codes: a path that every worker can read, or the codes themselves. num_workers: threads of each worker.
    """

    codes: CodesSource
    merges: int = -1
    special_tokens: Sequence[str] = ()
    append: str | None = None
    in_text: str = "refuse"
    num_workers: int = 1

    def __post_init__(self) -> None:
        check_choice("treatment of special tokens", self.in_text, IN_TEXT)
        check_special_tokens(self.special_tokens)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "bpe"}

    @cached_property
    def bpe(self) -> BPE:
        """The codes, which each encoding process reads for itself."""
        return bpe_of(self.codes, self.merges, self.special_tokens, self.append)

    @property
    def width(self) -> int:
        """The bytes per id: 2 for up to 65,536 ids, otherwise 4."""
        return id_width(self.bpe.n_vocab)

    def encode(
        self, documents: Sequence[str]
    ) -> tuple[NDArray[numpy.uint16] | NDArray[numpy.uint32], NDArray[numpy.int64]]:
        """Return the ids of all documents, each with ``append`` at its end, and the offset of each document.

        The ids are of the type that ``encode_documents`` writes; the offsets (int64) end with the number of ids, so
        there is one more of them than documents. Raises as ``BPE.encode`` does.
        """
        import numpy

        ids, offsets = self.bpe.ids_in_core.encode_batch(
            documents,
            states_in_text(self.bpe, self.in_text),
            workers=worker_count(self.num_workers),
            width=self.width,
            append=-1 if self.append is None else self.bpe.special_tokens[self.append],
        )
        return numpy.frombuffer(ids, f"<u{self.width}"), numpy.frombuffer(offsets, numpy.int64)
