"""``studies.named_comparisons`` on scores with known answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("scipy", reason="comes with the extra 'workflow'")

from scipy import stats

from studies.named_comparisons import (
    NAMED,
    averaged,
    compare,
    main,
    missing_trainings,
    people_agree,
    read,
    variance_of_sentences,
)

SCORES = {
    "bpe": ([30.0, 31.0, 30.5], [20.0, 21.5, 20.0]),
    "scaffold": ([30.4, 31.9, 30.8, 32.0], [20.1, 21.0, 20.9, 22.0]),
    "control": ([33.0, 34.0], [24.0, 24.5]),
}
DICTIONARY = {"entries": [4097], "rows": [4104]}


def stored(path: Path, systems: list[str], error: float | None = None) -> Path:
    """Write the parts of a comparison.json that the study reads; error: of the difference of scaffold from bpe."""
    rows = [
        {
            "test_set": test,
            "system": system,
            "baseline": "bpe",
            "tests": {} if error is None or system != "scaffold" else {"bleu": {"standard_error": error}},
            "scores": {"bleu": {"by_seed": {str(seed): score for seed, score in enumerate(SCORES[system][number], 1)}}},
        }
        for number, test in enumerate(("one", "two"))
        for system in systems
    ]
    trainings = [
        {"system": system, "seed": seed, "epochs": 20, "updates": 1000 * seed, "subwords": 9, "dictionary": DICTIONARY}
        for system in systems
        for seed in range(1, 1 + len(SCORES[system][0]))
    ]
    warnings = [
        {"kind": "not-converged", "about": "bpe, seed 2", "figure": "update 2,000"},
        {"kind": "few-seeds", "about": "control", "figure": "2 seeds"},
    ]
    path.write_text(json.dumps({"rows": rows, "trainings": trainings, "warnings": warnings}), encoding="utf-8")
    return path


def by_seed(scores: list[float]) -> dict[int, float]:
    return dict(enumerate(scores, 1))


def test_over_trainings_it_is_scipys_welch() -> None:
    """The difference, its interval and p of two systems with different numbers of trainings."""
    scaffold, bpe = SCORES["scaffold"][0], SCORES["bpe"][0]
    found, expected = compare(by_seed(scaffold), by_seed(bpe)), stats.ttest_ind(scaffold, bpe, equal_var=False)
    assert found is not None and found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()))
    assert compare(by_seed(scaffold), by_seed(bpe[:2])) is None
    assert compare(by_seed([1.0] * 3), by_seed([2.0] * 3)) is None


def test_sentences_contribute_to_the_variance(tmp_path: Path) -> None:
    """What they contribute is what the standard error of a test has beyond Welch's, divided by 4 for two test sets."""
    first, second = NAMED["multi30k_en_de"][:2]
    path = stored(tmp_path / "a.json", ["bpe", "scaffold"], error=2.0)
    scores, of_sentences, _ = read([path], "bleu")
    welch = [
        sum(stats.tvar(side) / len(side) for side in (SCORES["scaffold"][test], SCORES["bpe"][test])) for test in (0, 1)
    ]
    assert variance_of_sentences(first, of_sentences, ["one", "two"]) == pytest.approx((8 - sum(welch)) / 4)
    sides = scores["one"]["scaffold"], scores["one"]["bpe"]
    single, over_trainings = compare(*sides, variance_of_sentences(first, of_sentences, ["one"])), compare(*sides)
    assert single is not None and single.standard_error == pytest.approx(2.0)
    # Only Welch's share of the variance has few degrees of freedom.
    assert over_trainings is not None and (single.freedom or 0) > 10 * (over_trainings.freedom or 0)
    assert variance_of_sentences(first, of_sentences, ["one", "three"]) is None
    assert variance_of_sentences(second, of_sentences, ["one"]) is None


def test_trainings_in_several_files_are_tested_without_sentences(tmp_path: Path) -> None:
    """The standard error of one file is not that of the trainings of both, whatever their order."""
    path = stored(tmp_path / "a.json", ["bpe", "scaffold"], error=2.0)
    content = json.loads(path.read_text(encoding="utf-8"))
    for row in content["rows"]:
        row["scores"]["bleu"]["by_seed"] = {
            str(int(seed) + 4): score for seed, score in row["scores"]["bleu"]["by_seed"].items()
        }
    for training in content["trainings"]:
        training["seed"] += 4
    other = tmp_path / "b.json"
    other.write_text(json.dumps(content), encoding="utf-8")
    for paths in ([path, other], [other, path]):
        scores, of_sentences, _ = read(paths, "bleu")
        assert len(scores["one"]["bpe"]) == 6
        assert variance_of_sentences(NAMED["multi30k_en_de"][0], of_sentences, ["one"]) is None


def test_the_primary_measure_is_the_mean_over_test_sets(tmp_path: Path) -> None:
    """It is computed per training, from several files; trainings without one of the test sets are left out."""
    paths = [stored(tmp_path / "a.json", ["bpe", "scaffold"]), stored(tmp_path / "b.json", ["control"])]
    scores, _, trainings = read(paths, "bleu")
    assert [trainings["bpe"][seed].improving for seed in (1, 2, 3)] == [False, True, False]
    assert averaged(scores, ["one", "two"])["bpe"] == {1: 25.0, 2: 26.25, 3: 25.25}
    del scores["two"]["bpe"][2]
    assert averaged(scores, ["one", "two"])["bpe"] == {1: 25.0, 3: 25.25}
    assert missing_trainings(NAMED["multi30k_en_de"], averaged(scores, ["one"]), [1, 2, 3]) == [
        "scaffold+dropout, seeds 1, 2, 3",
        "bpe+dropout, seeds 1, 2, 3",
        "control, seed 3",
    ]


def test_the_report_corrects_for_all_named_comparisons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """p of the primary measure is multiplied by their number (four, or two) even if only one can be tested."""
    path = stored(tmp_path / "a.json", ["bpe", "scaffold", "control"])
    assert main([str(path), "--average", "one", "two", "--seeds", "1", "2", "3"]) == 0
    lines = [[cell.strip() for cell in line.split("|")] for line in capsys.readouterr().out.splitlines()]
    row = next(line for line in lines if line[1:3] == ["mean of 2 (primary)", "scaffold − bpe"])
    scaffold, bpe = ([sum(pair) / 2 for pair in zip(*SCORES[name], strict=True)] for name in ("scaffold", "bpe"))
    p = stats.ttest_ind(scaffold, bpe, equal_var=False).pvalue
    assert row[3] == "4 and 3" and row[7:10] == ["trainings", f"{p:.3f}", f"{min(1.0, 4 * p):.3f}"]
    assert "+0.45 inside" in row[10] and "found with" in row[10] and "people agree in 54 %" in row[10]
    untested = next(line for line in lines if line[1:3] == ["mean of 2 (primary)", "control − bpe"])
    assert untested[5][0] == "+" and untested[6:11] == [""] * 5
    own = next(line for line in lines if line[1:2] == ["bpe"])
    assert own[2:9] == ["3", "20", "1,000 to 3,000", "9", "4,097", "1 of 3", "30.50 ± 0.50"]
    single = next(line for line in lines if line[1:3] == ["one", "scaffold − bpe"])
    assert (
        single[9] == ""
        and single[8] == f"{stats.ttest_ind(SCORES['scaffold'][0], SCORES['bpe'][0], equal_var=False).pvalue:.3f}"
    )
    assert any("control, seed 3." in cell for line in lines for cell in line)
    assert main([str(path), "--average", "one", "two", "--seeds", "1", "--config", "study_multi30k_en_de"]) == 0
    lines = [[cell.strip() for cell in line.split("|")] for line in capsys.readouterr().out.splitlines()]
    names = {line[2] for line in lines if line[1:2] == ["mean of 2 (primary)"]}
    row = next(line for line in lines if line[1:3] == ["mean of 2 (primary)", "scaffold − bpe"])
    assert names == {"scaffold − bpe"} and row[9] == f"{min(1.0, 2 * p):.3f}"
    assert ["Missing: scaffold+dropout, seed 1; bpe+dropout, seed 1."] in lines


def test_pooling_weights_by_squared_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By hand: the same difference twice has its squared error halved and its degrees of freedom doubled."""
    files = [str(stored(tmp_path / name, ["bpe", "scaffold"])) for name in ("a.json", "b.json")]
    assert main([*files, "--pool", "--average", "one", "two"]) == 0
    printed = capsys.readouterr().out
    means = [[(one + two) / 2 for one, two in zip(*SCORES[name], strict=True)] for name in ("scaffold", "bpe")]
    welch = stats.ttest_ind(*means, equal_var=False)
    difference = sum(means[0]) / 4 - sum(means[1]) / 3
    error = difference / welch.statistic
    margin = stats.t.ppf(0.975, 2 * welch.df) * error / 2**0.5
    expected = f"{difference:+.2f} | {difference - margin:+.2f} to {difference + margin:+.2f} |"
    assert printed.splitlines()[4].startswith("| pooled") and printed.splitlines()[4].endswith(expected)
    assert "Cochran's Q: 0.0 with 1 degrees of freedom" in printed
    assert main([str(stored(tmp_path / "c.json", ["control"])), "--pool", "--average", "one"]) == 1


def test_people_agree_as_often_as_was_published() -> None:
    """63.989 % at 1 BLEU, as on the authors' page; never below chance, and independent of the sign."""
    assert people_agree(1.0) == pytest.approx(63.989, abs=5e-4) == people_agree(-1.0)
    assert people_agree(0.1) == people_agree(0.0) == 50


def test_bad_files_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A training in two files, a missing file, other JSON, and a test set that is in no file."""
    path, other = stored(tmp_path / "a.json", ["bpe"]), tmp_path / "b.json"
    other.write_text("[]", encoding="utf-8")
    for arguments, message in (
        ([path, path, "--average", "one"], "bpe, seed 1, is in another file as well"),
        ([tmp_path / "none.json"], "No such file"),
        ([other], "not a comparison.json"),
        ([path], "no file has the test set test_2016_flickr, but one, two"),
    ):
        assert main(list(map(str, arguments))) == 1
        assert message in capsys.readouterr().err
