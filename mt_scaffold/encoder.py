"""Sentences → ids of a given dictionary, such as fairseq's: what ``BPE.encoder`` returns."""

from __future__ import annotations

from collections.abc import Sequence

from mt_scaffold import _core
from mt_scaffold.errors import UsageError
from mt_scaffold.options import check_dropout, check_uniform_sampling, core_seed


class Encoder:
    """Segment sentences straight into integer ids, without a Python object per subword."""

    def __init__(self, applier: _core.Applier) -> None:
        self._applier = applier

    def encode(
        self,
        sentences: Sequence[str] | Sequence[bytes],
        dropout: float = 0,
        seed: int | None = None,
        epoch: int = 0,
        indices: Sequence[int] = (),
        *,
        uniform_sampling: float = 0,
    ) -> tuple[memoryview, memoryview]:
        """Segment sentences (text, or UTF-8) into ids in one call.

        An LF at the end of a sentence is dropped, unless the codes have a pre-tokeniser: it is then a part of it.

        dropout: the probability in [0, 1] that a merge is skipped at a step (BPE-dropout).
        uniform_sampling: the probability in [0, 1] that a word is drawn from all of its segmentations.
        seed, epoch, indices: with either, the segmentation of a sentence depends only on (seed, epoch, its index),
            and its index is its position in ``sentences`` where no ``indices`` are given; without a seed it is random.

        Returns two read-only buffers, which ``numpy.asarray`` takes without a copy: the ids of all sentences (int32),
        and where each sentence begins (int64, one more than there are sentences).

        Raises UsageError for values out of range, or where there is not one index per sentence.
        """
        if len(indices) and len(indices) != len(sentences):
            raise UsageError(f"{len(sentences)} sentences have {len(indices)} indices")
        uniform = check_uniform_sampling(uniform_sampling, check_dropout(dropout))
        ids, offsets = self._applier.ids(sentences, indices, dropout, core_seed(seed), epoch, uniform)
        return memoryview(ids).cast("i"), memoryview(offsets).cast("q")
