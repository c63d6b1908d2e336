"""Clean up after an epoch: end the processes and threads that load its batches, and return its memory."""

from __future__ import annotations

import contextlib
import ctypes
import queue
import time
from collections.abc import Iterator, Mapping

from fairseq.data import EpochBatchIterator
from fairseq.data.iterators import BufferedIterator, CountingIterator

_SECONDS, _PATIENCE_SECONDS = 0.05, 10.0
# mallopt's numbers of its parameters.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def end_loading(past: EpochBatchIterator | None, following: EpochBatchIterator | None) -> None:
    """End the loading processes and threads of the iterator ``past``, except those that ``following`` still uses.

    fairseq leaves them to Python's garbage collector, because an iterator over batches refers to itself; dozens of
    processes can accumulate until it runs.
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
    # Break the references, so that the batches do not wait for the garbage collector.
    past.dataloader = past.epoch_batch_sampler = past._cur_epoch_itr = past._next_epoch_itr = None


def end_all_loading(iterators: Mapping[str, EpochBatchIterator]) -> None:
    """End the loading processes and threads of all ``iterators``.

    A thread that still reads ahead when Python exits is killed within PyTorch's code, which sometimes aborts a training
    that is already complete.
    """
    for iterator in iterators.values():
        end_loading(iterator, None)


@contextlib.contextmanager
def returning_memory() -> Iterator[None]:
    """Have glibc return freed blocks of 1 MiB or more at once within the context, and of 8 MiB or more afterwards.

    All free memory is returned at the end of the context. By default, glibc places ever larger blocks next to small
    ones, which keep them from being returned or reused whole.
    """
    system = ctypes.CDLL(None)
    if not hasattr(system, "mallopt"):
        yield
        return
    system.mallopt(_MMAP_THRESHOLD, 1 << 20)
    try:
        yield
    finally:
        # Updates on a CPU allocate smaller blocks all the time, and would wait for the system.
        system.mallopt(_MMAP_THRESHOLD, 1 << 23)
        system.mallopt(_TRIM_THRESHOLD, 1 << 24)
        system.malloc_trim(0)


def _end_thread(batches: CountingIterator | None) -> None:
    """End the thread that reads ahead, which waits forever if the rest of an epoch is not used."""
    buffered = getattr(batches, "_itr", None)
    if not isinstance(buffered, BufferedIterator) or buffered._consumer is None:
        return
    buffered._consumer._max_len = 0
    # The thread may itself be waiting for a process that no longer loads anything.
    latest = time.monotonic() + _PATIENCE_SECONDS
    while buffered._consumer.is_alive() and time.monotonic() < latest:
        with contextlib.suppress(queue.Empty):
            buffered._queue.get(timeout=_SECONDS)
