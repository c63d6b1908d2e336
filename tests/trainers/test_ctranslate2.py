"""CTranslate2's own converter takes a model of the plug-in, as docs/models.md shows, and computes as fairseq does."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path

import pytest
from trainers import ROOT, SIZES, lines, prepare, run, subwords

if importlib.util.find_spec("ctranslate2") is None:
    pytest.skip("CTranslate2 is not installed; run make test-integrations", allow_module_level=True)

TRAIN = """
mt-scaffold binarise --train train --valid valid --test test --source-lang en --target-lang de --codes codes \
    --output data
mt-scaffold train --data data --output model -- --arch transformer --encoder-layers 1 --decoder-layers 1 \
    --encoder-embed-dim 32 --decoder-embed-dim 32 --encoder-ffn-embed-dim 64 --decoder-ffn-embed-dim 64 \
    --encoder-attention-heads 2 --decoder-attention-heads 2 --share-all-embeddings --optimizer adam --lr 0.005 \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --max-tokens 1000 --max-epoch 8
"""
PATHS = {
    "experiments/demo/scaffold/seed-1/averaged.pt": "model/checkpoints/checkpoint_last.pt",
    "DICTIONARIES": "data",
}


@pytest.mark.parametrize("algorithm", ["scaffold", "bpe"])
def test_converted_models_compute_as_fairseq_does(tmp_path: Path, algorithm: str) -> None:
    """The reference of each test sentence has the log-probability that fairseq gives it."""
    from mt_scaffold.experiment.evaluation.losses.references import forced_decode

    prepare(tmp_path, algorithm)
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    for path, own in PATHS.items():
        assert path in command
        command = command.replace(path, own)
    run(TRAIN + command, tmp_path)
    expected = forced_decode(tmp_path / "model" / "checkpoints" / "checkpoint_last.pt", tmp_path / "data", "test")
    # After PyTorch, whose import crashed here when this came first.
    import ctranslate2

    translator = ctranslate2.Translator(str(tmp_path / "translator"), intra_threads=1)
    known = {line.split(" ")[0] for line in lines(tmp_path / "data" / "dict.de.txt")}
    sides = [[line.split() for line in subwords(tmp_path, f"test.{side}")] for side in ("en", "de")]
    found = translator.score_batch(sides[0], sides[1])
    compared = 0
    for scored, target, wanted in zip(found, sides[1], expected.log2_probabilities, strict=True):
        if known.issuperset(target):
            compared += 1
            assert sum(scored.log_probs) / math.log(2) == pytest.approx(float(wanted.sum()), abs=1e-3)
    assert compared >= SIZES["test"] - 2
    translated = translator.translate_batch(sides[0], beam_size=4, max_decoding_length=50)
    assert len(translated) == SIZES["test"] and all(each.hypotheses[0] for each in translated)
