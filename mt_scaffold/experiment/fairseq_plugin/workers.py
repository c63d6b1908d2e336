"""What an epoch leaves behind once another follows: the processes and threads that load its batches, and memory."""

from __future__ import annotations

import contextlib
import ctypes
import queue
import time
from collections.abc import Iterator, Mapping

from fairseq.data import EpochBatchIterator
from fairseq.data.iterators import BufferedIterator, CountingIterator

_SECONDS, _PATIENCE_SECONDS = 0.05, 10.0
# mallopt's numbers.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def end_loading(past: EpochBatchIterator | None, following: EpochBatchIterator | None) -> None:
    """End what loads for the iterator ``past``, apart from what ``following`` uses again.

    fairseq itself leaves that to Python's garbage collector, and by then dozens of processes may be there: an iterator
    over batches refers to itself.
    """
    if past is None:
        return
    _end_thread(past._cur_epoch_itr)
    if past is following:
        return
    _end_thread(past._next_epoch_itr)
    loader = past.dataloader
    if loader is not None and loader._iterator is not None:
        loader._iterator._shutdown_workers()
        loader._iterator = None
    # Without these references nothing waits for the garbage collector, least of all the batches.
    past.dataloader = past.epoch_batch_sampler = past._cur_epoch_itr = past._next_epoch_itr = None


def end_all_loading(iterators: Mapping[str, EpochBatchIterator]) -> None:
    """End what loads for any of ``iterators``.

    A thread that still reads ahead when Python ends is torn out of PyTorch's code, which now and then aborts a training
    that is complete.
    """
    for iterator in iterators.values():
        end_loading(iterator, None)


@contextlib.contextmanager
def returning_memory() -> Iterator[None]:
    """Have glibc return to the system what is free at the end, and large blocks at once, all the larger ones later.

    Left alone, it puts ever larger blocks beside small ones, which then keep them from being returned or used whole.
    """
    system = ctypes.CDLL(None)
    if not hasattr(system, "mallopt"):
        yield
        return
    system.mallopt(_MMAP_THRESHOLD, 1 << 20)
    try:
        yield
    finally:
        # An update on the CPU takes smaller ones all the time, and would have to wait for the system.
        system.mallopt(_MMAP_THRESHOLD, 1 << 23)
        system.mallopt(_TRIM_THRESHOLD, 1 << 24)
        system.malloc_trim(0)


def _end_thread(batches: CountingIterator | None) -> None:
    """End the thread that reads ahead, which waits forever where the rest of an epoch was not wanted."""
    buffered = getattr(batches, "_itr", None)
    if not isinstance(buffered, BufferedIterator) or buffered._consumer is None:
        return
    buffered._consumer._max_len = 0
    # It may itself wait for a process that loads nothing any more.
    latest = time.monotonic() + _PATIENCE_SECONDS
    while buffered._consumer.is_alive() and time.monotonic() < latest:
        with contextlib.suppress(queue.Empty):
            buffered._queue.get(timeout=_SECONDS)
