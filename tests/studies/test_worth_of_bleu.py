"""``studies.worth_of_bleu`` on scores with known answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from paths import ROOT

pytest.importorskip("yaml", reason="PyYAML comes with the extra 'workflow'")
numpy = pytest.importorskip("numpy")
pytest.importorskip("scipy", reason="comes with the extra 'workflow'")

from mt_scaffold import MTScaffoldError  # noqa: E402
from mt_scaffold.experiment.configuration import load_experiment  # noqa: E402
from mt_scaffold.experiment.configuration.layout import Run  # noqa: E402
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout  # noqa: E402
from studies.worth_of_bleu import METRICS, slopes, spreads  # noqa: E402


def test_a_variance_counts_by_its_degrees_of_freedom(tmp_path: Path) -> None:
    """Of three seeds twice as much as of two: (2 · 1 + 1 · 8) / 3."""
    config = load_experiment(ROOT / "configs" / "demo.yaml", {"seeds": [1, 2, 3]})
    layout = TranslationLayout.of(tmp_path / "demo", config)
    layout.open().close()
    scored = {"bpe": (10.0, 11.0, 12.0), "scaffold": (10.0, 14.0)}
    for system, scores in scored.items():
        for seed, score in enumerate(scores, 1):
            path = layout.scores(Run(system, seed), "test")
            path.parent.mkdir(parents=True)
            metrics = {
                name: {"score": score, "signature": "", "text": "", "comparable": True, "segments": None}
                for name in METRICS
            }
            content = {
                "system": system,
                "test_set": "test",
                "seed": seed,
                "synthetic": True,
                "config": None,
                "lines": 1,
            }
            path.write_text(
                json.dumps(content | {"config": None, "metrics": metrics, "files": {}, "versions": {}}),
                encoding="utf-8",
            )
    assert spreads(layout, "test") == pytest.approx([(10 / 3) ** 0.5] * len(METRICS))
    layout.scores(Run("bpe", 1), "test").unlink()
    layout.scores(Run("bpe", 2), "test").unlink()
    layout.scores(Run("scaffold", 1), "test").unlink()
    with pytest.raises(MTScaffoldError, match="no system has scores of two seeds on test"):
        spreads(layout, "test")


def test_slopes_are_those_within_each_training() -> None:
    """Two trainings on parallel lines, the second of which starts elsewhere."""
    bleu = numpy.array([[10.0, 11.0, 13.0], [20.0, 22.0, 23.0]])
    other = 5 - 0.5 * bleu + numpy.array([[0.0], [100.0]])
    found = slopes(numpy.stack([bleu, other], axis=-1))
    assert found.tolist() == pytest.approx([1.0, -0.5])
