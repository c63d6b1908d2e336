"""Shared by the tests of other trainers: the files and commands of docs/trainers.md, and a small parallel text.

The programs run on mt_scaffold in place of subword-nmt, exactly as on the page. ``make test-integrations`` creates the
environment in which they are installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from mt_scaffold import BPE, learn_bpe, read_codes
from mt_scaffold.experiment.data.synthetic import sentence_pairs

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "trainers.md").read_text(encoding="utf-8")
OURS = ROOT / "mt_scaffold" / "subword_nmt" / "apply_bpe.py"
LANGUAGES = ("en", "de")
# The number of sentence pairs in each text.
SIZES = {"train": 300, "valid": 20, "test": 10}


def file_of_the_page(name: str) -> str:
    """Return a file that the page tells its readers to copy."""
    return (ROOT / "docs" / "trainers" / name).read_text(encoding="utf-8")


def commands_of_the_page(heading: str) -> str:
    """Return the shell commands under a heading, in order."""
    _, _, after = PAGE.partition(f"\n## {heading}\n")
    blocks = re.findall(r"```sh\n(.*?)```", after.partition("\n## ")[0], re.DOTALL)
    assert blocks, heading
    return "".join(blocks)


def run(script: str, folder: Path) -> str:
    """Run shell commands in a folder and return what they print on both streams."""
    paths = [os.path.join(sys.prefix, "bin"), os.environ["PATH"]]
    # A fixture of the other tests makes programs find empty packages.
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    python = [str(ROOT), *(path for path in others if path and "left-out-by-conftest" not in path)]
    environment = {
        **os.environ,
        "PATH": os.pathsep.join(paths),
        "PYTHONPATH": os.pathsep.join(python),
        "CUDA_VISIBLE_DEVICES": "",
        # With more threads than free cores, the trainings of such small models take twenty times as long.
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout[-5000:]}"
    return done.stdout


def prepare(folder: Path, algorithm: str) -> None:
    """Write {train,valid,test}.{en,de} and ``codes``, learned from the training text of both languages."""
    pairs = sentence_pairs(1, stems=60)
    for name, size in SIZES.items():
        chosen = [next(pairs) for _ in range(size)]
        for side, language in enumerate(LANGUAGES):
            (folder / f"{name}.{language}").write_text("".join(f"{pair[side]}\n" for pair in chosen), encoding="utf-8")
    texts = [folder / f"train.{language}" for language in LANGUAGES]
    learn_bpe(paths=texts, outfile=folder / "codes", num_symbols=150, algorithm=algorithm)
    assert any(not merge.normal for merge in read_codes(folder / "codes")) == (algorithm == "scaffold")


def lines(path: Path) -> list[str]:
    """Return the lines of a text."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def subwords(folder: Path, text: str) -> list[str]:
    """Return the lines of a text as ``apply-bpe`` segments them."""
    bpe = BPE(folder / "codes")
    return [bpe.segment(line) for line in lines(folder / text)]


def check_dropout(folder: Path, text: str, sampled: list[str]) -> None:
    """Check that lines are a text segmented with dropout: different from without, and without scaffold tokens."""
    bpe = BPE(folder / "codes")
    assert [bpe.join(line) for line in sampled] == lines(folder / text)
    plain = subwords(folder, text)
    different = sum(one != other for one, other in zip(sampled, plain, strict=True))
    assert different > len(plain) / 2
    assert len(" ".join(sampled).split()) > len(" ".join(plain).split())
    # Characters that are in no merge are left as they are.
    unknown = {subword for line in sampled for subword in line.split()} - set(bpe.surface_forms())
    assert all(len(subword.removesuffix("@@")) == 1 for subword in unknown)


def check_losses(losses: list[float]) -> None:
    """Check that a training logged losses that are all finite and fell."""
    assert len(losses) >= 4 and all(0 < loss < 100 for loss in losses), losses
    assert losses[-1] < 0.9 * losses[0], losses
