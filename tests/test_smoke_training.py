"""scripts/smoke_gpu.sh: a broken resume fails even on devices that never compute the same result twice."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest
from paths import ROOT

pytest.importorskip("torch", reason="needs the extra 'fairseq'")

sys.path.insert(0, str(ROOT / "scripts"))

from smoke_training import judge


def training(folder: Path, noise: float, resumed_at: int = 1, broken: float = 0) -> Path:
    """Write a log of 40 updates with random ``noise``; from ``resumed_at``, losses are higher by ``broken``."""
    folder.mkdir()
    chance, drift, lines = random.Random(folder.name), 0.0, []
    for update in range(1, 41):
        drift += chance.uniform(-noise, noise)
        loss = 9 - 0.05 * update + drift + (broken if update >= resumed_at else 0)
        lines.append(f"| INFO | train_inner | {json.dumps({'num_updates': str(update), 'loss': f'{loss:.3f}'})}\n")
    (folder / "train.log").write_text("".join(lines), encoding="utf-8")
    seen = {"processes": 1, "seconds": {update: 0.1 * update for update in range(resumed_at, 41)}}
    (folder / "seen.json").write_text(json.dumps(seen), encoding="utf-8")
    return folder


@pytest.mark.parametrize(("noise", "broken", "good"), [(0.004, 0, True), (0.004, 0.1, False), (0.004, -0.1, False)])
def test_a_resume_may_differ_as_undisturbed_trainings_do(
    tmp_path: Path, noise: float, broken: float, good: bool
) -> None:
    """A difference between two undisturbed trainings must not excuse one that resumed with a different state."""
    whole, again = training(tmp_path / "whole", noise), training(tmp_path / "again", noise)
    assert judge(whole, again, training(tmp_path / "resumed", noise, 31, broken)) == good


def test_a_resume_that_skips_updates_is_broken(tmp_path: Path) -> None:
    """Even if all of its other losses are equal."""
    whole, again, resumed = (training(tmp_path / name, 0, 31) for name in ("whole", "again", "resumed"))
    assert judge(whole, again, resumed)
    log = resumed / "train.log"
    log.write_text("".join(log.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), encoding="utf-8")
    assert not judge(whole, again, resumed)
