"""Full disks: a command whose output does not fit must say so in one line, and leave no output that looks complete."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from segmenting import hard_text

from mt_scaffold.experiment.binarise.pairs_as_ids import DESCRIPTION

# The size of the file system in bytes, smaller than every output.
ROOM = 64 << 10
MESSAGE = "No space left on device"
INPUTS = [
    "learn-bpe --symbols 8000 --input text --output codes",
    "learn-bpe --pretokenise gpt2 --symbols 500 --input text --output byte.codes",
    "encode --codes byte.codes --input text --output ids.bin",
    "learn-unigram --symbols 200 --input text --output unigram.model",
]
PAIRS = "--source-lang en --target-lang de --codes codes --train words --valid words --test words"
# Every command that writes as much as a text.
COMMANDS = [
    "learn-bpe --symbols 9000 --input text --output full/codes",
    "trim codes --below 5 --input text --output full/codes",
    "apply-bpe --codes codes --input text --output full/subwords",
    "apply-bpe --codes codes --input text --output full/subwords.gz",
    "learn-unigram --symbols 9000 --input text --output full/unigram.model",
    "apply-unigram --codes unigram.model --input text --output full/pieces",
    "get-vocab --input text --output full/vocabulary",
    "count-words --input text --output full/counts",
    "learn-joint-bpe-and-vocab --symbols 9000 --input text --output full/codes --write-vocabulary full/vocabulary",
    "encode --codes byte.codes --input text --output full/ids.bin",
    "decode --codes byte.codes --input ids.bin --output full/text",
    "tokenise --language de --input text --output full/words",
    "clean --source text --target text --output-source full/en --output-target full/de --max-ratio 9",
    f"binarise {PAIRS} --output full/binarised",
    f"binarise-words {PAIRS} --output full/on-the-fly",
]


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A file system in memory with ROOM bytes."""
    folder = tmp_path / "full"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this user may not mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.long
def test_a_full_disk_is_reported_by_every_command(full: Path, tmp_path: Path) -> None:
    """Status 1, one line with the output's name and the reason, and nothing left that looks complete."""

    def run(command: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "mt_scaffold", *command.split()]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, errors="backslashreplace")

    draw = random.Random(1)
    # Twice each, so that many pairs of symbols are frequent enough.
    words = 2 * ["".join(draw.choice("abcdefghijklmnop") for _ in range(draw.randint(3, 12))) for _ in range(20_000)]
    lines = [" ".join(words[i : i + 10]) for i in range(0, len(words), 10)]
    for name in ("text", "words.en", "words.de"):
        (tmp_path / name).write_text("\n".join(lines) + "\n" + hard_text(1, 2000), encoding="utf-8")
    for command in INPUTS:
        run(command).check_returncode()
    for command in COMMANDS:
        done = run(command)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
        assert done.returncode == 1 and len(lines) == 1, (command, done.stderr)
        assert MESSAGE in lines[0] and "full/" in lines[0], (command, done.stderr)
        # An unfinished data folder may remain, to be resumed; without its description, no command accepts it.
        assert not [path for path in full.iterdir() if path.is_file() or (path / DESCRIPTION).exists()], command
        for path in full.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
