"""Count the subwords and bytes of text that a training has seen, and end it once it has seen enough of either."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from fairseq.data import EpochBatchIterator, data_utils

from mt_scaffold.errors import MTScaffoldError

# The columns of all counts.
COUNTED = ("subwords", "text_bytes")


class CountedBatches(EpochBatchIterator):
    """fairseq's iterator over the batches of a training, cut after the update that reaches a limit.

    The batches before the cut are those that fairseq would make without a limit. Every process counts those of all
    processes, so that all end at once. State and counts are also exact in the middle of an epoch.
    """

    shard_id: int
    _of_batches: Any
    _before: Any
    _limits: Any
    _steps: Any
    _end: int
    _update_freq: tuple[int, ...]
    _patience: int
    counted: tuple[str, ...]
    finished: bool
    _dictionaries: str

    @classmethod
    def count(
        cls,
        iterator: EpochBatchIterator,
        counts: Sequence[Any],
        limits: tuple[float, float],
        before: CountedBatches | None = None,
        counted: tuple[str, ...] = COUNTED,
        update_freq: Sequence[int] = (1,),
        patience: int = 0,
        dictionaries: str = "",
    ) -> CountedBatches:
        """Turn ``iterator``, which fairseq has built, into one of this class.

        counts: subwords and bytes of each sentence (two arrays), which are not kept. limits: of both; ``inf`` for none.
        before: the iterator of the earlier epochs. counted: the names of the columns that are known, if not all of
        COUNTED. update_freq, patience: fairseq's. dictionaries: a digest of the meanings of the ids in the batches.
        """
        # fairseq's task builds a plain iterator; building this class instead would mean repeating all its options.
        iterator.__class__ = cls
        assert isinstance(iterator, cls)
        iterator._of_batches = _sums(iterator.frozen_batches, counts)
        iterator._limits = np.array(limits)
        iterator._before = np.zeros(len(COUNTED), np.int64) if before is None else before.seen
        iterator.counted = counted if before is None else before.counted
        iterator._steps = np.zeros((1, len(COUNTED)), np.int64)
        iterator._end, iterator._update_freq, iterator._patience = 0, tuple(update_freq), patience
        iterator.finished, iterator._dictionaries = False, dictionaries
        return iterator

    def ordered_batches(self, epoch: int, fix_batches_to_gpus: bool, shuffle: bool) -> list[Any]:
        """Return this process's batches of an epoch up to the limit; record the counts of all processes by step."""
        order = self._order(epoch, fix_batches_to_gpus, shuffle)
        steps = self._of_batches[order].sum(axis=1)
        self._steps = np.concatenate([np.zeros((1, len(COUNTED)), np.int64), np.cumsum(steps, axis=0)])
        enough = np.flatnonzero(self._reaches(self._before + self._steps[1:]))
        self._end = len(self._steps) - 1
        if enough.size:
            at_once = self._update_freq[min(epoch, len(self._update_freq)) - 1]
            self._end = min(self._end, (int(enough[0]) // at_once + 1) * at_once)
        own = order[: self._end, self.shard_id].tolist()
        batches = [self.frozen_batches[number] if number >= 0 else [] for number in own]
        if self._supports_prefetch:
            self.dataset.prefetch([sentence for batch in batches for sentence in batch])
        return batches

    def _order(self, epoch: int, fix_batches_to_gpus: bool, shuffle: bool) -> Any:
        """Return the numbers of an epoch's batches (steps × processes), in fairseq's order; -1: an empty batch."""
        shards = self.num_shards

        def shuffled(numbers: Any, seed: int) -> Any:
            # NumPy shuffles an array of numbers, or its rows, exactly as it shuffles fairseq's list of batches.
            if self.grouped_shuffling:
                numbers = numbers[: len(numbers) // shards * shards].reshape(-1, shards)
            with data_utils.numpy_seed(seed):
                np.random.shuffle(numbers)
            return numbers.ravel()

        within = self._supports_prefetch and fix_batches_to_gpus
        numbers = np.arange(len(self.frozen_batches))
        if shuffle and not within:
            numbers = shuffled(numbers, self.seed + epoch)
        order = np.concatenate([numbers, np.full(-len(numbers) % shards, -1)]).reshape(-1, shards)
        if shuffle and within:
            columns = [shuffled(order[:, shard].copy(), self.seed + epoch + shard) for shard in range(shards)]
            order = np.stack(columns, axis=1)
        return order

    def _reaches(self, seen: Any) -> Any:
        return (seen >= self._limits).any(axis=-1)

    @property
    def in_an_epoch(self) -> Any:
        """The subwords and bytes of the sentences that are trained on in one epoch."""
        return self._of_batches.sum(axis=0)

    @property
    def seen(self) -> Any:
        """The subwords and bytes seen so far, from the start of the training."""
        return self._before + self._steps[min(self.iterations_in_epoch, len(self._steps) - 1)]

    @property
    def used_up(self) -> bool:
        """Whether a limit is reached."""
        return bool(self._reaches(self.seen))

    @property
    def next_epoch_idx(self) -> float:
        """The number of the next epoch, or NaN if there is none.

        fairseq trains while this is at most ``--max-epoch``, or infinity; only NaN never is.
        """
        return math.nan if self.finished else super().next_epoch_idx

    def next_epoch_itr(self, *arguments: Any, **options: Any) -> Any:
        """Return the batches of the next epoch."""
        if self._next_epoch_itr is None and self._cur_epoch_itr is not None and self.end_of_epoch():
            self._before = self.seen
        return super().next_epoch_itr(*arguments, **options)

    def state_dict(self) -> dict[str, Any]:
        """Return fairseq's state, with the counts. A cut epoch is not over: a longer training completes it."""
        state: dict[str, Any] = super().state_dict()
        if self.end_of_epoch() and self._end < len(self._steps) - 1:
            state |= {"epoch": self.epoch, "iterations_in_epoch": self._end}
        if self.counted:
            # At the end of an epoch, the state is the start of the next one.
            before = self._before if state["iterations_in_epoch"] else self.seen
            state["before_epoch"] = dict(zip(self.counted, before.tolist(), strict=False))
            state["seen"] = dict(zip(self.counted, self.seen.tolist(), strict=False))
        state |= {"without_improvement": _waiting(), "processes": self.num_shards}
        return state | ({"dictionaries": self._dictionaries} if self._dictionaries else {})

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from ``state_dict``; a training that had ended has no further epoch.

        Raises MTScaffoldError for the state of a training with other dictionaries, at a batch where these processes
        cannot resume (``at_same_batch``), or without the counts that a limit needs.
        """
        if state_dict.get("dictionaries", self._dictionaries) != self._dictionaries:
            raise MTScaffoldError(
                "the checkpoint was trained with other dictionaries, so that its embeddings are of other subwords; "
                "train from scratch, or on the data folder that it was started with"
            )
        state_dict = at_same_batch(state_dict, self.num_shards, self._update_freq)
        if "seen" not in state_dict:
            self.counted = ()
        if not self.counted and np.isfinite(self._limits).any():
            raise MTScaffoldError(
                "the checkpoint does not record how much text was seen, which --stop-tokens and --stop-text need; "
                "train from scratch"
            )
        before, seen = (
            np.array([state_dict.get(key, {}).get(name, 0) for name in COUNTED], np.int64)
            for key in ("before_epoch", "seen")
        )
        self._before = before
        waiting = state_dict.get("without_improvement")
        _wait(waiting)
        impatient = waiting is not None and 0 < self._patience <= waiting["validations"]
        if impatient or self._reaches(seen):
            self.epoch, self.finished = state_dict["epoch"], True
            return
        super().load_state_dict(state_dict)


def _sums(batches: Sequence[Any], counts: Sequence[Any]) -> Any:
    """Return the sums of the counts over each batch; the last row is for the empty batches of the last step."""
    sums = np.zeros((len(batches) + 1, len(counts)), np.int64)
    if batches:
        sentences = np.concatenate(batches)
        ends = np.cumsum([len(batch) for batch in batches])
        for column, count in enumerate(counts):
            sums[:-1, column] = np.add.reduceat(count[sentences], [0, *ends[:-1]], dtype=np.int64)
    return sums


def _early_stopping() -> list[Any]:
    """Return fairseq's function for early stopping, from each module that its program may have been loaded as."""
    modules = [sys.modules.get(name) for name in ("__main__", "__mp_main__", "fairseq_cli.train")]
    return [found for module in modules if (found := getattr(module, "should_stop_early", None))]


def _waiting() -> dict[str, float] | None:
    """Return the best validation and how many in a row were no better, which fairseq keeps only in its function."""
    for function in _early_stopping():
        if hasattr(function, "best"):
            return {"best": float(function.best), "validations": int(function.num_runs)}
    return None


def _wait(waiting: dict[str, float] | None) -> None:
    """Restore the state of fairseq's early stopping that ``_waiting`` returned, which fairseq loses at a stop."""
    for function in _early_stopping():
        if waiting is not None:
            function.best, function.num_runs = waiting["best"], waiting["validations"]


def at_same_batch(state: Mapping[str, Any], processes: int, update_freq: Sequence[int]) -> dict[str, Any]:
    """Return the state of an iterator, converted to this number of processes if it was saved with another.

    fairseq deals the batches of an epoch to the processes in turn, and an update takes update-freq of each. So an
    update has the same batches whenever processes x update-freq is the same; only the count of each process differs.

    Raises MTScaffoldError if no update of these processes begins at the next batch.
    """
    before = state.get("processes", processes)
    if before == processes:
        return dict(state)
    epoch, seen = state["epoch"], state["iterations_in_epoch"] * before
    together = processes * update_freq[min(epoch, len(update_freq)) - 1]
    if seen % together:
        raise MTScaffoldError(
            f"the checkpoint is after batch {seen} of epoch {epoch}, where no update of {processes} processes x "
            f"update-freq {together // processes} begins; resume with {before} processes, or with the same batch"
        )
    return {**state, "iterations_in_epoch": seen // processes}
