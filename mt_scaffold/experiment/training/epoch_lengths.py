"""The lengths of all sentences in an epoch with BPE-dropout or sampling, from which its batches are made.

The text is segmented differently in every epoch, so a thread draws the lengths of the next epoch during training.
Every process of a training draws all of them, which is cheaper than communicating them.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise.pairs_as_words import WordsFile
from mt_scaffold.segment.draw import Draw
from mt_scaffold.segment.segmenter import SentenceEncoder

_LINES_AT_ONCE = 1 << 14


def draw_lengths(
    words: WordsFile,
    encoder: SentenceEncoder,
    draw: Draw,
    unknown: int | None = None,
    threads: int = 1,
) -> Iterator[Any]:
    """Yield the lengths of all sentences, ``</s>`` included, in order (int32 arrays).

    unknown: the id of ``<unk>``, if the text must have none; MTScaffoldError is raised if it has one.
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


class DrawnAhead:
    """The lengths of one epoch after the other, those of the next epoch drawn by a thread.

    draw: yields the lengths of both sides in an epoch in parts, source before target (int32).
    """

    def __init__(self, draw: Callable[[int], Iterator[Any]]) -> None:
        self._draw = draw
        self._next: tuple[int, Future[Any], threading.Thread] | None = None
        self._unwanted = threading.Event()
        # Python must not end while the thread is in the core.
        atexit.register(self.close)

    def load(self, epoch: int) -> Any:
        """Return the lengths in ``epoch`` (int32, 2 × sentences, read-only), waiting for them if necessary.

        Raises what ``draw`` raises.
        """
        if self._next is None or self._next[0] != epoch:
            self.draw_ahead(epoch)
        assert self._next is not None
        _, drawn, _ = self._next
        self._next = None
        return drawn.result()

    def draw_ahead(self, epoch: int) -> None:
        """Start drawing ``epoch``, in place of any other that is being drawn."""
        self.close()
        self._unwanted, drawn = threading.Event(), Future[Any]()
        thread = threading.Thread(
            target=self._run, args=(epoch, drawn, self._unwanted), name=f"lengths of epoch {epoch}", daemon=True
        )
        self._next = epoch, drawn, thread
        thread.start()

    def close(self) -> None:
        """Stop drawing."""
        self._unwanted.set()
        if self._next is not None:
            self._next[2].join()
            self._next = None

    def _run(self, epoch: int, drawn: Future[Any], unwanted: threading.Event) -> None:
        try:
            parts = []
            for part in self._draw(epoch):
                if unwanted.is_set():
                    raise CancelledError
                parts.append(part)
            lengths = np.concatenate(parts).reshape(2, -1)
            lengths.flags.writeable = False
            drawn.set_result(lengths)
        # load raises it.
        except BaseException as error:
            drawn.set_exception(error)
