"""``make soak`` itself: it runs the trials that it lists, and reports the faults that it finds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("yaml", reason="PyYAML comes with the extra 'workflow'")

SOAK = Path(__file__).parent / "soak"
OPTIONS = ["--seconds", "2", "--only"]


def test_random_trials_and_broken_files() -> None:
    """Some of each are tried on every core, and no fault is found."""
    command = [sys.executable, str(SOAK), *OPTIONS, "trials", "broken-files"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    tried = {what: int(count.replace(",", "")) for count, what in re.findall(r"([\d,]+) (corpora|files)", done.stdout)}
    assert tried["corpora"] >= 2 and tried["files"] >= 20


def test_random_vocabularies_of_other_programs() -> None:
    """Files of each installed library are compared, and no fault is found."""
    pytest.importorskip("sentencepiece", reason="SentencePiece comes with the extra 'unigram'")
    command = [sys.executable, str(SOAK), *OPTIONS, "imports"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"[1-9][\d,]* sentencepiece compared", done.stdout)


def test_what_is_found_fails() -> None:
    """A reference that segments differently is noticed, and reported with the seed that shows it."""
    program = (
        "import runpy, sys\n"
        f"sys.path[:0] = [{str(SOAK)!r}, {str(SOAK.parent)!r}]\n"
        "from mt_scaffold.analysis.reference import ReferenceBPE\n"
        "ReferenceBPE.process_line = lambda self, line: 'wrong'\n"
        f"runpy.run_path({str(SOAK)!r}, {{}}, '__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", program, *OPTIONS, "trials"], capture_output=True, text=True)
    assert done.returncode == 1
    assert re.search(r"^FOUND seed \d+: Difference: subwords differ", done.stdout, re.MULTILINE)
