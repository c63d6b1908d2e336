"""The disk space that ``check`` estimates, compared with a training's checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import TINY_MODEL

from mt_scaffold.experiment.binarise.dictionary import read_ids
from mt_scaffold.experiment.runtime.fairseq import options_in
from mt_scaffold.experiment.runtime.fairseq_options import Call, check_options
from mt_scaffold.experiment.training.train import train
from mt_scaffold.experiment.workflow.checking import checkpoint_size

pytest.importorskip("fairseq", reason="comes with the extra 'fairseq'")


def test_a_checkpoint_has_the_size_that_is_predicted(tiny_data: Path, tmp_path: Path) -> None:
    """In half precision it also has an fp32 copy, and shared embeddings under each of their three names."""
    options = " ".join(TINY_MODEL).replace("coder-embed-dim 16", "coder-embed-dim 256").split()
    # One update is an epoch.
    options += ["--bf16", "--max-tokens", "20000"]
    train(tiny_data, tmp_path, [*options, "--max-epoch", "1"], seed=7)
    entries = len(read_ids(tiny_data / "dict.en.txt")) + 4
    checked = check_options([Call("train", {"task": "translation_resumable"} | options_in(options), [entries])])
    (parameters,), (saved,) = checked.parameters, checked.saved
    assert parameters is not None and saved is not None and saved > 1.1 * parameters
    names = options_in(options).keys()
    predicted = checkpoint_size(parameters, saved, names)
    checkpoints = sorted((tmp_path / "checkpoints").glob("checkpoint*.pt"))
    assert [path.name for path in checkpoints] == ["checkpoint1.pt", "checkpoint_best.pt", "checkpoint_last.pt"]
    for path in checkpoints:
        assert path.stat().st_size == pytest.approx(predicted, rel=0.05)
    assert checkpoint_size(parameters, parameters, names - {"bf16"}) == 12 * parameters
