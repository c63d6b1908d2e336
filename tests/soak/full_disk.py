"""Full disks: a command whose output does not fit must say so in one line, and leave no output that looks complete."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from segmenting import hard_text

from mt_scaffold.experiment.binarise.pairs_as_ids import DESCRIPTION

# The size of the file system in bytes, smaller than every output.
ROOM = 64 << 10
MESSAGE = "No space left on device"


class Unclear(Exception):
    """A command did not report the full disk as it should; the message says what happened."""


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
        "learn-bpe --algorithm parity": [
            *("learn-bpe", "--algorithm", "parity", "--symbols", "9000", "--input", text, text),
            *("--output", full / "codes"),
        ],
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


def trial(name: str, inputs: Inputs, full: Path) -> None:
    """Run one of the commands with its output on the full file system. Raises Unclear."""
    arguments = commands(inputs, full)[name]
    before = set(full.iterdir())
    done = _run(arguments)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
    # An unfinished data folder may remain, to be resumed; without its description, no command accepts it.
    left = {path.name for path in set(full.iterdir()) - before if path.is_file() or (path / DESCRIPTION).exists()}
    problem = None
    if done.returncode != 1:
        problem = f"status {done.returncode} instead of 1"
    elif len(lines) != 1 or MESSAGE not in lines[0]:
        problem = "not one line with the reason"
    elif str(full) not in lines[0]:
        problem = "the line does not say which file"
    elif left:
        problem = f"left {', '.join(sorted(left))}"
    for path in set(full.iterdir()) - before:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if problem:
        raise Unclear(f"{name}: {problem}; stderr: {done.stderr[-1000:]!r}")


@contextmanager
def full_disk(folder: Path) -> Iterator[Path | None]:
    """Mount a file system in memory with ROOM bytes at ``folder``; yield None if this user may not mount one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _run(arguments: list[object]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mt_scaffold", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, errors="backslashreplace")
