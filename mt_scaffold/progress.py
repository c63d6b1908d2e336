"""Progress of the native core, shown on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

_SECONDS_BETWEEN_UPDATES = 0.5


@contextlib.contextmanager
def progress_line(what: str, unit: str = "bytes") -> Iterator[Callable[[int], None] | None]:
    """Give a function that shows an amount done, in ``unit``, on one line of stderr; None where it is no terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    start = last = time.monotonic()
    shown = False

    def show(done: int) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if now - last < _SECONDS_BETWEEN_UPDATES:
            return
        last, shown = now, True
        amount = (
            f"{done / 1e6:,.0f} MB, {done / 1e6 / (now - start):,.0f} MB/s" if unit == "bytes" else f"{done:,} {unit}"
        )
        print(f"\r{what}: {amount} ", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if shown:
            print(file=sys.stderr)
