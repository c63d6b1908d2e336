"""Full disks: a command whose output does not fit must say so in one line, and leave no output that looks complete."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from segmenting import hard_text

from mt_scaffold.experiment.binarise.pairs_as_ids import DESCRIPTION

# The size of the file system in bytes, smaller than every output.
ROOM = 64 << 10
MESSAGE = "No space left on device"


class Inputs(NamedTuple):
    """The input files of the commands."""

    text: Path
    codes: Path
    byte_codes: Path
    counts: Path
    ids: Path
    unigram: Path


def prepare(folder: Path) -> Inputs:
    """Write the inputs into ``folder``."""
    draw = random.Random(1)
    inputs = Inputs(*(folder / name for name in ("text", "codes", "byte.codes", "counts", "ids.bin", "unigram.model")))
    # Twice each, so that many pairs of symbols are frequent enough.
    words = 2 * ["".join(draw.choice("abcdefghijklmnop") for _ in range(draw.randint(3, 12))) for _ in range(20_000)]
    lines = [" ".join(words[i : i + 10]) for i in range(0, len(words), 10)]
    inputs.text.write_text("\n".join(lines) + "\n" + hard_text(1, 2000), encoding="utf-8")
    for language in ("en", "de"):
        shutil.copyfile(inputs.text, folder / f"words.{language}")
    for arguments in (
        ["learn-bpe", "--symbols", "8000", "--input", inputs.text, "--output", inputs.codes],
        [
            "learn-bpe",
            "--pretokenise",
            "gpt2",
            "--symbols",
            "500",
            "--input",
            inputs.text,
            "--output",
            inputs.byte_codes,
        ],
        ["count-words", "--input", inputs.text, "--output", inputs.counts],
        ["encode", "--codes", inputs.byte_codes, "--input", inputs.text, "--output", inputs.ids],
        ["learn-unigram", "--symbols", "200", "--input", inputs.text, "--output", inputs.unigram],
    ):
        _run(arguments).check_returncode()
    return inputs


def commands(inputs: Inputs, full: Path) -> dict[str, list[object]]:
    """Return every command that writes as much as a text, with its output in ``full``."""
    text, codes = inputs.text, inputs.codes
    words = [*("--source-lang", "en", "--target-lang", "de", "--codes", codes)]
    for part in ("train", "valid", "test"):
        words += [f"--{part}", inputs.text.parent / "words"]
    return {
        "learn-bpe": ["learn-bpe", "--symbols", "9000", "--input", text, "--output", full / "codes"],
        "trim": ["trim", codes, "--below", "5", "--input", text, "--output", full / "codes"],
        "apply-bpe": ["apply-bpe", "--codes", codes, "--input", text, "--output", full / "subwords"],
        "apply-bpe .gz": ["apply-bpe", "--codes", codes, "--input", text, "--output", full / "subwords.gz"],
        "learn-unigram": ["learn-unigram", "--symbols", "9000", "--input", text, "--output", full / "unigram.model"],
        "apply-unigram": ["apply-unigram", "--codes", inputs.unigram, "--input", text, "--output", full / "pieces"],
        "get-vocab": ["get-vocab", "--input", text, "--output", full / "vocabulary"],
        "count-words": ["count-words", "--input", text, "--output", full / "counts"],
        "learn-joint-bpe-and-vocab": [
            *("learn-joint-bpe-and-vocab", "--symbols", "9000", "--input", text, "--output", full / "codes"),
            *("--write-vocabulary", full / "vocabulary"),
        ],
        "encode": ["encode", "--codes", inputs.byte_codes, "--input", text, "--output", full / "ids.bin"],
        "decode": ["decode", "--codes", inputs.byte_codes, "--input", inputs.ids, "--output", full / "text"],
        "tokenise": ["tokenise", "--language", "de", "--input", text, "--output", full / "words"],
        "clean": [
            *(
                "clean",
                "--source",
                text,
                "--target",
                text,
                "--output-source",
                full / "en",
                "--output-target",
                full / "de",
            ),
            *("--max-ratio", "9"),
        ],
        "binarise": ["binarise", *words, "--output", full / "binarised"],
        "binarise-words": ["binarise-words", *words, "--output", full / "on-the-fly"],
    }


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
    inputs = prepare(tmp_path)
    for name, arguments in commands(inputs, full).items():
        done = _run(arguments)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
        assert done.returncode == 1 and len(lines) == 1, (name, done.stderr)
        assert MESSAGE in lines[0] and str(full) in lines[0], (name, done.stderr)
        # An unfinished data folder may remain, to be resumed; without its description, no command accepts it.
        assert not [path for path in full.iterdir() if path.is_file() or (path / DESCRIPTION).exists()], name
        for path in full.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _run(arguments: list[object]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mt_scaffold", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, errors="backslashreplace")
