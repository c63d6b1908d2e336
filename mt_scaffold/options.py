"""The options that several calls share, each checked in one place."""

from __future__ import annotations

import operator
import os
from collections.abc import Collection, Sequence

from mt_scaffold.cores import allowed_cores, usable_cores
from mt_scaffold.errors import UsageError, WrongTypeError
from mt_scaffold.removed import VALUES

# Output formats of statistics.
FORMATS = ("text", "json", "markdown")
_MOST_WORKERS = 4096
# More threads than this seldom help, and a shared machine has other users.
_MOST_WORKERS_BY_DEFAULT = 16
_NUM_WORKERS = "MT_SCAFFOLD_NUM_WORKERS"
# The help of the option.
WORKERS_HELP = (
    f"number of threads, -1 for all cores; the output is the same for any number (default: {_NUM_WORKERS}, or else the "
    "cores that this process can use, at most 16)"
)


def refuse_text(**collections: object) -> None:
    """Raise UsageError for a single string in place of a collection of strings: its letters would be the entries."""
    for name, given in collections.items():
        if isinstance(given, str | bytes):
            raise UsageError(f"{name}: give a list of strings, such as [{given!r}]")


def whole_number(name: str, value: object) -> int:
    """Return a number as an int, numpy's too; raise WrongTypeError, naming it, for text, None and fractions."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise WrongTypeError(f"{name} must be a whole number, not {value!r}") from None


def worker_count(num_workers: int | None = None) -> int:
    """Return the number of threads or processes: as given; for -1, every core that this process may run on.

    None, the default of every call: the environment variable MT_SCAFFOLD_NUM_WORKERS, read in the same way, or else
    the cores that this process can use (its affinity and its container's CPU quota), at most 16.

    Raises UsageError for other numbers below 1, and above 4096.
    """
    name, number = "the number of workers", num_workers
    if number is None:
        name, given = _NUM_WORKERS, os.environ.get(_NUM_WORKERS, "")
        if not given:
            return min(usable_cores(), _MOST_WORKERS_BY_DEFAULT)
        try:
            number = int(given)
        except ValueError:
            raise UsageError(f"{name} must be a number or -1 for all cores, not '{given}'") from None
    number = whole_number(name, number)
    if number == -1:
        return allowed_cores()
    if not 1 <= number <= _MOST_WORKERS:
        raise UsageError(f"{name} must be 1 to {_MOST_WORKERS}, or -1 for all cores, not {number}")
    return number


def check_index(index: int) -> int:
    """Return the index of a sentence or text; UsageError unless it is 0 to 2^64-1."""
    number = whole_number("an index", index)
    if not 0 <= number < 2**64:
        raise UsageError(f"an index must be 0 or more and fit into 64 bits, not {index}")
    return number


def check_indices(indices: Sequence[int] | None, texts: int) -> list[int]:
    """Return the indices of texts, none for None; UsageError unless there is one for each, 0 to 2^64-1."""
    if indices is None:
        return []
    if len(indices) and len(indices) != texts:
        raise UsageError(f"{texts} texts have {len(indices)} indices")
    return [check_index(index) for index in indices]


def check_merges(merges: int) -> int:
    """Return how many merges to use, -1 for all; UsageError for other negative numbers and from 2^63."""
    number = whole_number("the number of merges", merges)
    if not -1 <= number < 2**63:
        raise UsageError(f"the number of merges must be 0 or more, or -1 for all, not {number}")
    return number


def memory_size(size: int | str) -> int:
    """Return an amount of memory in bytes, given as a number, or as one with K, M, G or T (powers of 1024).

    Raises UsageError for anything else, and below 1 byte.

    >>> memory_size("1.5G"), memory_size("500m"), memory_size(4096)
    (1610612736, 524288000, 4096)
    """
    text = str(size).strip().upper()
    number = text.removesuffix("IB").removesuffix("B") if isinstance(size, str) else text
    power = "KMGT".find(number[-1:]) + 1 if number else 0
    try:
        amount = int(float(number[:-1]) * 1024**power) if power else int(number)
    except (ValueError, OverflowError):
        raise UsageError(f"an amount of memory is a number with K, M, G or T, such as 1.5G, not '{size}'") from None
    if not 1 <= amount < 2**63:
        raise UsageError(f"an amount of memory must be positive and less than 2^63 bytes, not {size}")
    return amount


def check_prune(prune: int) -> int:
    """Return the lowest count that a word may have; UsageError below 1 and from 2^63."""
    number = whole_number("the count below which words are pruned", prune)
    if not 1 <= number < 2**63:
        raise UsageError(f"words are pruned below a count of 1 or more, not {number}")
    return number


def check_choice(kind: str, value: str, choices: Collection[str]) -> str:
    """Return a value that is one of several; UsageError, listing them, for any other."""
    if value not in choices:
        if gone := VALUES.get(kind, {}).get(value):
            raise UsageError(f"{kind} '{value}' was removed: {gone}")
        raise UsageError(f"there is no {kind} '{value}'; choose one of {', '.join(choices)}")
    return value
