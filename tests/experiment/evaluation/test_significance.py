"""The test for a difference: against an independent implementation, sacreBLEU and SciPy, and with no difference."""

from __future__ import annotations

import csv
import gzip
import json
import math
import random
import re
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from paths import ROOT

pytest.importorskip("sacrebleu", reason="needs the extra 'workflow'")

import numpy
from scipy import optimize, stats

from mt_scaffold.experiment.configuration import Over, Primary
from mt_scaffold.experiment.evaluation.compare import compare
from mt_scaffold.experiment.evaluation.comparison import Comparison
from mt_scaffold.experiment.evaluation.metrics import SumRatio
from mt_scaffold.experiment.evaluation.score import Origin, Scoring, Texts, score
from mt_scaffold.experiment.evaluation.significance import (
    Design,
    Resampled,
    compare_means,
    compare_trainings,
    correct,
    corrected,
    detectable,
    draw_segments,
    p_columns,
    planned_detectable,
    resample,
    satterthwaite,
    variances,
)
from mt_scaffold.experiment.runtime.results import read_result

STORED = json.loads((Path(__file__).parent / "hypotheses.json").read_text(encoding="utf-8"))
BASELINES = {"scaffold+dropout": "bpe+dropout"}
SAMPLES = 400


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The scores of the stored translations: two test sets, four systems, three seeds each."""
    folder = tmp_path_factory.mktemp("stored")
    found = []
    for test_set, stored in STORED.items():
        (folder / test_set).write_text("\n".join(stored["reference"]) + "\n", encoding="utf-8")
        for system, trained in stored["systems"].items():
            for seed, lines in trained.items():
                path = folder / f"{test_set}-{system}-{seed}"
                path.write_text("\n".join(lines) + "\n", encoding="utf-8")
                output = folder / f"{path.name}.json"
                score(
                    Texts(path, [folder / test_set]),
                    output,
                    Scoring(metrics=["bleu", "chrf"]),
                    Origin(system=system, test_set=test_set, seed=int(seed)),
                )
                found.append(output)
    return found


# The same test in plain Python; exactly equal with NumPy's draws, approximately with others.


def ngram_counts(hypothesis: str, reference: str) -> list[int]:
    """Lengths of hypothesis and reference, matching n-grams and all n-grams of the hypothesis, for n from 1 to 4."""
    ours, theirs = hypothesis.split(), reference.split()
    matching, total = [], []
    for order in range(1, 5):
        grams = [Counter(tuple(side[i : i + order]) for i in range(len(side) - order + 1)) for side in (ours, theirs)]
        matching.append(sum(min(count, grams[1][gram]) for gram, count in grams[0].items()))
        total.append(sum(grams[0].values()))
    return [len(ours), len(theirs), *matching, *total]


def bleu_of(sums: Sequence[int]) -> float:
    """BLEU of the sums of ``ngram_counts`` (the stored text is long enough that no smoothing is needed)."""
    brevity = min(1.0, math.exp(1 - sums[1] / sums[0]))
    return 100 * brevity * math.exp(sum(math.log(sums[2 + n] / sums[6 + n]) for n in range(4)) / 4)


def independent_test(*sets: tuple[list[list[str]], list[list[str]], list[str], list[list[int]]]) -> dict[str, float]:
    """Return the difference on the mean over test sets, and its test.

    sets: of each, the trainings of the system and of its baseline, the reference, and the segments of each resample.
    """
    parts, known = [], []
    scores: list[list[list[float]]] = [[], []]
    for system, baseline, reference, drawn in sets:
        size, shared, means = len(reference), 0.0, []
        for side, lines_of_each in enumerate((system, baseline)):
            trainings = [
                [ngram_counts(*pair) for pair in zip(lines, reference, strict=True)] for lines in lines_of_each
            ]
            scores[side].append([bleu_of([sum(column) for column in zip(*rows, strict=True)]) for rows in trainings])
            resampled = [
                [
                    bleu_of([sum(rows[segment][column] for segment in segments) for column in range(10)])
                    for segments in drawn
                ]
                for rows in trainings
            ]
            means.append([statistics.fmean(values) for values in zip(*resampled, strict=True)])
            # How differently the trainings of one system treat the segments, which s² already contains.
            for values in resampled:
                apart = [value - mean for value, mean in zip(values, means[-1], strict=True)]
                shared += statistics.variance(apart) / (len(trainings) - 1) / len(trainings)
        by_segments = statistics.variance(one - other for one, other in zip(*means, strict=True))
        parts.append(max(0.0, (by_segments - shared) * size / (size - 1)) / len(sets) ** 2)
        known.append(1 / (1 / (size - 1) + 1 / (len(drawn) - 1)))
    whole = [[statistics.fmean(values) for values in zip(*of_side, strict=True)] for of_side in scores]
    parts += [statistics.variance(side) / len(side) for side in whole]
    known += [len(side) - 1 for side in whole]
    error = math.sqrt(sum(parts))
    freedom = sum(parts) ** 2 / sum(part**2 / number for part, number in zip(parts, known, strict=True))
    found = statistics.fmean(whole[0]) - statistics.fmean(whole[1])
    t = stats.t(freedom)
    # The power line: the mean of a noncentral t that exceeds the critical value with probability 80 %.
    critical = t.ppf(1 - 0.05 / (12 if len(sets) == 1 else 6))
    centre = optimize.brentq(lambda mean: stats.nct(freedom, mean).sf(critical) - 0.8, 0.1, 50)
    return {
        "difference": found,
        "low": found - t.ppf(0.975) * error,
        "high": found + t.ppf(0.975) * error,
        "p": 2 * t.sf(abs(found) / error),
        "standard_error": error,
        "freedom": freedom,
        "detectable": centre * error,
    }


def same_draws(segments: int) -> list[list[int]]:
    """Return the segments that the package draws, which are sacreBLEU's."""
    drawn = numpy.random.default_rng(12345).choice(segments, size=(SAMPLES, segments), replace=True)
    found: list[list[int]] = drawn.tolist()
    return found


def other_draws(segments: int) -> list[list[int]]:
    """Return draws of Python's generator."""
    draw = random.Random(7)
    return [draw.choices(range(segments), k=segments) for _ in range(SAMPLES)]


@pytest.mark.parametrize(("draws", "exact"), [(same_draws, True), (other_draws, False)], ids=["same", "other draws"])
def test_a_table_of_two_baselines_and_three_seeds_is_that_of_an_independent_test(
    scores: list[Path], draws: Callable[[int], list[list[int]]], exact: bool
) -> None:
    """Differences, intervals, p-values, their correction and the power line, of each comparison in the table."""
    comparison = compare(scores, "bpe", samples=SAMPLES, baselines=BASELINES)
    expected = {}
    for row in comparison.rows:
        if row.system == "bpe":
            assert row.baseline is None and row.tests == {}
            continue
        assert row.baseline == BASELINES.get(row.system, "bpe")
        stored = STORED[row.test_set]
        sides = [list(stored["systems"][name].values()) for name in (row.system, row.baseline)]
        drawn = draws(len(stored["reference"]))
        expected[row.test_set, row.system] = independent_test((sides[0], sides[1], stored["reference"], drawn))
    assert len(expected) == comparison.comparisons["bleu"] == 6

    # Holm: the k-th smallest p (from 0) times 6 - k, never less than the one before, at most 1.
    ranked = sorted(expected, key=lambda key: expected[key]["p"])
    so_far = 0.0
    for rank, key in enumerate(ranked):
        so_far = max(so_far, min(1.0, (6 - rank) * expected[key]["p"]))
        expected[key]["p_holm"] = so_far
    found = {(row.test_set, row.system): row.tests["bleu"] for row in comparison.rows if row.tests}
    if exact:
        for key, values in expected.items():
            for name, value in values.items():
                assert getattr(found[key], name) == pytest.approx(value, rel=1e-5, abs=1e-9), (key, name)
        p_values = [values["p_holm"] for values in expected.values()]
        assert min(p_values) < 0.05 < max(p_values), "the stored translations should hold both outcomes"
    for key, values in expected.items():
        assert found[key].p == pytest.approx(values["p"], abs=0.08)
        assert found[key].standard_error == pytest.approx(values["standard_error"], rel=0.15)


def test_the_mean_over_test_sets_is_that_of_an_independent_test(scores: list[Path]) -> None:
    """Its difference, interval, p and power; Holm counts its rows only, and the other tests are as without it."""
    primary = Primary("bleu", Over(["mean"]))
    comparison = compare(scores, "bpe", samples=SAMPLES, baselines=BASELINES, primary=primary)
    p = {}
    for row in comparison.means:
        assert row.test_set == "mean of 2" and row.scores["bleu"].sd is not None
        if row.baseline is None:
            continue
        sets = []
        for stored in STORED.values():
            sides = [list(stored["systems"][name].values()) for name in (row.system, row.baseline)]
            sets.append((sides[0], sides[1], stored["reference"], same_draws(len(stored["reference"]))))
        for name, value in independent_test(*sets).items():
            assert getattr(row.tests["bleu"], name) == pytest.approx(value, rel=1e-5, abs=1e-9), (row.system, name)
        p[row.system] = row.tests["bleu"].p
    assert {row.system: row.tests["bleu"].p_holm for row in comparison.means if row.tests} == correct(
        {system: value for system, value in p.items() if value is not None}
    )
    usual = compare(scores, "bpe", samples=SAMPLES, baselines=BASELINES)
    assert comparison.rows == usual.rows and [row.tests for row in usual.means] == [{}] * 4
    assert comparison.comparisons == usual.comparisons | {"bleu, mean": 3, "chrf, mean": 3}
    # Of single trainings: sentences alone, in independent resamples.
    first = [path for path in scores if path.name.endswith("-1.json")]
    rows = compare(first, "bpe", samples=SAMPLES, primary=primary).means
    alone = rows[1].tests["bleu"]
    assert alone.p is None and alone.segments_p is not None and alone.low < alone.difference < alone.high
    untested = compare(scores, "bpe", samples=20, primary=Primary("chrf", Over(["mean"]), "untested"))
    assert {name for row in (*untested.rows, *untested.means) for name in row.tests} == {"chrf"}
    assert [row.tests for row in untested.rows] == [{}] * 8 and untested.main_metric == "chrf"


def paper_table(scores: list[Path], tmp_path: Path) -> str:
    """Write the comparison on the mean over three test sets of the usual length of names, and return its table."""
    copies = []
    for path in scores:
        content = json.loads(path.read_text(encoding="utf-8"))
        for name in (content["test_set"], *(["mscoco"] if content["test_set"] == next(iter(STORED)) else [])):
            named = "test_2017_mscoco" if name == "mscoco" else f"test_{2016 + [*STORED].index(name)}_flickr"
            copies.append(tmp_path / f"{named}-{path.name}")
            gone = {key: value | {"path": "gone"} for key, value in content["files"].items()}
            copies[-1].write_text(json.dumps(content | {"test_set": named, "files": gone}), encoding="utf-8")
    primary = Primary("bleu", Over(["mean"]))
    compare(copies, "bpe", tmp_path / "table", 100, "a_b: 50 % & more", baselines=BASELINES, primary=primary)
    assert (tmp_path / "table-all.tex").read_text("utf-8").count(r"\begin{table}") >= 3
    return (tmp_path / "table.tex").read_text(encoding="utf-8")


def test_the_table_of_a_paper_has_systems_by_test_sets(scores: list[Path], tmp_path: Path) -> None:
    """The mean last, standard deviations, and marks for what is significant, which the caption explains."""
    lines = paper_table(scores, tmp_path).splitlines()
    heading = next(line for line in lines if line.startswith(" & "))
    columns = heading.split(" & ")
    assert lines[0] == r"% Needs \usepackage{booktabs}." and len(columns) == 5 and columns[-1] == r"mean of 3 \\"
    rows = [line.split(" & ") for line in lines if r"$\pm$" in line and " & " in line]
    assert len(rows) == 4 and {*map(len, rows)} == {5}
    caption = next(line for line in lines if line.startswith(r"\caption"))
    assert r"a\_b: 50 \% \& more. BLEU, mean $\pm$ standard deviation over 3 trainings. *: differs from its" in caption
    assert "over trainings and sentences, Holm" in caption and r"\label{tab:a-b}" in lines
    comparison = read_result(Comparison, tmp_path / "table.json")
    found = [row.system for row in comparison.means if row.tests and (row.tests["bleu"].p_holm or 0) < 0.05]
    assert [system for system, row in zip(dict.fromkeys(r.system for r in comparison.rows), rows, strict=True)
            if "^{*}" in row[4]] == found  # fmt: skip


@pytest.mark.long
def test_the_table_of_a_paper_fits_a_column(scores: list[Path], tmp_path: Path) -> None:
    """An ACL column is 7.7 cm wide, in an article of 11 points."""
    if (program := shutil.which("pdflatex")) is None:
        pytest.skip("needs pdflatex (Debian: texlive-latex-extra)")
    table = paper_table(scores, tmp_path)
    tabular = re.search(r"\\begin{tabular}.*\\end{tabular}", table, re.DOTALL)
    assert tabular is not None
    (tmp_path / "paper.tex").write_text(
        "\\documentclass[11pt,twocolumn]{article}\\usepackage{booktabs}\\setlength{\\columnwidth}{7.7cm}\n"
        "\\begin{document}\\newsavebox{\\own}\\footnotesize\\setlength{\\tabcolsep}{2pt}\n"
        f"\\savebox{{\\own}}{{{tabular[0]}}}\\typeout{{wide: \\the\\wd\\own}}\n{table}\\end{{document}}\n",
        encoding="utf-8",
    )
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    wide = re.search(r"wide: ([\d.]+)pt", done.stdout)
    assert wide is not None and float(wide[1]) <= 7.7 / 2.54 * 72.27


@pytest.mark.long
@pytest.mark.parametrize("spread", [0.05, 0.2, 0.8])
@pytest.mark.parametrize("trainings", [3, 5])
def test_means_that_do_not_differ_are_seldom_found_to(trainings: int, spread: float) -> None:
    """In 2,000 draws of two test sets, on both of which a training is better or worse by the same amount."""
    draw, wrong = numpy.random.default_rng(11), 0
    for _ in range(2000):
        effects = [draw.normal(0, spread, trainings) for _ in range(2)]
        sets = [made_up(draw, 1, trainings, (0.0, 0.0), segments) for segments in (60, 90)]
        sides = [
            [
                [
                    Resampled(float(score + effect), row + effect, segments)
                    for score, row, effect in zip(scores[side][0], drawn[side][0], effects[side], strict=True)
                ]
                for (scores, drawn), segments in zip(sets, (60, 90), strict=True)
            ]
            for side in (0, 1)
        ]
        wrong += (compare_means(*sides).p or 0) <= 0.05
    print(f"{trainings} trainings, spread {spread}: {wrong / 20:.1f} %")
    assert 0.03 <= wrong / 2000 <= 0.065


def test_the_score_files_alone_are_enough_to_compute_p_again(scores: list[Path], tmp_path: Path) -> None:
    """The statistics in published files, compressed or not, suffice for the test."""
    before = compare(scores, "bpe", samples=SAMPLES)
    alone = []
    for path in scores:
        alone.append(tmp_path / f"{path.name}.gz")
        alone[-1].write_bytes(gzip.compress(path.read_bytes()))
    assert compare(alone, "bpe", samples=SAMPLES).rows == before.rows

    drawn = numpy.array(same_draws(len(STORED["news"]["reference"])))
    means, resampled = [], []
    for system in ("scaffold", "bpe"):
        files = [
            json.loads(gzip.decompress((tmp_path / f"news-{system}-{seed}.json.gz").read_bytes())) for seed in "123"
        ]
        rows = [[[int(n) for n in line.split()] for line in file["metrics"]["bleu"]["segments"]] for file in files]
        means.append(numpy.array([bleu_of(numpy.sum(each, axis=0).tolist()) for each in rows]))
        sums = [numpy.array(each)[drawn].sum(axis=1).tolist() for each in rows]
        resampled.append(numpy.array([[bleu_of(sum_) for sum_ in each] for each in sums]))
    error, freedom = satterthwaite(variances(means, resampled, drawn.shape[1]))
    p = 2 * stats.t.sf(abs(means[0].mean() - means[1].mean()) / error, freedom)
    row = next(row for row in before.rows if (row.test_set, row.system) == ("news", "scaffold"))
    assert row.tests["bleu"].p == pytest.approx(p)


def test_with_one_seed_the_resamples_are_sacrebleus(scores: list[Path]) -> None:
    """Its command draws the same segments, so its p can be computed from ours. Ours is two-sided, its is not."""
    ours, theirs = [], []
    for test_set in STORED:
        first = [path for path in scores if path.name.startswith(test_set) and path.name.endswith("-1.json")]
        rows = compare(first, "bpe", samples=SAMPLES).rows
        command = [sys.executable, "-m", "sacrebleu", str(scores[0].parent / test_set), "-f", "text"]
        command += ["-m", "bleu", "chrf", "--paired-bs", "--paired-bs-n", str(SAMPLES)]
        command += ["-i", *(str(scores[0].parent / f"{test_set}-{row.system}-1") for row in rows)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        theirs += [float(p) for p in re.findall(r"\(p = ([0-9.]+)\)", printed)]
        ours += [row.tests[name] for row in rows[1:] for name in ("bleu", "chrf")]
    assert [test.sacrebleu_p for test in ours] == pytest.approx(theirs, abs=1e-4)
    # One training says nothing about others.
    assert {(test.p, test.p_holm, test.freedom) for test in ours} == {(None, None, None)}
    # For a clear difference, theirs is about half of the two-sided value.
    clear = [(test.segments_p or 0, test.sacrebleu_p or 0) for test in ours if 0.012 < (test.segments_p or 0) < 0.2]
    assert clear and all(0.3 * p < theirs < 0.8 * p for p, theirs in clear)


def constant(scores: Sequence[float], segments: int = 50, samples: int = 60) -> list[Resampled]:
    """Trainings whose every segment has the same score, so that segments add no variance."""
    drawn = draw_segments(segments, samples)
    return [resample(SumRatio(), [(score, 1.0)] * segments, drawn) for score in scores]


@pytest.mark.parametrize("trainings", [(3, 3), (3, 5), (8, 3)])
def test_without_chance_from_segments_it_is_welchs_test(trainings: tuple[int, int]) -> None:
    """p and interval equal SciPy's, for unequal variances and numbers of trainings."""
    draw = numpy.random.default_rng(1)
    sides = [
        draw.normal(mean, sd, number).tolist() for mean, sd, number in zip((31, 30), (0.9, 0.2), trainings, strict=True)
    ]
    test = compare_trainings(*map(constant, sides))
    expected = stats.ttest_ind(*sides, equal_var=False)
    interval = expected.confidence_interval(0.95)
    assert test.p == pytest.approx(expected.pvalue, rel=1e-6)
    assert [test.low, test.high, test.freedom] == pytest.approx([interval.low, interval.high, expected.df], rel=1e-6)


def test_without_chance_from_trainings_only_segments_count() -> None:
    """Equal trainings: the standard error of the paired differences of the segments, within resampling error."""
    draw = numpy.random.default_rng(2)
    rows = draw.normal(0, 1, (2, 200))
    drawn = draw_segments(200, 2000)
    sides = [[resample(SumRatio(), [(value, 1.0) for value in row.tolist()], drawn)] * 3 for row in rows]
    test = compare_trainings(*sides)
    assert test.standard_error == pytest.approx(stats.sem(rows[0] - rows[1]), rel=0.05)
    assert test.freedom == pytest.approx(1 / (1 / 199 + 1 / 1999))


def made_up(
    draw: numpy.random.Generator,
    experiments: int,
    trainings: int,
    spreads: tuple[float, float],
    segments: int = 60,
    samples: int = 150,
) -> tuple[list[numpy.typing.NDArray[numpy.float64]], list[numpy.typing.NDArray[numpy.float64]]]:
    """Scores and resampled scores of two systems that do not differ, for many experiments.

    The score of a segment is the sum of a system's effect on it, of this training's effect on it (standard deviation 1
    each), and of the training's effect on all segments (``spreads``, by system).
    """
    drawn = draw_segments(segments, samples) / segments
    rows = [
        draw.normal(0, 1, (experiments, 1, segments))
        + draw.normal(0, 1, (experiments, trainings, segments))
        + draw.normal(0, spread, (experiments, trainings, 1))
        for spread in spreads
    ]
    return [each.mean(axis=-1) for each in rows], [each @ drawn.T for each in rows]


# Standard deviations between trainings; segments give the mean of one training a standard error of 0.18.
@pytest.mark.parametrize(
    "spreads", [(0.0, 0.0), (0.05, 0.05), (0.2, 0.2), (0.8, 0.8), (0.6, 0.3), (0.4, 0.0), (1.0, 0.0)]
)
@pytest.mark.parametrize(("trainings", "most"), [(3, 0.085), (5, 0.065), (8, 0.065)])
def test_systems_that_do_not_differ_are_seldom_found_to(
    trainings: int, most: float, spreads: tuple[float, float]
) -> None:
    """At level 5 %, whatever the source of chance; the test of all stored rates below takes minutes.

    Trainings resampled by the bootstrap err in up to 14 % with three of them.
    """
    scores, resampled = made_up(numpy.random.default_rng(5), 4000, trainings, spreads)
    error, freedom = satterthwaite(variances(scores, resampled, 60))
    p = 2 * stats.t.sf(abs(scores[0].mean(1) - scores[1].mean(1)) / error, freedom)
    assert 0.025 <= (p <= 0.05).mean() <= most
    # One experiment alone has the same p.
    sides = [
        [Resampled(float(score), row, 60) for score, row in zip(own[0], drawn[0], strict=True)]
        for own, drawn in zip(scores, resampled, strict=True)
    ]
    assert compare_trainings(*sides).p == pytest.approx(p[0])


@pytest.mark.long
@pytest.mark.parametrize("variances_of", ["1 : 1", "4 : 1", "one system's"])
@pytest.mark.parametrize("trainings", [2, 3, 5, 8])
def test_the_error_rates_are_those_that_were_stored(trainings: int, variances_of: str) -> None:
    """With 40,000 experiments per row; these are 8,000, so that a rate may differ by four of its standard errors."""
    with open(ROOT / "docs" / "results" / "significance" / "normal.csv", encoding="utf-8", newline="") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if (row["trainings"], row["variances"]) == (str(trainings), variances_of)
        ]
    assert len(rows) == 4
    share = {"1 : 1": 0.5, "4 : 1": 0.8, "one system's": 1.0}[variances_of]
    draw = numpy.random.default_rng(3)
    for row in rows:
        # The trainings add this many times the standard error that the segments add.
        both = float(row["spread"]) ** 2 * 2 * (trainings + 1) / 100
        wrong = 0
        for _ in range(16):
            spreads = math.sqrt(both * share), math.sqrt(both * (1 - share))
            scores, resampled = made_up(draw, 500, trainings, spreads, segments=100, samples=400)
            error, freedom = satterthwaite(variances(scores, resampled, 100))
            p = 2 * stats.t.sf(abs(scores[0].mean(1) - scores[1].mean(1)) / error, freedom)
            wrong += int((p <= 0.05).sum())
        stored = float(row["wrong_percent"]) / 100
        assert wrong / 8000 == pytest.approx(stored, abs=4 * math.sqrt(stored * (1 - stored) / 8000)), row


@pytest.mark.parametrize("spread", [0.1, 1.0])
def test_no_source_of_chance_is_counted_twice(spread: float) -> None:
    """On average the squared standard error is the variance of the difference, trainings × segments included.

    If all variance over resampled segments were added to s², it would be larger by a quarter if trainings are alike.
    """
    scores, resampled = made_up(numpy.random.default_rng(6), 4000, 3, (spread, spread))
    error, _ = satterthwaite(variances(scores, resampled, 60))
    assert (error**2).mean() == pytest.approx(2 * ((1 + 1 / 3) / 60 + spread**2 / 3), rel=0.05)


@pytest.mark.parametrize("spread", [0.05, 0.5])
def test_a_difference_as_large_as_the_power_line_says_is_found_four_times_in_five(spread: float) -> None:
    """In a design whose standard error is the true one, as the line assumes."""
    scores, resampled = made_up(numpy.random.default_rng(7), 3000, 5, (spread, spread))
    error, freedom = satterthwaite(variances(scores, resampled, 60))
    true = math.sqrt(2 * ((1 + 1 / 5) / 60 + spread**2 / 5))
    shift = detectable(true, float(numpy.median(freedom)), 1)
    p = 2 * stats.t.sf(abs(scores[0].mean(1) - scores[1].mean(1) + shift) / error, freedom)
    assert 0.74 <= (p <= 0.05).mean() <= 0.86
    assert detectable(true, 8, 10) > 1.2 * detectable(true, 8, 1)


@pytest.mark.parametrize("spread", [0.3, 1.0])
def test_a_planned_design_has_the_standard_error_that_it_would_have(spread: float) -> None:
    """From 3 trainings on 60 segments to 5 on 240: the segments' part shrinks with both, the trainings' with theirs."""
    scores, resampled = made_up(numpy.random.default_rng(9), 4000, 3, (spread, spread))
    error, _ = satterthwaite(variances(scores, resampled, 60, Design(5, 240)))
    assert (error**2).mean() == pytest.approx(2 * ((1 + 1 / 5) / 240 + spread**2 / 5), rel=0.05)


def test_a_plan_is_the_power_line_of_its_design() -> None:
    """For the trainings at hand it is the figure below the table; for others SciPy's power of Student's t agrees."""
    system, baseline = constant([30.0, 30.1, 30.3]), constant([31.0, 31.5, 32.0])
    test = corrected(dict.fromkeys("ab", compare_trainings(system, baseline)))["a"]
    assert planned_detectable(system, baseline, Design(3, 50), 2) == pytest.approx(test.detectable)
    variances_found = [statistics.variance(each.score for each in side) for side in (system, baseline)]
    error = math.sqrt(sum(variances_found) / 12)
    freedom = error**4 / sum((each / 12) ** 2 / 11 for each in variances_found)
    least = planned_detectable(system, baseline, Design(12, 9999), 1)
    power = stats.nct.sf(stats.t.ppf(0.975, freedom), freedom, least / error)
    assert power == pytest.approx(0.8, abs=1e-4)


def test_one_training_of_either_system_is_a_test_of_sentences_only() -> None:
    """Its p errs in 5 % if trainings do not differ, and has a separate column and correction."""
    scores, resampled = made_up(numpy.random.default_rng(8), 1000, 1, (0.0, 0.0))
    tests = [
        compare_trainings(*([Resampled(float(side[0]), rows[0], 60)] for side, rows in zip(pair, drawn, strict=True)))
        for pair, drawn in zip(zip(*scores, strict=True), zip(*resampled, strict=True), strict=True)
    ]
    assert 0.03 <= sum((test.segments_p or 1) <= 0.05 for test in tests) / len(tests) <= 0.08
    # sacreBLEU's form of p errs in one of ten.
    assert sum((test.sacrebleu_p or 1) <= 0.05 for test in tests) / len(tests) > 0.085
    one_and_three = compare_trainings(constant([30.0]), constant([31.0, 31.5, 32.0]))
    assert (one_and_three.p, one_and_three.freedom) == (None, None) and one_and_three.segments_p is not None
    three_and_one = compare_trainings(constant([31.0, 31.5, 32.0]), constant([30.0]))
    assert one_and_three.sacrebleu_p is None and three_and_one.sacrebleu_p is None
    three = compare_trainings(constant([30.0, 30.1, 30.3]), constant([31.0, 31.5, 32.0]))
    table = corrected({"a": three, "b": three, "c": one_and_three})
    assert table["a"].p_holm == pytest.approx(2 * (three.p or 0)) and table["c"].p_holm is None
    assert table["c"].segments_p_holm == one_and_three.segments_p and table["a"].segments_p_holm is None
    # ``detectable`` is corrected for the number of comparisons that are tested in this way.
    several = corrected({"a": three, "b": tests[0], "c": tests[1], "d": tests[2]})
    assert several["b"].detectable == detectable(tests[0].standard_error, None, 3) > tests[0].detectable
    assert p_columns(table.values()) == {
        "p": "p",
        "p, Holm": "p_holm",
        "sentences only": "segments_p",
        "sentences only, Holm": "segments_p_holm",
    }


def test_two_trainings_have_an_interval_and_no_p() -> None:
    """Two show too little of how far trainings differ: the test would err in up to 13 %."""
    sides = [30.0, 30.4], [31.0, 31.1, 31.5]
    test = compare_trainings(*map(constant, sides))
    assert (test.p, test.p_holm, test.segments_p) == (None, None, None)
    interval = stats.ttest_ind(*sides, equal_var=False).confidence_interval(0.95)
    assert [test.low, test.high] == pytest.approx([interval.low, interval.high])
    assert p_columns([test]) == {} and corrected({1: test})[1] == test


@pytest.mark.parametrize("trainings", [1, 2, 3])
def test_equal_systems_do_not_differ(trainings: int) -> None:
    """p is 1 if every resample gives a difference of 0, and all trainings are the same."""
    same = constant([5.0] * trainings)
    test = compare_trainings(same, same)
    p = {1: (None, 1), 2: (None, None), 3: (1, None)}[trainings]
    assert (test.p, test.segments_p) == p
    assert (test.difference, test.low, test.high, test.detectable) == (0, 0, 0, 0)


def test_a_difference_without_any_chance_is_certain() -> None:
    """If all trainings of each system are the same, and so are all segments: as far as that many segments can tell."""
    test = compare_trainings(constant([6.0] * 3), constant([5.0] * 3))
    assert (test.difference, test.standard_error, test.p) == (1, 0, 2 / 2**50)
    three, one = (compare_trainings(*(constant([score] * n, 7, 200) for score in (6.0, 5.0))) for n in (3, 1))
    assert three.p == one.segments_p == 2 / 2**7


def test_five_segments_are_no_test() -> None:
    """An exact test of five could not give p below 0.0625."""
    with pytest.raises(ValueError, match="5 segments are too few for a test"):
        compare_trainings(constant([1.0], segments=5), constant([2.0], segments=5))
