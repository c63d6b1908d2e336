"""The lengths of all sentences in an epoch with BPE-dropout or uniform sampling, from which its batches are made."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise.dictionary import UNKNOWN_ID, read_ids
from mt_scaffold.experiment.binarise.pairs_as_words import WordsFile
from mt_scaffold.experiment.binarise.segmentation import Segmentation
from mt_scaffold.experiment.runtime.results import to_json
from mt_scaffold.manifest import raw_digest
from mt_scaffold.segment.draw import Draw
from mt_scaffold.segment.segmenter import SentenceEncoder

_LINES_AT_ONCE = 1 << 14
# Fewer pairs take less time to draw than a process to start.
SMALL_PAIRS = _LINES_AT_ONCE
_BYTES_OF_PAIR = 8


def draw_lengths(
    words: WordsFile,
    encoder: SentenceEncoder,
    draw: Draw,
    unknown: int | None = None,
    threads: int = 1,
) -> Iterator[Any]:
    """Yield the lengths of all sentences, ``</s>`` included, in order (int32 arrays).

    unknown: the id of a subword without an id, where there must be none. Raises MTScaffoldError where there is one.
    """

    def lengths_from(begin: int) -> Any:
        numbers = range(begin, min(begin + _LINES_AT_ONCE, len(words)))
        lines = words.lines(numbers)
        ids, offsets = map(np.asarray, encoder.ids_of(lines, draw, numbers))
        if unknown is not None and (found := np.flatnonzero(ids == unknown)).size:
            line = begin + int(np.searchsorted(offsets, found[0], side="right"))
            raise MTScaffoldError(
                f"{words.path}: line {line}: a subword that is not in the dictionary; "
                "rebuild the folder with mt-scaffold binarise-words"
            )
        return np.diff(offsets).astype(np.int32) + 1

    begins = range(0, len(words), _LINES_AT_ONCE)
    if threads == 1 or len(begins) == 1:
        yield from map(lengths_from, begins)
    else:
        # The core releases the GIL while it segments.
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(lengths_from, begins)


@dataclass(frozen=True)
class LengthsSample:
    """Everything that the lengths of both sides in one epoch depend on (``EpochSample``), source before target.

    words: the files of binarise-words. dictionaries: those in which every subword must be; None to allow unknown ones.
    threads: how many draw at the same time.
    """

    segmentation: Segmentation
    words: tuple[str, str]
    dictionaries: tuple[str, str] | None
    draws: tuple[Draw, Draw]
    threads: int = 1

    @property
    def pairs(self) -> int:
        """The number of sentence pairs."""
        return len(WordsFile(self.words[0]))

    @property
    def digest(self) -> str:
        """A name for the lengths, another one if the text or the codes have changed under the same name."""
        texts = [os.stat(path) for path in self.words]
        versions = [(text.st_ino, text.st_size, text.st_mtime_ns) for text in texts]
        codes = [raw_digest(path) for path in (*self.segmentation.codes, *(self.segmentation.vocabularies or ()))]
        return hashlib.sha256(f"{to_json(self)} {versions} {codes}".encode()).hexdigest()[:32]

    @property
    def is_small(self) -> bool:
        """Whether drawing takes less time than to start a process."""
        return self.pairs <= SMALL_PAIRS

    @property
    def size(self) -> int:
        """The bytes of all lengths in an epoch."""
        return _BYTES_OF_PAIR * self.pairs

    def write(self, stream: IO[bytes], wanted: Callable[[], bool] = lambda: True) -> bool:
        """Write all lengths of the source, then of the target (int32); False where ``wanted`` was False before."""
        for side, bpe in enumerate(self.segmentation.segmenters()):
            words = WordsFile(self.words[side])
            ids = read_ids(self.dictionaries[side]) if self.dictionaries else {}
            unknown = UNKNOWN_ID if self.dictionaries else None
            encoder = bpe.encoder(ids, UNKNOWN_ID)
            for lengths in draw_lengths(words, encoder, self.draws[side], unknown, self.threads):
                if not wanted():
                    return False
                stream.write(lengths.tobytes())
        return True

    def read(self, path: Path) -> Any:
        """Return the lengths in a file (int32, 2 × sentences, read-only)."""
        return np.asarray(np.memmap(path, np.int32, "r")).reshape(2, -1)
