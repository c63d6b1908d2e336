"""Who encodes which shard: claims, files by which processes on any machines agree without talking to each other.

The claim of a shard is the file ``.claims/NAME.1``, which exactly one process can create. It names its holder, who
touches it every HEARTBEAT_SECONDS. A claim whose holder has ended is taken over by creating ``.claims/NAME.2``, and so
on, so that of several processes again exactly one succeeds; the highest number holds. A holder on this machine has
ended when its process has; one elsewhere, when the claim was not touched while this process watched it for
STALE_SECONDS. No clock is compared with that of another machine.

A mistake here costs time, not correctness: what two holders of a shard write are the same bytes.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from typing import NamedTuple

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.segment.shards.folders import CLAIMS, Folder

HEARTBEAT_SECONDS = 15.0
# Eight heartbeats, and twice as long as network file systems cache attributes.
STALE_SECONDS = 120.0


class _Holder(NamedTuple):
    """A process. machine: what tells machines and containers apart. started: when, in the system's ticks."""

    host: str
    machine: str
    pid: int
    started: int

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


class Claim:
    """The claim of this process on a shard, kept up until ``release``."""

    def __init__(self, folder: Folder, name: str, number: int, content: bytes) -> None:
        self.name = _file(name, number)
        self._folder, self._shard, self._number, self._content = folder, name, number, content
        self._lost = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._ended.wait(HEARTBEAT_SECONDS):
            with contextlib.suppress(MTScaffoldError, OSError):  # the next one may come through
                self._lost = not self._folder.beat(self.name, self._content)

    def holds(self) -> bool:
        """Return whether no other process has taken the shard over."""
        if self._lost or _last(self._folder, self._shard) != self._number:
            return False
        return (self._folder.read(self.name) or b"").startswith(self._content)

    def release(self) -> None:
        """Remove the claim, and those that it took over."""
        self._ended.set()
        self._thread.join()
        for number in range(self._number, 0, -1):
            self._folder.remove(_file(self._shard, number))


class Claims:
    """The claims of this process in a folder."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._own = _this_process()
        # What was seen of others' claims: the stamp, and since when it has been the same.
        self._seen: dict[str, tuple[object, float]] = {}

    @contextlib.contextmanager
    def claim(self, shard: str) -> Iterator[Claim | None]:
        """Claim a shard for as long as the block lasts; None where another process holds it.

        Says on stderr which ended process a shard was taken over from.
        """
        number = 1
        # What makes it this claim and no later one of the same number.
        content = json.dumps(self._own._asdict()).encode() + f"\n{uuid.uuid4().hex}\n".encode()
        if not self._folder.create(_file(shard, 1), content):
            number = _last(self._folder, shard) + 1
            ended = None if number == 1 else self._ended_holder(_file(shard, number - 1))
            if ended is None or not self._folder.create(_file(shard, number), content):
                yield None
                return
            print(f"notice: {self._folder.name}: {shard}: {ended}; encoding it again", file=sys.stderr)
            self._folder.discard(_file(shard, number - 1))
        claim = Claim(self._folder, shard, number, content)
        try:
            yield claim
        finally:
            claim.release()

    def _ended_holder(self, name: str) -> str | None:
        """Return how the holder of a claim has ended; None where it has not, as far as one can see."""
        content = self._folder.read(name)
        if content is None:
            return None
        holder = _holder(content)
        if holder is not None and holder.machine == self._own.machine:
            return f"{holder} has ended" if _has_ended(holder) else None
        stamp, now = self._folder.stamp(name), time.monotonic()
        before, since = self._seen.setdefault(name, (stamp, now))
        if stamp != before:
            self._seen[name] = stamp, now
            return None
        if now - since < STALE_SECONDS:
            return None
        return f"{holder or 'an unknown process'} has given no sign for {now - since:.0f} s"


def _file(shard: str, number: int) -> str:
    return f"{CLAIMS}/{shard}.{number}"


def _last(folder: Folder, shard: str) -> int:
    """Return the number of the last claim on a shard; 0 for none."""
    numbers = [0]
    for name in folder.names(CLAIMS):
        stem, _, number = name.rpartition(".")
        if stem == shard and number.isdigit():
            numbers.append(int(number))
    return max(numbers)


def _holder(content: bytes) -> _Holder | None:
    try:
        return _Holder(**json.loads(content.partition(b"\n")[0]))
    except (ValueError, TypeError):
        return None


def _this_process() -> _Holder:
    """Return this process. A container has the host's boot_id but numbers its processes by itself."""
    host, pid = socket.gethostname(), os.getpid()
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            machine = f"{host} {stream.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        machine = f"{host} {uuid.getnode():x}"
    return _Holder(host, machine, pid, _started(pid) or 0)


def _has_ended(holder: _Holder) -> bool:
    """Return whether a process of this machine has ended; its number may be another's now."""
    started = _started(holder.pid)
    if started is not None:
        return started != holder.started
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # of another user, whom /proc hides
        pass
    return False


def _started(pid: int) -> int | None:
    """Return when a process of this machine started, in ticks since boot; None where /proc does not say."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return -1 if fields[0] in (b"Z", b"X") else int(fields[19])
