"""Progress of the native core, shown on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

# Called with the amount done.
Progress = Callable[[int], None]

_SECONDS_BETWEEN_UPDATES = 0.5


def duration(seconds: float) -> str:
    """Format seconds for people.

    >>> duration(75), duration(120), duration(9000)
    ('1 min 15 s', '2 min', '2 h 30 min')
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if not minutes and not hours:
        return f"{seconds} s"
    amounts = ((hours, "h"), (minutes, "min"), (0 if hours else seconds, "s"))
    return " ".join(f"{amount} {unit}" for amount, unit in amounts if amount)


@contextlib.contextmanager
def progress_line(what: str, unit: str = "bytes") -> Iterator[Progress | None]:
    """Yield a function that shows an amount done, in ``unit``, on one line of stderr; None without a terminal."""
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


def say_on_terminal(line: Callable[[], str]) -> None:
    """Print a line to stderr if it is a terminal; in a log it would be noise, so ``line`` is not called."""
    if sys.stderr is not None and sys.stderr.isatty():
        print(line(), file=sys.stderr)
