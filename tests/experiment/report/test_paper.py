"""The paper's results: shown next to ours only if N and the whole text are the paper's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

pytest.importorskip("yaml", reason="PyYAML comes with the extra 'workflow'")

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import Config, load_config
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.report.paper import (
    own_text,
    papers_codes,
    published_scores,
    read_paper,
    write_compression,
)

CONFIGS = ROOT / "configs"
PAPER = sorted((ROOT.parent / "shared" / "paper").glob("*.txt"))
# Tables that tools/page_tables.py writes.
BLOCK = re.compile(r"<!-- ([\w. ]+): \w+ -->.*?<!-- end of \1 -->", re.DOTALL)
# A number with decimals that is not part of a longer one, such as a version.
DECIMAL = re.compile(r"(?<![\d.,])\d+\.\d+(?![\d.])")


def load(configuration: str, **overrides: object) -> Config:
    return load_config(CONFIGS / f"{configuration}.yaml", overrides)


def papers_numbers() -> set[str]:
    """Return all of the paper's results, as it prints them."""
    paper = read_paper()
    pairs = [(each.bpe, each.scaffold) for each in paper.figures]
    pairs += [(each.bpe, each.scaffold) for each in paper.language_models]
    percentages = [each.percent for each in [*paper.gains, paper.scaffold_share]]
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
    config = load(name)
    scores = {figure.quantity: figure for figure in read_paper().figures if figure.text == text}
    plain, dropout = scores["BLEU"], scores["BLEU, BPE-dropout"]
    assert {each.beside: each.score for each in published_scores(config)} == {
        "bpe": float(plain.bpe),
        "bpe_dropout": float(dropout.bpe),
        "scaffold": float(plain.scaffold),
        "scaffold_dropout": float(dropout.scaffold),
    }
    assert {(each.metric, each.by) for each in published_scores(config)} == {
        (metric, "the Scaffold-BPE paper (likely this BLEU)")
    }
    alone = Config(**{**vars(config), "systems": {"bpe": config.systems["bpe"]}})
    assert [each.beside for each in published_scores(alone)] == ["bpe"]


@pytest.mark.parametrize(
    "own",
    [
        {"symbols": 1000},
        {"joint": False},
        {"vocabulary_threshold": 50},
        {"glossaries": ["URL"]},
        {"dropout_source": 0.1},
        {"dropout_target": 0.1},
    ],
    ids=str,
)
def test_a_system_that_segments_otherwise_is_not_the_papers(own: dict[str, object]) -> None:
    """Its codes have another N or are of one side, or it splits or samples words that the paper's does not."""
    config = load("wmt14_en_de", systems={"bpe": own})
    assert "bpe" not in [each.beside for each in published_scores(config)]
    assert {each.beside for each in published_scores(config)} >= {"scaffold", "scaffold_dropout"}


@pytest.mark.parametrize(
    "overrides",
    [{"data": {"sample": 1000}}, {"codes": {"symbols": 16000}}, {"paper": None}],
    ids=["sample", "N", "none"],
)
def test_a_sample_another_n_or_other_data_is_other_text(overrides: dict[str, object]) -> None:
    """The paper's results are about its own text, so they are left out."""
    assert own_text(load("wmt14_en_de")) == "WMT'14 En-De"
    config = load("wmt14_en_de", **overrides)
    assert own_text(config) is None and published_scores(config) == []


@pytest.mark.parametrize("name", ["wmt14_en_de", "wmt14_en_fr"])
def test_bytes_per_token_are_shown_beside_the_papers_before_any_training(tmp_path: Path, name: str) -> None:
    """They need only words and codes, and distinguish interpretations of the paper's data without a GPU."""
    layout = TranslationLayout(tmp_path, load(name))
    source, target = (layout.words("train", language) for language in layout.languages)
    codes = papers_codes(layout.config)
    assert set(codes) == {"bpe", "scaffold"}
    for path in (source, *map(layout.codes, codes.values())):
        path.parent.mkdir(parents=True, exist_ok=True)
    source.write_text("the the the\n", encoding="utf-8")
    target.write_text("the hat\n", encoding="utf-8")
    for name, merges in ((codes["bpe"], "t h\nth e</w>\nh a\nha t</w>"), (codes["scaffold"], "t h\nth e</w>")):
        layout.codes(name).write_text(f"#version: 0.2\n{merges}\n", encoding="utf-8")
    write_compression(layout)
    heading, _, bpe, scaffold, *_ = layout.compression.read_text(encoding="utf-8").splitlines()
    figures = [each for each in read_paper().figures if each.text == own_text(layout.config)]
    (figure,) = [each for each in figures if each.quantity == "bytes per token"]
    assert heading.split() == ["bytes", "per", "token", "here", "the", "paper", "difference"]
    # 18 bytes with the spaces: the (4 times), hat; or the (4 times), h, a, t.
    for line, tokens, paper in ((bpe, 5, figure.bpe), (scaffold, 7, figure.scaffold)):
        ours = 18 / tokens
        assert line.split()[-3:] == [f"{ours:.3f}", paper, f"{ours - float(paper):+.3f}"]


def test_bytes_per_token_of_other_text_are_not_beside_the_papers() -> None:
    """Nor are its scores."""
    assert papers_codes(load("demo")) == {} and papers_codes(load("wmt14_en_de", data={"sample": 9})) == {}
    assert list(papers_codes(load("wmt14_en_de", codes={"symbols": 40000}))) == ["bpe", "scaffold"]


def test_the_name_of_an_experiment_means_nothing() -> None:
    """Only the data matters, not the name of the experiment."""
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


def test_a_published_score_of_a_metric_that_is_not_computed_is_refused() -> None:
    """Its column would have no other score, and an empty cell for our system."""
    only_chrf = {"metrics": ["chrf"]}
    for key, without in (("paper", {"compare_with": []}), (r"compare_with\[0\]", {"paper": None})):
        with pytest.raises(UsageError, match=rf"{key}\.metric: \w+ is not computed; add it to score\.metrics"):
            load("wmt14_en_de", score=only_chrf, **without)


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
