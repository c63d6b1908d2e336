"""The paper's figures: shown beside ours only where the text, all of it, and N are the paper's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("yaml", reason="PyYAML comes with the extra 'workflow'")

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import Config, load_config
from mt_scaffold.experiment.paper import own_text, published_scores, read_paper

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = ROOT / "configs"


def load(configuration: str, **overrides: object) -> Config:
    return load_config(CONFIGS / f"{configuration}.yaml", overrides)


def test_published_scores_are_shown_beside_the_system_of_the_same_kind() -> None:
    """Each of the paper's systems is compared with ours of the same algorithm and dropout."""
    found = {(each.beside, each.score, each.metric) for each in published_scores(load("wmt14_en_de"))}
    assert found == {
        ("bpe", 29.31, "tokenised_bleu_split"),
        ("bpe_dropout", 29.50, "tokenised_bleu_split"),
        ("scaffold", 29.76, "tokenised_bleu_split"),
        ("scaffold_dropout", 29.78, "tokenised_bleu_split"),
    }
    config = load("wmt14_en_fr")
    assert [each.score for each in published_scores(config)] == [43.20, 43.44, 43.81, 43.83]
    alone = Config(**{**vars(config), "systems": {"bpe": config.systems["bpe"]}})
    assert [each.beside for each in published_scores(alone)] == ["bpe"]


@pytest.mark.parametrize(
    "overrides",
    [{"data": {"sample": 1000}}, {"codes": {"symbols": 16000}}, {"paper": None}],
    ids=["sample", "N", "none"],
)
def test_a_sample_another_n_or_other_data_is_other_text(overrides: dict[str, object]) -> None:
    """The paper's figures are about its own text, so they are left out."""
    assert own_text(load("wmt14_en_de")) == "WMT'14 En-De"
    config = load("wmt14_en_de", **overrides)
    assert own_text(config) is None and published_scores(config) == []


def test_the_name_of_an_experiment_means_nothing() -> None:
    """What counts is the data, not what the experiment is called."""
    assert own_text(load("demo", name="wmt14_en_de")) is None


def test_every_figure_names_a_text_and_its_place() -> None:
    """A reader can look up each figure in the paper."""
    paper = read_paper()
    assert {figure.text for figure in paper.figures} == set(paper.texts)
    assert all(figure.place and float(figure.bpe) and float(figure.scaffold) for figure in paper.figures)
    assert all(0 < float(gain.percent) < 100 and gain.place for gain in [*paper.gains, paper.scaffold_share])


def test_a_test_set_that_is_not_there_is_refused() -> None:
    """The error names the key and the missing test set."""
    with pytest.raises(UsageError, match=r"paper\.test_set: no test set newstest2015"):
        load("wmt14_en_de", paper={"test_set": "newstest2015"})


def test_the_documentation_shows_the_papers_figures_as_the_data_file_has_them() -> None:
    """A script writes them, so no figure is copied by hand."""
    command = [sys.executable, "-c", _UNCHANGED, str(ROOT / "scripts")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["statistics.md", "wmt14.md"]


_UNCHANGED = """
import sys
sys.path.insert(0, sys.argv[1])
from paper_tables import DOCS, with_tables
for page in sorted(DOCS.glob("*.md")):
    text = page.read_text(encoding="utf-8")
    assert with_tables(text) == text, f"{page}: run python scripts/paper_tables.py"
    if "<!-- paper.json" in text:
        print(page.name)
"""
