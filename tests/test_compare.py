"""The comparison: means, spread, and sacreBLEU's paired bootstrap test."""

import csv
import dataclasses
import json
import random
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from mt_scaffold.errors import MTScaffoldError, UsageError

pytest.importorskip("sacrebleu", reason="needs the extra 'workflow'")

from mt_scaffold.experiment.compare import compare
from mt_scaffold.experiment.comparison import SYNTHETIC_NOTE, Comparison, Row, Spread
from mt_scaffold.experiment.comparison_tables import as_text
from mt_scaffold.experiment.configuration import Published
from mt_scaffold.experiment.results import read_result, to_plain
from mt_scaffold.experiment.score import score

VOCABULARY = "der die das Hund Katze läuft schläft im Haus Garten schnell langsam und".split()


def disturbed(lines: list[str], share: float, seed: int) -> list[str]:
    """Return the lines with a share of their words replaced."""
    draw = random.Random(seed)
    return [
        " ".join(draw.choice(VOCABULARY) if draw.random() < share else word for word in line.split()) for line in lines
    ]


def metric(row: Row, name: str = "bleu") -> Spread:
    """A metric that the row must have."""
    spread = row.metric(name)
    assert spread is not None, f"{row.system} has no {name}"
    return spread


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Scores of two systems, the second better, each with two seeds, on one generated test set."""
    folder = tmp_path_factory.mktemp("scores")
    draw = random.Random(1)
    references = [" ".join(draw.choices(VOCABULARY, k=12)) for _ in range(80)]
    (folder / "ref").write_text("\n".join(references) + "\n", encoding="utf-8")
    found = []
    for system, share in (("scaffold", 0.2), ("bpe", 0.4)):
        for seed in (1, 2):
            name = f"{system}-{seed}"
            lines = disturbed(references, share, seed)
            (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
            files = (folder / name, folder / "ref", folder / f"{name}.json", folder / name, folder / "ref")
            score(*files, system=system, test_set="made_up", seed=seed, synthetic=True)
            found.append(folder / f"{name}.json")
    return found


def test_mean_and_spread_are_over_the_seeds(scores: list[Path]) -> None:
    """Mean and standard deviation are those of the seeds' own scores."""
    rows = compare(scores, "bpe", samples=50).rows
    assert [row.system for row in rows] == ["bpe", "scaffold"]
    for row in rows:
        for name in ("bleu", "chrf", "tokenised_bleu", "tokenised_bleu_split"):
            single = [
                json.loads(path.read_text())["metrics"][name]["score"] for path in scores if row.system in path.name
            ]
            assert metric(row, name).mean == pytest.approx(statistics.mean(single))
            assert metric(row, name).sd == pytest.approx(statistics.stdev(single))
    assert metric(rows[1]).mean > metric(rows[0]).mean


def test_p_values_are_those_of_the_sacrebleu_command(scores: list[Path]) -> None:
    """Anyone can check them with sacreBLEU alone."""
    row = compare(scores, "bpe", samples=100).rows[1]
    assert row.p["bleu"].keys() == {"1", "2"}
    folder = scores[0].parent
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "sacrebleu", str(folder / "ref"), "-f", "text", "-m", "bleu", "chrf"]
        command += ["-i", str(folder / f"bpe-{seed}"), str(folder / f"scaffold-{seed}")]
        command += ["--paired-bs", "--paired-bs-n", "100"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        bleu, chrf = (float(p) for p in re.findall(r"\(p = ([0-9.]+)\)", printed))
        assert row.p["bleu"][seed] == pytest.approx(bleu, abs=1e-4)
        assert row.p["chrf"][seed] == pytest.approx(chrf, abs=1e-4)


def test_equal_translations_do_not_differ_significantly(scores: list[Path], tmp_path: Path) -> None:
    """sacreBLEU itself gives them its smallest p."""
    same = json.loads(scores[2].read_text())
    copy = scores[2].with_name("copy.json")
    copy.write_text(json.dumps({**same, "system": "copy"}))
    row = compare([scores[2], copy], "bpe", samples=50).rows[1]
    assert row.p == {"bleu": {"1": 1.0}, "chrf": {"1": 1.0}}
    assert metric(row).sd is None


def test_every_form_of_the_table_says_that_the_data_is_synthetic(scores: list[Path], tmp_path: Path) -> None:
    """No copy of the table can pass for a result on real data."""
    comparison = compare(scores, "bpe", tmp_path / "table", samples=50, title="demo")
    for kind in ("txt", "md"):
        text = (tmp_path / f"table.{kind}").read_text(encoding="utf-8")
        assert SYNTHETIC_NOTE in text and "not comparable" in text and "±" in text and "tok:13a" in text
    assert read_result(Comparison, tmp_path / "table.json") == comparison
    with open(tmp_path / "table.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["synthetic"] for row in rows] == ["True", "True"]
    assert float(rows[1]["bleu_mean"]) == metric(comparison.rows[1]).mean and rows[1]["p_bleu"].count(" ") == 1


def test_real_data_is_not_called_synthetic(scores: list[Path]) -> None:
    """The note is for generated text only."""
    comparison = compare(scores, "bpe", samples=50)
    assert SYNTHETIC_NOTE not in as_text(dataclasses.replace(comparison, synthetic=False))


def test_what_does_not_fit_together_is_refused(scores: list[Path], tmp_path: Path) -> None:
    """An unknown baseline, duplicate scores and malformed files are refused, each with the reason."""
    with pytest.raises(UsageError, match="baseline bep is not among the systems with scores: scaffold, bpe"):
        compare(scores, "bep")
    with pytest.raises(UsageError, match="same test set, system and seed"):
        compare([*scores, scores[0]], "bpe")
    with pytest.raises(UsageError, match="1 or more, not 0"):
        compare(scores, "bpe", samples=0)
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(MTScaffoldError, match=r"x\.json: system: missing; run the step that writes this file again"):
        compare([tmp_path / "x.json"], "bpe")
    scored = json.loads(scores[0].read_text())["metrics"]
    for part, content, says in (
        ("files", {}, "does not name the hypothesis file; score again"),
        ("metrics", {}, "has no BLEU score; score again"),
        ("metrics", scored | {"ter": scored["bleu"]}, "holds an unknown metric, ter; score again"),
        ("metrics", {"bleu": 3}, "metrics.bleu: must be 'key: value' lines, not 3"),
        ("metrics", {"bleu": {"score": "high"}}, "metrics.bleu.score: must be a number, not 'high'"),
    ):
        (tmp_path / "x.json").write_text(json.dumps(json.loads(scores[0].read_text()) | {part: content}))
        with pytest.raises(MTScaffoldError, match=rf"x\.json: {says}"):
            compare([tmp_path / "x.json"], json.loads(scores[0].read_text())["system"])
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(MTScaffoldError, match=r"x\.json: not JSON"):
        compare([tmp_path / "x.json"], "bpe")


def test_a_translation_that_has_changed_since_it_was_scored_is_noticed(scores: list[Path], tmp_path: Path) -> None:
    """The test on the sentences must be about the same translations as the scores."""
    for path in scores[0].parent.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    with open(tmp_path / "scaffold-1", "a", encoding="utf-8") as stream:
        stream.write("mehr\n")
    with pytest.raises(MTScaffoldError, match=r"scaffold-1: has changed since .*scaffold-1\.json was written"):
        compare([tmp_path / path.name for path in scores], "bpe", samples=50)


def test_the_t_test_over_the_seeds_is_welchs(scores: list[Path]) -> None:
    """It is over trainings, not sentences, and needs two seeds on both sides."""
    from scipy.stats import ttest_ind

    baseline, row = compare(scores, "bpe", samples=20).rows
    by_seed = [list(metric(entry).by_seed.values()) for entry in (row, baseline)]
    assert row.t_test == pytest.approx(ttest_ind(*by_seed, equal_var=False).pvalue)
    assert baseline.t_test is None and "t_test" not in to_plain(baseline)
    one = compare(scores[:3], "bpe", samples=20)
    assert one.rows[1].t_test is None and "t-test" not in as_text(one)


def test_published_scores_are_shown_beside_ours_and_marked(scores: list[Path], tmp_path: Path) -> None:
    """Nobody may mistake a copied figure for one that was measured here."""
    theirs = [
        Published("made_up", "Somebody 2020", "big model", "scaffold", "bleu", 10.0),
        Published("made_up", "Somebody 2020", "big model", "absent", "bleu", 20.0),
    ]
    compared = compare(scores, "bpe", output=tmp_path / "table", samples=20, published=theirs)
    ours = metric(compared.rows[1]).mean
    assert compared.published[0].difference == pytest.approx(ours - 10)
    assert compared.published[1].difference is None
    for kind in ("txt", "md"):
        before, _, after = (tmp_path / f"table.{kind}").read_text().partition("not measured here")
        assert "10.00" in after and f"{ours:.2f}" in after and f"{ours - 10:+.2f}" in after
        assert "Somebody 2020" in after and "Somebody 2020" not in before
    assert "Somebody" not in as_text(compare(scores, "bpe", samples=20))
