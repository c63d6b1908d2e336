"""Progress of the native core, shown on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence

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
def progress_line(what: str, unit: str = "bytes") -> Iterator[Callable[[int], None] | None]:
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


class ShardsProgress:
    """Progress through shards, on a terminal: those that are finished, the speed, and the time left.

    sizes: the stored bytes of each shard. show: shows a line; None without a terminal.
    """

    def __init__(self, what: str, sizes: Sequence[int], show: Callable[[str], None] | None) -> None:
        self._what, self._sizes, self._show = what, sizes, show
        self._start = time.monotonic()
        self._left = dict(enumerate(sizes))
        self._before: int | None = None
        # Bytes of text: of the shards already encoded, and of the current one.
        self._encoded = self._now = 0
        self._stored = self._size = 0  # the same, as stored

    def encoding(self, number: int) -> Callable[[int], None] | None:
        """Begin a shard; return a function that takes the bytes of its text encoded so far, None without a terminal."""
        self._encoded, self._now = self._encoded + self._now, 0
        self._stored, self._size = self._stored + self._size, self._sizes[number]
        return None if self._show is None else self._advance

    def _advance(self, done: int) -> None:
        self._now = done
        self._update()

    def finished(self, number: int) -> None:
        """Record that a shard is finished, now or by an earlier call."""
        self._left.pop(number, None)

    def _update(self) -> None:
        if self._show is None:
            return
        if self._before is None:  # without the shards that an earlier run finished
            self._before = sum(self._left.values())
        elapsed = time.monotonic() - self._start
        done = self._encoded + self._now
        line = (
            f"{self._what}: {len(self._sizes) - len(self._left)} of {len(self._sizes)} shards, {done / 1e6:,.0f} MB, "
            f"{done / 1e6 / max(elapsed, 1e-3):,.0f} MB/s"
        )
        # The stored size of what is done of this shard, assuming the compression of those before.
        begun = min(self._size, self._now * self._stored / self._encoded) if self._encoded else 0
        left = sum(self._left.values()) - begun
        if finished := self._before - left:
            line += f", {duration(elapsed * left / finished)} left"
        self._show(line)


@contextlib.contextmanager
def shards_line(what: str, sizes: Sequence[int]) -> Iterator[ShardsProgress]:
    """Yield the progress through shards of these stored sizes, shown on one line of stderr if it is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield ShardsProgress(what, sizes, None)
        return
    last, longest = 0.0, 0

    def show(line: str) -> None:
        nonlocal last, longest
        if (now := time.monotonic()) - last < _SECONDS_BETWEEN_UPDATES:
            return
        last, longest = now, max(longest, len(line))
        print(f"\r{line:<{longest}} ", end="", file=sys.stderr, flush=True)

    try:
        yield ShardsProgress(what, sizes, show)
    finally:
        if longest:
            print(file=sys.stderr)
