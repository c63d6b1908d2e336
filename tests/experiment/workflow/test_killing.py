"""A workflow that is killed at random moments and restarted must end with the files of an uninterrupted one."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from hashlib import sha256
from pathlib import Path

import pytest
from test_workflow import command

EXPERIMENT = Path("experiments") / "tiny"
# The files without times and versions.
COMPARED = (
    *("raw/*", "words/*", "codes/*", "dictionaries/*/*", "binarised/*/*.bin", "binarised/*/*.idx", "binarised/*/*.txt"),
    *("*/seed-*/translations/*", "*/seed-*/scores/*.json", "comparison.csv"),
)


def digests(folder: Path) -> dict[str, str]:
    """Return each of the compared files with its digest."""
    experiment = folder / EXPERIMENT
    paths = {path for pattern in COMPARED for path in experiment.glob(pattern) if path.is_file()}
    # Those contain times or versions.
    paths = {path for path in paths if not path.name.endswith((".log", ".generate.txt", ".manifest.json"))}
    return {str(path.relative_to(experiment)): sha256(path.read_bytes()).hexdigest() for path in sorted(paths)}


@pytest.mark.long
def test_a_workflow_killed_at_random_moments_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    """It is killed with all its processes, most often early, while Snakemake starts, and started again."""
    whole, killed, draw = tmp_path / "whole", tmp_path / "killed", random.Random(1)
    for folder in (whole, killed):
        folder.mkdir()
    begin = time.monotonic()
    subprocess.run(command(whole), cwd=whole, capture_output=True, check=True)
    seconds = time.monotonic() - begin
    for sent in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        process = subprocess.Popen(
            command(killed), cwd=killed, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, start_new_session=True
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds * draw.random() ** 2)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sent)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    done = subprocess.run(command(killed), cwd=killed, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    assert digests(killed) == digests(whole) != {}
