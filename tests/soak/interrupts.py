"""A training that is interrupted with Ctrl-C at random moments must end with the model of an undisturbed one."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from conftest import TINY_MODEL

INTERRUPTS = 10
PRECISIONS = {"fp32": [], "bf16": ["--bf16"]}
UPDATES = 2000
_INTERRUPTED = re.compile(r"interrupted after update (\d+); the same command resumes")


class Different(Exception):
    """An interrupted training did not end as it should; the message says how."""


def make_data(folder: Path) -> Path:
    """Return a data folder of generated pairs."""
    from mt_scaffold.experiment.binarise.pairs_as_ids import binarise
    from mt_scaffold.experiment.binarise.segmentation import joint_segmentation
    from mt_scaffold.experiment.data.synthetic import sentence_pairs
    from mt_scaffold.methods.learn import learn_bpe

    pairs = sentence_pairs(1)
    for name, number in {"train": 300, "valid": 20}.items():
        chosen = [next(pairs) for _ in range(number)]
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in chosen)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")
    learn_bpe(paths=[folder / "train.en", folder / "train.de"], outfile=folder / "codes", num_symbols=150)
    segmentation = joint_segmentation(folder / "codes")
    binarise(folder / "data", "en", "de", segmentation, folder / "train", folder / "valid")
    return folder / "data"


def trial(data: Path, precision: str, seed: int, folder: Path) -> list[int]:
    """Train twice, interrupt one training INTERRUPTS times, and return after which updates. Raises Different."""
    draw, stopped = random.Random(seed), folder / "interrupted"
    command = [sys.executable, "-m", "mt_scaffold", "train", "--data", str(data), "--seed", str(seed), "--output"]
    options = ["--", *TINY_MODEL, *PRECISIONS[precision], "--max-update", str(UPDATES), "--no-epoch-checkpoints"]
    begin = time.monotonic()
    subprocess.run([*command, str(folder / "whole"), *options], check=True, stderr=subprocess.DEVNULL)
    longest = time.monotonic() - begin
    updates: list[int] = []
    while len(updates) < INTERRUPTS:
        process = subprocess.Popen(
            [*command, str(stopped), *options], stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        # At any time from the start of the program, but mostly during updates.
        _wait_for_updates(process, stopped, draw.random() < 0.8)
        time.sleep(draw.random() * longest / (2 * INTERRUPTS))
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate(timeout=600)[1]
        found = _INTERRUPTED.search(said)
        # If Python has not started yet, the signal itself ends the process.
        ended = 128 + signal.SIGINT if found or process.returncode > 0 else -signal.SIGINT
        if process.returncode != ended or (found is None and said.strip()):
            raise Different(f"after {updates}: status {process.returncode}, {said[-500:]}")
        updates.append(int(found[1]) if found else -1)
    subprocess.run([*command, str(stopped), *options], check=True, stderr=subprocess.DEVNULL)
    log = (stopped / "train.log").read_text(encoding="utf-8")
    if "Traceback" in log:
        raise Different(f"a traceback in {stopped / 'train.log'}")
    differing = [name for name, same in compare(folder / "whole", stopped).items() if not same]
    if differing:
        raise Different(f"interrupted after updates {updates}: these differ: {', '.join(differing[:5])}")
    return updates


def _wait_for_updates(process: subprocess.Popen[str], training: Path, updates: bool) -> None:
    """If ``updates``, wait until this start of a training begins an epoch."""
    log = training / "train.log"
    size = log.stat().st_size if log.exists() else 0
    while updates and process.poll() is None:
        if log.exists():
            with open(log, "rb") as stream:
                stream.seek(size)
                if b"begin training epoch" in stream.read():
                    return
        time.sleep(0.05)


def compare(whole: Path, other: Path) -> dict[str, bool]:
    """Return tensor of the model or optimiser → whether it is in both trainings, and identical bit for bit."""
    import torch

    from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint

    states = [load_checkpoint(folder / "checkpoints" / "checkpoint_last.pt") for folder in (whole, other)]
    tensors: list[dict[str, Any]] = []
    for state in states:
        found = {f"model.{name}": tensor for name, tensor in state["model"].items()}
        for number, moments in state["last_optimizer_state"]["state"].items():
            found |= {f"optimiser.{number}.{name}": value for name, value in moments.items()}
        tensors.append(found)
    return {
        name: all(name in found for found in tensors)
        and torch.equal(torch.as_tensor(tensors[0][name]), torch.as_tensor(tensors[1][name]))
        for name in tensors[0] | tensors[1]
    }
