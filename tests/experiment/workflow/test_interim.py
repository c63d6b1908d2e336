"""Scores while other trainings run: on the line of their step, and in a table once every system has a seed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sacrebleu", reason="needs the extra 'workflow'")
pytest.importorskip("snakemake", reason="needs the extra 'workflow'")

from test_workflow import CONFIGURATION, settings

from mt_scaffold.experiment.binarise.dictionary import read_dictionary
from mt_scaffold.experiment.configuration.layout import Run
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.evaluation.score import Origin, Scoring, Texts, score
from mt_scaffold.experiment.workflow.interim import Interim

TWO_SEEDS = CONFIGURATION.replace("seeds: [1]", "seeds: [1, 2]")


def scored(layout: TranslationLayout, system: str, seed: int) -> str:
    """Score a translation of two sentences; in that of the second seed, one is wrong."""
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
    """Not only after the last training; scores of earlier settings, which will be recomputed, do not count."""
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


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """An experiment of two seeds, run on one core to completion: its folder, and its output.

    The text is not tokenised and has words such as `@@`, which the whole experiment must keep.
    """
    folder = tmp_path_factory.mktemp("interim")
    text = re.sub("max-epoch: [0-9]+", "max-epoch: 3", TWO_SEEDS)
    settings(folder, f"{text}tokenise: none\n")
    for path in (folder / "text").iterdir():
        lines = path.read_text(encoding="utf-8").splitlines()
        marked = [f"@@ -{number} @@ {line}{'' if number % 10 else ' foo@@'}\n" for number, line in enumerate(lines)]
        path.write_text("".join(marked), encoding="utf-8")
    command = [sys.executable, "-m", "mt_scaffold", "run", "tiny.yaml", "--cores", "1"]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return folder / "experiments" / "tiny", done.stdout


@pytest.mark.long
def test_the_first_seed_is_scored_before_the_others_train(rehearsal: tuple[Path, str]) -> None:
    """Even on one core, the first seed of every system has its scores as early as possible."""
    _, shown = rehearsal
    steps = re.findall(r"^\[\d+/\d+\] (train|score) (\w+), seed (\d)", shown, re.MULTILINE)
    assert [seed for _, _, seed in steps] == ["1"] * 4 + ["2"] * 4, shown
    assert re.search(r"^\[\d+/\d+\] score [^(]*\(BLEU \d+\.\d\d\)", shown, re.MULTILINE), shown
    assert shown.count("So far, seed 1 alone:") == 1


@pytest.mark.long
def test_words_spelt_like_the_separator_reach_the_report(rehearsal: tuple[Path, str]) -> None:
    """Their losses once failed after training: now the check warns, and the dictionary and the losses include them."""
    folder, shown = rehearsal
    assert shown.count("words end in '@@' (this is the first") == 1
    reference = (folder.parents[1] / "text" / "test.de").read_bytes().splitlines()
    for system in ("bpe", "scaffold"):
        names = {name for name, _ in read_dictionary(folder / "dictionaries" / f"{system}-150" / "dict.de.txt")}
        assert {"@@", "foo@@</w>"} <= names
        losses = json.loads((folder / system / "seed-1" / "scores" / "test.losses.json").read_text(encoding="utf-8"))
        assert losses["sizes"] == [len(line) for line in reference]
    assert re.search(r"^test +scaffold ", (folder / "comparison.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert (folder / "report.html").stat().st_size > 0
