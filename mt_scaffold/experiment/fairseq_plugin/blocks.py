"""Blocks of a language model's training text, and the bytes of raw text that each stands for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from fairseq.data import TokenBlockDataset

_IDS_AT_ONCE = 1 << 24


def block_bytes(blocks: TokenBlockDataset, ids: Any, offsets: Any, texts: Any, token_bytes: Any) -> Any:
    """Return the bytes of raw documents that each block stands for (int64).

    ids: of all documents in one array, which the blocks divide. offsets: where each document begins in it. texts: where
    each raw document begins among the bytes of all. token_bytes: by id. What the tokens of a document lack of its
    bytes, as the spaces do that codes with ``</w>`` imply, is counted with its ``</s>``.
    """
    slices = blocks.slice_indices.astype(np.int64)
    begins, ends, before = _bytes_before([slices[:, 0], slices[:, 1], offsets], ids, token_bytes)
    found = ends - begins
    # No token stands for more than its text.
    if found.sum() == texts[-1] - texts[0]:
        return found
    missing = np.diff(texts) - np.diff(before)
    added = np.concatenate([[0], np.cumsum(missing)])
    first, last = (np.searchsorted(offsets[1:], slices[:, side], side="right") for side in (0, 1))
    return found + added[last] - added[first]


def _bytes_before(positions: Sequence[Any], ids: Any, token_bytes: Any) -> list[Any]:
    """Return the bytes of the tokens before each position, for several arrays of ascending positions, in one pass."""
    found = [np.zeros(len(array), np.int64) for array in positions]
    firsts = [0] * len(positions)
    total = 0
    for begin in range(0, len(ids), _IDS_AT_ONCE):
        sums = np.cumsum(token_bytes[ids[begin : begin + _IDS_AT_ONCE]])
        for number, array in enumerate(positions):
            first, last = firsts[number], int(np.searchsorted(array, begin + len(sums), side="right"))
            inside = array[first:last] - begin
            found[number][first:last] = total + np.where(inside > 0, sums[np.maximum(inside, 1) - 1], 0)
            firsts[number] = last
        total += int(sums[-1])
    return found
