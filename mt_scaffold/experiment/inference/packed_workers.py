"""Processes that translate batches side by side; each is forked from this one, and so has its model."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.runtime.child_processes import begin_child


class Workers:
    """Calls ``work`` on arguments in ``number`` processes; in this one where there is nothing to share."""

    def __init__(self, work: Callable[[Any], Any], number: int) -> None:
        self._work = work
        self._number = number
        self._executor: ProcessPoolExecutor | None = None
        # Those of the executor, and those that this process had before.
        self._processes: list[Any] = []
        self._others: list[Any] = []

    def run(self, arguments: Sequence[Any]) -> Iterator[Any]:
        """Yield the results in the order of ``arguments``. Raises MTScaffoldError where a process dies."""
        if self._number == 1 or len(arguments) < 2:
            yield from map(self._work, arguments)
            return
        try:
            executor = self._executor or self._start()
            futures = [executor.submit(_call, each) for each in arguments]
            if not self._processes:
                self._processes = [each for each in multiprocessing.active_children() if each not in self._others]
            for future in futures:
                yield future.result()
        except BrokenProcessPool as error:
            raise MTScaffoldError(
                "a process that translates died (out of memory?); use fewer workers or smaller batches"
            ) from error

    def _start(self) -> ProcessPoolExecutor:
        self._others = multiprocessing.active_children()
        self._executor = ProcessPoolExecutor(
            self._number, multiprocessing.get_context("fork"), initializer=_begin, initargs=(self._work,)
        )
        return self._executor

    def close(self, kill: bool = False) -> None:
        """End the processes; kill: without waiting for what they work on."""
        if self._executor is None:
            return
        for process in self._processes if kill else ():
            process.kill()
        self._executor.shutdown(cancel_futures=True)
        self._executor, self._processes = None, []


_work: Callable[[Any], Any] | None = None


def _begin(work: Callable[[Any], Any]) -> None:
    global _work
    import torch

    begin_child()
    torch.set_num_threads(1)
    _work = work


def _call(argument: Any) -> Any:
    assert _work is not None
    return _work(argument)
