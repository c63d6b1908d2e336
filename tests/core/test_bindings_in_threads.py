"""Python's objects may change while the core works without the GIL: it never crashes or returns a wrong result."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from in_threads import CASES

PROGRAM = "import sys, pathlib, in_threads; case = in_threads.Case(pathlib.Path(sys.argv[2]))\n"
PROGRAM += "for _ in range(5): in_threads.CASES[sys.argv[1]](case)"


@pytest.mark.parametrize("name", CASES)
def test_calls_at_once(name: str, tmp_path: Path) -> None:
    """In a separate process, because a fault crashes it."""
    folder = Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", PROGRAM, name, tmp_path], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), CASES[name].__doc__
