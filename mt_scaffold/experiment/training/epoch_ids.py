"""The ids of all documents in an epoch with BPE-dropout, from a training split that is kept as text.

The ids of a document depend on (seed, epoch, document number) and on nothing else: not on the process that segments it,
the number of threads, or the epoch that a training resumes in.
"""

from __future__ import annotations

import hashlib
import itertools
import mmap
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from mt_scaffold.corpus.files import explain_os_error
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise.byte_vocabulary import Vocabulary
from mt_scaffold.experiment.binarise.data_folder import codes_of, id_type, text_offsets
from mt_scaffold.experiment.runtime.results import to_json
from mt_scaffold.manifest import raw_digest

_BYTES_AT_ONCE = 1 << 23
# Less text takes less time to segment than a process to start.
SMALL_BYTES = 1 << 20


class EpochIds(NamedTuple):
    """The ids of an epoch in one array, and where each document begins in it (int64, one more than documents)."""

    ids: Any
    offsets: Any


class StoredText:
    """The documents of a split that is kept as text, memory-mapped: nothing is read before it is needed."""

    def __init__(self, folder: Path, split: str) -> None:
        self.path = folder / f"{split}.text"
        self.offsets = text_offsets(folder, split)
        try:
            with open(self.path, "rb") as stream:
                self._text = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise explain_os_error(error, self.path) from error
        except ValueError:
            raise self._damaged() from None
        if len(self._text) != self.offsets[-1]:
            raise self._damaged()

    def _damaged(self) -> MTScaffoldError:
        return MTScaffoldError(f"{self.path}: not as binarise-documents wrote it; run mt-scaffold binarise-documents")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def blocks(self) -> Iterator[tuple[range, list[bytes]]]:
        """Yield the documents with their numbers, some megabytes at a time."""
        begin = 0
        while begin < len(self):
            end = int(np.searchsorted(self.offsets, self.offsets[begin] + _BYTES_AT_ONCE, side="right")) - 1
            end = min(max(end, begin + 1), len(self))
            places = self.offsets[begin : end + 1].tolist()
            yield range(begin, end), [self._text[at:to] for at, to in itertools.pairwise(places)]
            begin = end


@dataclass(frozen=True)
class IdsSample:
    """Everything that the ids of one epoch depend on (``EpochSample``).

    folder: of ``binarise_documents``, with the text of ``split``. symbols: of the dictionary. threads: that segment.
    """

    folder: str
    split: str
    dropout: float
    seed: int
    epoch: int
    symbols: int
    threads: int = 1

    @property
    def _text(self) -> StoredText:
        return StoredText(Path(self.folder), self.split)

    @property
    def is_small(self) -> bool:
        """Whether segmenting takes less time than to start a process."""
        return bool(self._text.offsets[-1] <= SMALL_BYTES)

    @property
    def size(self) -> int:
        """The bytes of the file of an epoch, at most."""
        text = self._text
        width = np.dtype(id_type(self.symbols)).itemsize
        # Of a token per byte, and </s>.
        return (int(text.offsets[-1]) + len(text)) * width + 8 * len(text)

    @property
    def digest(self) -> str:
        """A name for the ids, another one if the text or the codes have changed under the same name."""
        text = os.stat(self._text.path)
        versions = (text.st_ino, text.st_size, text.st_mtime_ns, raw_digest(codes_of(self.folder)))
        return hashlib.sha256(f"{to_json(self)} {versions}".encode()).hexdigest()[:32]

    def _blocks(self) -> Iterator[tuple[Any, Any]]:
        """Yield the ids of some documents at a time, and how many each has."""
        vocabulary = Vocabulary(codes_of(self.folder))
        kind = id_type(self.symbols)
        for numbers, documents in self._text.blocks():
            ids, offsets = vocabulary.encode(
                documents,
                dropout=self.dropout,
                seed=self.seed,
                epoch=self.epoch,
                indices=numbers,
                num_workers=self.threads,
            )
            yield ids.astype(kind), np.diff(offsets)

    def write(self, stream: IO[bytes], wanted: Callable[[], bool] = lambda: True) -> bool:
        """Write all ids, then how many each document has (int64); False where ``wanted`` was False before."""
        sizes = []
        for ids, each in self._blocks():
            if not wanted():
                return False
            stream.write(ids.tobytes())
            sizes.append(each)
        stream.write(np.concatenate(sizes).astype("<i8").tobytes())
        return True

    def read(self, path: Path) -> EpochIds:
        """Map what ``write`` has written."""
        documents = len(self._text)
        begin = os.path.getsize(path) - 8 * documents
        with open(path, "rb") as stream:
            stream.seek(begin)
            sizes = np.frombuffer(stream.read(), "<i8")
        kind = np.dtype(id_type(self.symbols))
        return EpochIds(np.memmap(path, kind, "r", shape=(begin // kind.itemsize,)), _offsets(sizes))

    def here(self) -> EpochIds:
        """Segment in this process, and return the same."""
        parts = list(self._blocks())
        return EpochIds(
            np.concatenate([ids for ids, _ in parts]), _offsets(np.concatenate([each for _, each in parts]))
        )


def _offsets(sizes: Any) -> Any:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
