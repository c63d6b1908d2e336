"""Studies end with one line on stderr for bad input."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from paths import ROOT

pytest.importorskip("yaml", reason="PyYAML comes with the extra 'workflow'")
pytest.importorskip("scipy", reason="comes with the extra 'workflow'")

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration import load_experiment
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout


@pytest.mark.parametrize(
    "arguments",
    [
        ["dictionaries", "none", "none"],
        ["reference_bound", "none"],
        ["tokens_by_frequency", "none"],
        ["worth_of_bleu", "none", "--epochs", "1", "2"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_missing_folder_is_one_line(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a missing experiment or text is for mt-scaffold's own commands, not a traceback."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"studies.{arguments[0]}", run_name="__main__")
    (line,) = capsys.readouterr().err.splitlines()
    assert ended.value.code in (1, 2) and line.startswith(f"studies.{arguments[0]}: none")


def test_a_spread_needs_two_seeds(tmp_path: Path) -> None:
    """Of an experiment with scores of one seed or none, the spread over the seeds is unknown."""
    worth_of_bleu = pytest.importorskip("studies.worth_of_bleu", reason="needs the extra 'workflow'")
    layout = TranslationLayout.of(tmp_path / "demo", load_experiment(ROOT / "configs" / "demo.yaml"))
    with pytest.raises(MTScaffoldError, match="no system has scores of two seeds on test; train more seeds"):
        worth_of_bleu.spreads(layout, "test")
