"""Scores while others still train: on the line of their step, and in a table once every system has a seed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sacrebleu", reason="needs the extra 'workflow'")
pytest.importorskip("snakemake", reason="needs the extra 'workflow'")

from test_workflow import CONFIGURATION, settings

from mt_scaffold.experiment.configuration.layout import Run
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.evaluation.score import Origin, Scoring, Texts, score
from mt_scaffold.experiment.workflow.interim import Interim

TWO_SEEDS = CONFIGURATION.replace("seeds: [1]", "seeds: [1, 2]")


def scored(layout: TranslationLayout, system: str, seed: int) -> str:
    """Score a translation of two sentences, of which the second seed has one wrong."""
    references = ["der Hund läuft schnell im Garten", "die Katze schläft langsam im Haus"]
    found = [references[0], references[1] if seed == 1 else "ja"]
    for name, lines in (("ref", references), (f"{system}-{seed}", found)):
        (layout.folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    path = layout.scores(Run(system, seed), "test")
    path.parent.mkdir(parents=True)
    texts = Texts(layout.folder / f"{system}-{seed}", [layout.folder / "ref"])
    score(texts, path, Scoring(metrics=["bleu"]), Origin(system=system, test_set="test", seed=seed))
    return str(path)


def test_a_table_appears_with_the_first_seed_of_every_system(tmp_path: Path) -> None:
    """Not after the last training; scores of earlier settings, which are to be made again, do not count."""
    (tmp_path / "config.yaml").write_text(TWO_SEEDS, encoding="utf-8")
    layout = TranslationLayout.read(tmp_path)
    stale = scored(layout, "scaffold", 1)
    interim = Interim(layout, map(str, layout.every_scores()))
    first = scored(layout, "bpe", 1)
    assert interim.after(["a", first]) == ("BLEU 100.00", "")
    assert interim.after(["averaged.pt"]) == ("", "")
    shown, table = interim.after([stale])
    assert shown == "BLEU 100.00" and table.startswith("\nSo far, seed 1 alone:\n\ntest set ")
    assert re.search("test +bpe +100.00\ntest +scaffold +100.00\n", table)
    last = [scored(layout, system, 2) for system in ("bpe", "scaffold")]
    assert interim.after(last[:1])[1] == "" and interim.after(last[1:])[1] == ""


@pytest.mark.long
def test_the_first_seed_is_scored_before_the_others_train(tmp_path: Path) -> None:
    """Of every system, on one core: what an hour has found is there after an hour."""
    settings(tmp_path, re.sub("max-epoch: [0-9]+", "max-epoch: 3", TWO_SEEDS))
    command = [sys.executable, "-m", "mt_scaffold", "run", "tiny.yaml", "--cores", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    steps = re.findall(r"^\[\d+/\d+\] (train|score) (\w+), seed (\d)", done.stdout, re.MULTILINE)
    assert [seed for _, _, seed in steps] == ["1"] * 4 + ["2"] * 4, done.stdout
    assert re.search(r"^\[\d+/\d+\] score [^(]*\(BLEU \d+\.\d\d\)", done.stdout, re.MULTILINE), done.stdout
    assert done.stdout.count("So far, seed 1 alone:") == 1
