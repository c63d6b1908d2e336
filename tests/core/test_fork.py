"""A process that is forked while other threads are in the core, as DataLoader and multiprocessing do, never hangs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from forking import KINDS

PROGRAM = Path(__file__).with_name("forking.py")
# 400 in all.
FORKS = 400 // len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_no_child_waits_for_a_thread_that_it_lacks(kind: str) -> None:
    """A child finds every lock free, and intact whatever the threads were changing at the fork."""
    done = subprocess.run([sys.executable, PROGRAM, kind, str(FORKS)], capture_output=True, text=True, timeout=1200)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
