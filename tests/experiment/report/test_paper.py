"""The paper's results: all of them are in one file, and the configurations and pages have them from there."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from paths import ROOT

pytest.importorskip("yaml", reason="PyYAML comes with the extra 'workflow'")

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import Config, load_config

CONFIGS = ROOT / "configs"
RESULTS = json.loads((ROOT / "tools" / "paper.json").read_text(encoding="utf-8"))
PAPER = sorted((ROOT.parent / "shared" / "paper").glob("*.txt"))
# Tables that tools/page_tables.py writes.
BLOCK = re.compile(r"<!-- ([\w. ]+): \w+ -->.*?<!-- end of \1 -->", re.DOTALL)
# A number with decimals that is not part of a longer one, such as a version.
DECIMAL = re.compile(r"(?<![\d.,])\d+\.\d+(?![\d.])")


def load(configuration: str, **overrides: object) -> Config:
    return load_config(CONFIGS / f"{configuration}.yaml", overrides)


def papers_numbers() -> set[str]:
    """Return all of the paper's results, as it prints them."""
    pairs = [(each["bpe"], each["scaffold"]) for each in [*RESULTS["figures"], *RESULTS["language_models"]]]
    percentages = [each["percent"] for each in [*RESULTS["gains"], RESULTS["scaffold_share"]]]
    return {number for pair in pairs for number in pair} | set(percentages)


@pytest.mark.parametrize(
    ("name", "text", "metric"),
    [
        ("wmt14_en_de", "WMT'14 En-De", "tokenised_bleu_split"),
        ("wmt14_en_de_gehring", "WMT'14 En-De", "tokenised_bleu"),
        ("wmt14_en_fr", "WMT'14 En-Fr", "tokenised_bleu"),
    ],
)
def test_published_scores_are_shown_beside_the_system_of_the_same_kind(name: str, text: str, metric: str) -> None:
    """Each of the paper's systems is compared with ours of the same algorithm and dropout."""
    scores = {figure["quantity"]: figure for figure in RESULTS["figures"] if figure["text"] == text}
    plain, dropout = scores["BLEU"], scores["BLEU, BPE-dropout"]
    papers = [each for each in load(name).compare_with if each.by == "Lian et al. 2025 (likely this BLEU)"]
    assert {each.beside: each.score for each in papers} == {
        "bpe": float(plain["bpe"]),
        "bpe_dropout": float(dropout["bpe"]),
        "scaffold": float(plain["scaffold"]),
        "scaffold_dropout": float(dropout["scaffold"]),
    }
    assert {(each.metric, each.test_set) for each in papers} == {(metric, "newstest2014")}


def test_a_test_set_that_is_not_there_is_refused() -> None:
    """The error names the key and the missing test set."""
    score = {"by": "x", "system": "x", "beside": "bpe", "metric": "bleu", "score": 1}
    with pytest.raises(UsageError, match=r"compare_with\[0\]\.test_set: no test set newstest2015"):
        load("wmt14_en_de", compare_with=[score | {"test_set": "newstest2015"}])


def test_a_published_score_of_a_metric_that_is_not_computed_is_refused() -> None:
    """Its column would have no other score, and an empty cell for our system."""
    with pytest.raises(UsageError, match=r"compare_with\[0\]\.metric: \w+ is not computed; add it to score\.metrics"):
        load("wmt14_en_de", score={"metrics": ["chrf"]})


def test_the_documentation_shows_the_papers_figures_as_the_data_file_has_them() -> None:
    """A script writes them, so no figure is copied by hand."""
    command = [sys.executable, "-c", _UNCHANGED, str(ROOT / "tools")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["paper.md"]


_UNCHANGED = """
import sys
sys.path.insert(0, sys.argv[1])
from page_tables import PAGES, with_tables
for page in PAGES:
    text = page.read_text(encoding="utf-8")
    assert with_tables(text) == text, f"{page}: run python tools/page_tables.py"
    if "<!-- paper.json" in text:
        print(page.name)
"""


needs_paper = pytest.mark.skipif(not PAPER, reason="needs the paper's source, ../shared/paper")


@needs_paper
def test_the_data_file_has_the_papers_results_all_of_them() -> None:
    """Each number is in the paper, and each result of the paper is in the file, shown or not."""
    source = PAPER[0].read_text(encoding="utf-8")
    numbers = papers_numbers()
    assert not {number for number in numbers if number not in source}
    tables = "".join(re.findall(r"\\begin\{tabular\}(.*?)\\end\{tabular\}", source, re.DOTALL)[:-1])
    results = {number for number in DECIMAL.findall(tables) if len(number.split(".")[1]) > 1}
    assert results <= numbers and len(results) > 100
    assert set(re.findall(r"([\d.]+)\\%", source)) <= numbers
