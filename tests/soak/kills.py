"""A workflow that is killed at random moments and restarted must end with the files of an uninterrupted one."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from compare_releases import NOT_RESULTS, digest
from test_workflow import command

EXPERIMENT = Path("experiments") / "tiny"
# The files without times and versions.
COMPARED = (
    *("raw/*", "words/*", "codes/*", "dictionaries/*/*", "binarised/*/*.bin", "binarised/*/*.idx", "binarised/*/*.txt"),
    *("*/seed-*/translations/*", "*/seed-*/scores/*.json", "comparison.csv"),
)
# SIGKILL as a crash, SIGTERM as a scheduler, SIGINT as Ctrl-C.
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
ATTEMPTS = 60


class Broken(Exception):
    """A killed workflow failed or ended differently; the message has its output, or the files that differ."""


class Uninterrupted(NamedTuple):
    """An undisturbed workflow: file name → digest, and how long it took."""

    digests: dict[str, str]
    seconds: float


class Interrupted(NamedTuple):
    """How often one workflow was killed, and how many starts it needed."""

    kills: int
    starts: int


def uninterrupted(folder: Path) -> Uninterrupted:
    """Run the workflow once."""
    start = time.monotonic()
    done = subprocess.run(command(folder), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Broken(f"without a kill, status {done.returncode}: {done.stdout[-2000:]}")
    return Uninterrupted(_digests(folder), time.monotonic() - start)


def trial(seed: int, folder: Path, expected: Uninterrupted, deadline: float) -> Interrupted:
    """Start a workflow, kill it with all its processes after a random time, and repeat until a start completes.

    deadline: of time.monotonic, after which it is not killed. Raises Broken if a start that was not killed fails, if
    any of the compared files differs, and if no start completes.
    """
    draw = random.Random(seed)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    kills = 0
    for start in range(1, ATTEMPTS + 1):
        # Many kills come early, while Snakemake starts, and some late.
        patience = (
            expected.seconds * draw.random() ** 2 if time.monotonic() < deadline else 100 * expected.seconds + 600
        )
        log = folder / f"start-{start}.log"
        with open(log, "wb") as stream:
            process = subprocess.Popen(
                command(folder), cwd=folder, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
            )
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            kills += 1
            _end(process, draw.choice(SIGNALS))
            continue
        if process.returncode:
            raise Broken(f"start {start} after {kills} kills, status {process.returncode}: {log.read_text()[-2000:]}")
        found = _digests(folder)
        different = sorted(
            name for name in found.keys() | expected.digests.keys() if found.get(name) != expected.digests.get(name)
        )
        if different:
            raise Broken(f"after {kills} kills these differ: {', '.join(different)} (in {folder})")
        return Interrupted(kills, start)
    raise Broken(f"{ATTEMPTS} starts and no end (in {folder})")


def _end(process: subprocess.Popen[bytes], with_signal: signal.Signals) -> None:
    """Send a signal to a session's processes, and soon after SIGKILL to those still running."""
    os.killpg(process.pid, with_signal)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(20)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _digests(folder: Path) -> dict[str, str]:
    experiment = folder / EXPERIMENT
    paths = {path for pattern in COMPARED for path in experiment.glob(pattern) if path.is_file()}
    # Logs contain times.
    paths = {path for path in paths if not path.name.endswith(NOT_RESULTS)}
    return {str(path.relative_to(experiment)): digest(path) for path in sorted(paths)}
