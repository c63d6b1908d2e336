"""Parallel text that is segmented as it is read, into different subwords in every epoch.

The subwords of a sentence depend only on (seed, epoch, side, sentence number), not on the process that requests them or
on earlier requests.
"""

import itertools
import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, LanguagePairDataset, data_utils

from mt_scaffold.experiment.binarise.pairs_as_words import WordsFile
from mt_scaffold.experiment.training.epoch_lengths import DrawnAhead, draw_lengths
from mt_scaffold.segment.draw import NO_DRAW, Draw
from mt_scaffold.segment.segmenter import SentenceEncoder

logger = logging.getLogger(__name__)
SOURCE, TARGET = 0, 1


def side_seed(seed: int, side: int) -> int:
    """Return the random seed of one side; with two seeds, a word on both sides is segmented independently."""
    return 2 * seed + side


class SegmentedText:
    """One side of the text: the ids of its sentences in an epoch (``set_epoch``), each ending in ``</s>``.

    ``sizes`` (int32, one per sentence) holds their lengths in this epoch, from which batches are formed. ``longest``
    truncates sentences to that many ids. ``buckets`` pads them to one of at most that many lengths. ``complete``: treat
    a subword without an id as an error.
    """

    sizes: Any
    _epoch: int

    def __init__(
        self,
        words: WordsFile,
        encoder: SentenceEncoder,
        dictionary: Dictionary,
        *,
        draw: Draw = NO_DRAW,
        longest: int | None = None,
        buckets: int = 0,
        left_pad: bool = False,
        complete: bool = False,
        threads: int = 1,
    ) -> None:
        self._words = words
        self._encoder = encoder
        self._dictionary = dictionary
        self._draw = draw
        self._longest = longest
        self._buckets = buckets
        self._left_pad = left_pad
        self._unknown = dictionary.unk() if complete else None
        self._threads = threads

    @property
    def path(self) -> str:
        """The file of the text."""
        return self._words.path

    @property
    def resampled(self) -> bool:
        """Whether its sentences are segmented differently in every epoch."""
        return bool(self._draw)

    def __len__(self) -> int:
        return len(self._words)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.get([index])[0]

    def draw_lengths(self, epoch: int) -> Iterator[Any]:
        """Yield the lengths of all sentences in ``epoch`` in parts (int32), neither truncated nor padded."""
        text, encoder, unknown = self._words, self._encoder, self._unknown
        return draw_lengths(text, encoder, self._draw.at(epoch), unknown, self._threads)

    def set_epoch(self, epoch: int, lengths: Any) -> None:
        """Segment for ``epoch`` from now on; ``lengths``: those of ``draw_lengths`` for it, as one array."""
        self._epoch = epoch
        if self._longest is not None:
            lengths = np.minimum(lengths, self._longest)
        if self._buckets:
            steps = np.percentile(lengths, np.linspace(0, 100, self._buckets + 1), method="lower")
            sizes = np.unique(steps[1:]).astype(lengths.dtype)
            lengths = sizes[np.searchsorted(sizes, lengths)]
        self.sizes = lengths

    def get(self, indices: Sequence[int]) -> list[torch.Tensor]:
        """Return the ids of several sentences (int64, one-dimensional), segmented in one call."""
        lines = self._words.lines(indices)
        # The core releases the GIL while it segments.
        encoded = self._encoder.ids_of(lines, self._draw.at(self._epoch), list(indices))
        ids, offsets = map(np.asarray, encoded)
        ends = offsets[1:] + np.arange(1, len(offsets))
        joined = np.full(ends[-1], self._dictionary.eos(), np.int64)
        joined[np.arange(len(ids)) + np.repeat(np.arange(len(indices)), np.diff(offsets))] = ids
        sentences = list(torch.from_numpy(joined).split(np.diff(ends, prepend=0).tolist()))
        if self._longest is not None:
            sentences = [_cut(sentence, self._longest) for sentence in sentences]
        if self._buckets:
            sentences = [
                self._pad(sentence, size) for sentence, size in zip(sentences, self.sizes[indices], strict=True)
            ]
        return sentences

    def _pad(self, sentence: torch.Tensor, size: int) -> torch.Tensor:
        missing = int(size) - len(sentence)
        padding = (missing, 0) if self._left_pad else (0, missing)
        return torch.nn.functional.pad(sentence, padding, value=self._dictionary.pad())


def _cut(sentence: torch.Tensor, longest: int) -> torch.Tensor:
    """Truncate a sentence, keeping its ``</s>``."""
    return sentence if len(sentence) <= longest else torch.cat([sentence[: longest - 1], sentence[-1:]])


class SegmentedPairs(LanguagePairDataset):
    """Sentence pairs, segmented by the worker that makes the batch.

    The order in which pairs of equal length go into batches depends only on ``seed``, in every epoch, as in an
    uninterrupted training of the standard task: without dropout the batches are identical. ``lengths``: those of the
    training set in every epoch up to ``last_epoch`` (0: no last epoch).
    """

    def __init__(
        self,
        source: SegmentedText,
        source_dictionary: Dictionary,
        target: SegmentedText,
        target_dictionary: Dictionary,
        *,
        seed: int,
        epoch: int,
        lengths: DrawnAhead | None = None,
        last_epoch: int = 0,
        buckets: int = 0,
        **options: Any,
    ) -> None:
        self.src, self.tgt = source, target
        self._seed = seed
        self._lengths = lengths
        self._last_epoch = last_epoch
        self._bucketed = bool(buckets)
        self._load(epoch)
        super().__init__(source, source.sizes, source_dictionary, target, target.sizes, target_dictionary, **options)
        self._set_sizes()

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        """Whether fairseq may keep the batches of the first epoch."""
        return self._lengths is None

    def set_epoch(self, epoch: int) -> None:
        """Switch to ``epoch``: load the lengths now, and segment the sentences when they are requested."""
        if epoch != self._epoch:
            self._load(epoch)
            self._set_sizes()

    def _load(self, epoch: int) -> None:
        """Wait for the lengths in ``epoch``, and start drawing those of the next."""
        start = time.perf_counter()
        resampled = self.src.resampled or self.tgt.resampled
        if self._lengths is not None and (resampled or not hasattr(self, "_drawn")):
            self._drawn = self._lengths.load(epoch)
        elif not hasattr(self, "_drawn"):
            sides = itertools.chain(self.src.draw_lengths(epoch), self.tgt.draw_lengths(epoch))
            self._drawn = np.concatenate(list(sides)).reshape(2, -1)
        self._epoch = epoch
        rows = tuple(self._drawn)
        for text, row in zip((self.src, self.tgt), rows, strict=True):
            text.set_epoch(epoch, row)
        # Lengths are copied only if they are truncated or padded.
        same = self.src.sizes is rows[SOURCE] and self.tgt.sizes is rows[TARGET]
        self._both = self._drawn.T if same else np.stack((self.src.sizes, self.tgt.sizes), axis=1)
        if self._lengths is not None:
            logger.info(f"epoch {epoch}: waited {time.perf_counter() - start:.2f} s for its lengths")
            if resampled and epoch != self._last_epoch:
                self._lengths.draw_ahead(epoch + 1)

    def _set_sizes(self) -> None:
        self.src_sizes, self.tgt_sizes, self.sizes = self.src.sizes, self.tgt.sizes, self._both
        if self._bucketed:
            self.bucketed_num_tokens = self.num_tokens_vec(np.arange(len(self)))
            self.buckets = [(None, int(length)) for length in np.unique(self.bucketed_num_tokens)]

    def ordered_indices(self) -> Any:
        """Return all sentence numbers, shuffled with the seed, then sorted by their lengths in this epoch."""
        sizes = self.src_sizes, self.tgt_sizes
        try:
            if max(each.max() for each in sizes) <= np.iinfo(np.uint16).max:
                # NumPy's radix sort of 16-bit numbers gives the same order in a fraction of the time.
                self.src_sizes, self.tgt_sizes = (each.astype(np.uint16) for each in sizes)
            with data_utils.numpy_seed(None if self._lengths is None else self._seed + 1):
                return super().ordered_indices()
        finally:
            self.src_sizes, self.tgt_sizes = sizes

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """Return a batch, each side in one call of the core; PyTorch's data loader prefers this to __getitem__."""
        numbers = [int(index) for index in indices]
        # If batches do not divide evenly among the processes, some get an empty one at the end.
        if not numbers:
            return []
        sources, targets = self.src.get(numbers), self.tgt.get(numbers)
        return [
            {"id": number, "source": source, "target": target}
            for number, source, target in zip(numbers, sources, targets, strict=True)
        ]
