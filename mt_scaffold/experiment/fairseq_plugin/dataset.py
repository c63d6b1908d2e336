"""Parallel text that is segmented as it is read, into different subwords in every epoch.

The subwords of a sentence depend on (seed, epoch, side, sentence number) and on nothing else: not on the process that
requests them, nor on earlier requests.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, LanguagePairDataset, data_utils

from mt_scaffold.apply import Encoder
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise_words import WordsFile

SOURCE, TARGET = 0, 1
_LINES_AT_ONCE = 1 << 14


def side_seed(seed: int, side: int) -> int:
    """Return the random seed of one side, so that a word on both sides is not segmented alike."""
    return 2 * seed + side


class SegmentedText:
    """One side of the text: the ids of its sentences in the current epoch, each ending in ``</s>``.

    ``sizes`` (int32, one per sentence) holds their lengths in this epoch, from which batches are formed. ``longest``
    truncates sentences to that many ids. ``buckets`` pads them to one of at most that many lengths. ``complete``:
    a subword without an id is an error.
    """

    def __init__(
        self,
        words: WordsFile,
        encoder: Encoder,
        dictionary: Dictionary,
        *,
        dropout: float = 0.0,
        seed: int = 0,
        longest: int | None = None,
        buckets: int = 0,
        left_pad: bool = False,
        complete: bool = False,
        threads: int = 1,
        epoch: int = 1,
    ) -> None:
        self._words = words
        self._encoder = encoder
        self._dictionary = dictionary
        self._dropout = dropout
        self._seed = seed
        self._longest = longest
        self._buckets = buckets
        self._left_pad = left_pad
        self._complete = complete
        self._threads = threads
        self._epoch = epoch
        self.sizes = self._draw_sizes()

    @property
    def path(self) -> str:
        """The file of the text."""
        return self._words.path

    def __len__(self) -> int:
        return len(self._words)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.get([index])[0]

    def set_epoch(self, epoch: int) -> None:
        """Segment for ``epoch`` from now on."""
        if epoch != self._epoch and self._dropout > 0:
            self._epoch = epoch
            self.sizes = self._draw_sizes()
        self._epoch = epoch

    def get(self, indices: Sequence[int]) -> list[torch.Tensor]:
        """Return the ids of several sentences (int64, one-dimensional), segmented in one call."""
        ids, offsets = self._encode(indices)
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

    def _encode(self, indices: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        lines = self._words.lines(indices)
        ids, offsets = self._encoder.encode(lines, self._dropout, self._seed, self._epoch, list(indices))
        return np.asarray(ids), np.asarray(offsets)

    def _draw_sizes(self) -> np.ndarray:
        """Segment the whole text once and return the lengths of its sentences."""

        def chunk_sizes(begin: int) -> np.ndarray:
            ids, offsets = self._encode(range(begin, min(begin + _LINES_AT_ONCE, len(self))))
            if self._complete and (unknown := np.flatnonzero(ids == self._dictionary.unk())).size:
                line = begin + int(np.searchsorted(offsets, unknown[0], side="right"))
                raise MTScaffoldError(
                    f"{self._words.path}: line {line}: a subword that is not in the dictionary; "
                    "rebuild the folder with mt-scaffold binarise-words"
                )
            return np.diff(offsets).astype(np.int32) + 1

        begins = range(0, len(self), _LINES_AT_ONCE)
        if self._threads > 1 and len(begins) > 1:
            # The core releases the GIL while it segments.
            with ThreadPoolExecutor(self._threads) as pool:
                sizes = np.concatenate(list(pool.map(chunk_sizes, begins)))
        else:
            sizes = np.concatenate([chunk_sizes(begin) for begin in begins])
        if self._longest is not None:
            sizes = np.minimum(sizes, self._longest)
        if self._buckets:
            steps = np.percentile(sizes, np.linspace(0, 100, self._buckets + 1), method="lower")
            lengths = np.unique(steps[1:]).astype(sizes.dtype)
            sizes = lengths[np.searchsorted(lengths, sizes)]
        return sizes

    def _pad(self, sentence: torch.Tensor, size: int) -> torch.Tensor:
        missing = int(size) - len(sentence)
        padding = (missing, 0) if self._left_pad else (0, missing)
        return torch.nn.functional.pad(sentence, padding, value=self._dictionary.pad())


def _cut(sentence: torch.Tensor, longest: int) -> torch.Tensor:
    """Truncate a sentence, keeping its ``</s>``."""
    return sentence if len(sentence) <= longest else torch.cat([sentence[: longest - 1], sentence[-1:]])


class SegmentedPairs(LanguagePairDataset):
    """Sentence pairs, segmented by the worker that makes the batch.

    ``seed`` alone decides in which order pairs of equal length go into batches, in every epoch, as in an uninterrupted
    training of the standard task: without dropout the batches are identical.
    """

    def __init__(
        self,
        source: SegmentedText,
        source_dictionary: Dictionary,
        target: SegmentedText | None,
        target_dictionary: Dictionary,
        *,
        seed: int,
        fresh_every_epoch: bool,
        buckets: int = 0,
        **options: Any,
    ) -> None:
        target_sizes = None if target is None else target.sizes
        super().__init__(source, source.sizes, source_dictionary, target, target_sizes, target_dictionary, **options)
        self._seed = seed
        self._fresh_every_epoch = fresh_every_epoch
        self._buckets = buckets
        self._take_sizes()

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        """Whether fairseq may keep the batches of the first epoch."""
        return not self._fresh_every_epoch

    def set_epoch(self, epoch: int) -> None:
        """Segment for ``epoch``: the lengths now, the sentences when they are requested."""
        self.src.set_epoch(epoch)
        if self.tgt is not None:
            self.tgt.set_epoch(epoch)
        self._take_sizes()

    def _take_sizes(self) -> None:
        self.src_sizes = self.sizes = self.src.sizes
        if self.tgt is not None:
            self.tgt_sizes = self.tgt.sizes
            self.sizes = np.stack((self.src_sizes, self.tgt_sizes), axis=1)
        if self._buckets:
            self.bucketed_num_tokens = self.num_tokens_vec(np.arange(len(self)))
            self.buckets = [(None, int(length)) for length in np.unique(self.bucketed_num_tokens)]

    def ordered_indices(self) -> Any:
        """Return all sentence numbers, shuffled with the seed, then sorted by their lengths in this epoch."""
        if not self._fresh_every_epoch:
            return super().ordered_indices()
        with data_utils.numpy_seed(self._seed + 1):
            return super().ordered_indices()

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """Return a batch, each side in one call of the core; PyTorch's data loader prefers this to __getitem__."""
        numbers = [int(index) for index in indices]
        # Where batches do not divide evenly among the processes, some get an empty one at the end.
        if not numbers:
            return []
        sources = self.src.get(numbers)
        targets = [None] * len(numbers) if self.tgt is None else self.tgt.get(numbers)
        return [
            {"id": number, "source": source, "target": target}
            for number, source, target in zip(numbers, sources, targets, strict=True)
        ]
