"""The bytes of text in a sentence, and the loss per byte, which does not depend on the segmentation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from fairseq import metrics
from fairseq.criterions.adaptive_loss import AdaptiveLoss
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset

from mt_scaffold.corpus.symbols import read_symbol
from mt_scaffold.corpus.text import SEPARATOR

from .segmented_pairs import SegmentedText

_IDS_AT_ONCE = 1 << 24
# Keys in a batch, and in the log that a criterion returns for it.
_BYTES, _LOSS = "text_bytes", "text_loss"


def sentence_bytes(
    text: Any,
    dictionary: Dictionary,
    total: int | None = None,
    separator: str = SEPARATOR,
    word_start: str | None = None,
) -> Any:
    """Return the UTF-8 bytes of each sentence's words, with one space between them and one line end (array).

    text: one side of a data set, as words or as ids of ``dictionary``. For words, these are the stored bytes. For ids,
    they are the bytes of the subwords without ``separator``, plus one for each end of a word; or without
    ``word_start`` (``Binarised``), plus one for each of those. ``<unk>`` has none. If ``total`` is known, the rest is
    spread evenly over the sentences, so that the sum is exact.
    """
    if isinstance(text, SegmentedText):
        return np.diff(np.load(f"{text.path}.npy", mmap_mode="r", allow_pickle=False)).astype(np.int32)
    symbols = np.array(
        [_symbol_bytes(dictionary, number, separator, word_start) for number in range(len(dictionary))], np.int64
    )
    if isinstance(text, MMapIndexedDataset):
        found = _stored_bytes(text, symbols)
    else:
        found = np.array([symbols[text[number].numpy()].sum() for number in range(len(text))], np.int64)
    if total is not None:
        found += np.diff(np.arange(len(found) + 1) * (total - int(found.sum())) // len(found))
    return found


def _symbol_bytes(dictionary: Dictionary, number: int, separator: str, word_start: str | None) -> int:
    if number < dictionary.nspecial:
        return 0
    symbol = dictionary[number]
    if word_start is not None:
        return len(symbol.replace(word_start, " ").encode())
    text, inside = read_symbol(symbol, separator)
    return len(text.encode()) + (not inside)


def _stored_bytes(text: MMapIndexedDataset, symbols: Any) -> Any:
    """Return the bytes of all sentences of a memory-mapped file, which holds their ids one after the other."""
    ids = np.frombuffer(text._bin_buffer, dtype=text._index.dtype)
    ends = np.cumsum(text.sizes, dtype=np.int64)
    bytes_before = np.zeros(len(ends) + 1, np.int64)
    begin = first = 0
    while first < len(ends):
        # As many whole sentences as have at most that many ids together, and at least one.
        last = max(first + 1, int(np.searchsorted(ends, begin + _IDS_AT_ONCE, side="right")))
        sums = np.cumsum(symbols[ids[begin : ends[last - 1]]])
        # Every sentence has at least its </s>.
        bytes_before[first + 1 : last + 1] = bytes_before[first] + sums[ends[first:last] - begin - 1]
        begin, first = int(ends[last - 1]), last
    return np.diff(bytes_before)


class BatchWithBytes:
    """fairseq's collater, adding the bytes of a batch's target text; it runs in the data-loading workers."""

    def __init__(self, collater: Callable[[Sequence[Mapping[str, Any]]], dict[str, Any]], target_bytes: Any) -> None:
        self._collater = collater
        self._target_bytes = target_bytes.astype(np.int32, copy=False)

    def __call__(self, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the batch of ``samples``; an empty one stays empty."""
        batch = self._collater(samples)
        if batch:
            batch[_BYTES] = int(self._target_bytes[[int(sample["id"]) for sample in samples]].sum())
        return batch


def note_loss(sample: Mapping[str, Any], logged: dict[str, Any], criterion: Any) -> None:
    """Add to a criterion's log of a batch the loss without label smoothing, and the bytes of the target."""
    own = isinstance(criterion, CrossEntropyCriterion | AdaptiveLoss)
    loss = logged.get("loss") if own else logged.get("nll_loss")
    if loss is not None and _BYTES in sample:
        logged[_LOSS], logged[_BYTES] = loss, sample[_BYTES]


def log_loss_per_byte(logged: Sequence[Mapping[str, Any]]) -> None:
    """Log ``bits_per_byte``: the loss in bits over all batches, divided by the bytes of their target text.

    It can compare models with different vocabularies: the probability of a segmentation is at most that of the text.
    """
    text_bytes = sum(entry.get(_BYTES, 0) for entry in logged)
    if text_bytes > 0:
        metrics.log_scalar(f"_{_LOSS}", sum(entry.get(_LOSS, 0) for entry in logged))
        metrics.log_scalar(f"_{_BYTES}", text_bytes)
        metrics.log_derived("bits_per_byte", _bits_per_byte)


def _bits_per_byte(meters: Mapping[str, Any]) -> float:
    return round(float(meters[f"_{_LOSS}"].sum) / math.log(2) / float(meters[f"_{_BYTES}"].sum), 5)
