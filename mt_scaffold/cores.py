"""How many cores this process may use: its affinity, and the CPU quota of its container."""

from __future__ import annotations

import functools
import math
import os


def allowed_cores() -> int:
    """Return the number of cores that the process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usable_cores() -> int:
    """Return the number of cores that the process can keep busy: at most its quota, rounded up.

    The quota is read only once, as that takes longer than segmenting a short text.
    """
    return min(allowed_cores(), max(1, math.ceil(min(_own_quota(), 1e6))))


@functools.cache
def _own_quota() -> float:
    return quota()


def quota(root: str = "/") -> float:
    """Return how many cores' time the control groups of this process allow, infinity if they set no limit.

    Reads ``cpu.max`` (cgroup v2) and ``cpu.cfs_quota_us`` (v1) of each group and its parents, below ``root``.
    """
    limit = math.inf
    for line in _read(f"{root}/proc/self/cgroup").splitlines():
        controllers, _, group = line.partition(":")[2].partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        # In a container the parent groups are often not mounted, and the group itself is mounted at the top.
        while True:
            limit = min(limit, _limit(f"{root}/sys/fs/cgroup/{controllers}{group}", version=1 if controllers else 2))
            if group in ("/", ""):
                break
            group = os.path.dirname(group)
    return limit


def _limit(folder: str, version: int) -> float:
    if version == 2:
        fields = _read(f"{folder}/cpu.max").split()
    else:
        fields = [_read(f"{folder}/cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    try:
        time, period = map(int, fields)
    except ValueError:  # "max", or no such file
        return math.inf
    return time / period if time > 0 and period > 0 else math.inf


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""
