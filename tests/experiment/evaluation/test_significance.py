"""The test for a difference: against one written independently, against sacreBLEU, and where there is no difference."""

from __future__ import annotations

import json
import math
import random
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

pytest.importorskip("sacrebleu", reason="needs the extra 'workflow'")

import numpy

from mt_scaffold.experiment.evaluation.compare import compare
from mt_scaffold.experiment.evaluation.metrics import SegmentMean
from mt_scaffold.experiment.evaluation.score import score
from mt_scaffold.experiment.evaluation.significance import (
    Difference,
    compare_trainings,
    correct,
    detectable,
    draw_segments,
    resample,
)

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
                score(path, folder / test_set, output, metrics=["bleu", "chrf"], system=system, test_set=test_set,
                      seed=int(seed))  # fmt: skip
                found.append(output)
    return found


# The same test once more, in plain Python. numpy only repeats the draws; another source of them must agree in essence.


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


def independent_test(
    system: list[list[str]], baseline: list[list[str]], reference: list[str], drawn: list[list[int]],
    seeds_drawn: list[list[list[int]]],
) -> dict[str, float]:  # fmt: skip
    """The difference and its test, from segments and trainings drawn for each resample."""
    trainings = [
        [[ngram_counts(*pair) for pair in zip(lines, reference, strict=True)] for lines in side]
        for side in (system, baseline)
    ]
    whole = [[bleu_of([sum(column) for column in zip(*rows, strict=True)]) for rows in side] for side in trainings]
    found = statistics.fmean(whole[0]) - statistics.fmean(whole[1])
    differences = []
    for number, segments in enumerate(drawn):
        means = []
        for side, chosen in zip(trainings, seeds_drawn, strict=True):
            values = [
                bleu_of([sum(rows[segment][column] for segment in segments) for column in range(10)]) for rows in side
            ]
            mean = statistics.fmean(values)
            resampled = statistics.fmean(values[index] for index in chosen[number])
            stretch = math.sqrt(len(side) / (len(side) - 1)) if len(side) > 1 else 1.0
            means.append(mean + stretch * (resampled - mean))
        differences.append(means[0] - means[1])
    centre = statistics.fmean(differences)
    as_far = sum(1 for difference in differences if abs(difference - centre) >= abs(found))
    ordered = sorted(differences)

    def quantile(share: float) -> float:
        place = share * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])

    return {
        "difference": found,
        "low": quantile(0.025),
        "high": quantile(0.975),
        "p": (1 + as_far) / (1 + len(differences)),
        "standard_error": statistics.stdev(differences),
    }


def same_draws(segments: int, trainings: int) -> tuple[list[list[int]], list[list[list[int]]]]:
    """What the kit draws: sacreBLEU's segments, and for system and baseline a generator each."""
    drawn = numpy.random.default_rng(12345).choice(segments, size=(SAMPLES, segments), replace=True)
    sides = [numpy.random.default_rng([12345, side]).integers(trainings, size=(SAMPLES, trainings)) for side in (1, 2)]
    return drawn.tolist(), [side.tolist() for side in sides]


def other_draws(segments: int, trainings: int) -> tuple[list[list[int]], list[list[list[int]]]]:
    """Draws of Python's own generator."""
    draw = random.Random(7)
    drawn = [draw.choices(range(segments), k=segments) for _ in range(SAMPLES)]
    return drawn, [[draw.choices(range(trainings), k=trainings) for _ in range(SAMPLES)] for _ in range(2)]


@pytest.mark.parametrize(("draws", "exact"), [(same_draws, True), (other_draws, False)], ids=["same", "other draws"])
def test_a_table_of_two_baselines_and_three_seeds_is_that_of_an_independent_test(
    scores: list[Path],
    draws: Callable[[int, int], tuple[list[list[int]], list[list[list[int]]]]],
    exact: bool,
) -> None:
    """Differences, intervals, p-values and their correction, of each comparison in the table."""
    comparison = compare(scores, "bpe", samples=SAMPLES, baselines=BASELINES)
    expected = {}
    for row in comparison.rows:
        if row.system == "bpe":
            assert row.baseline is None and row.tests == {}
            continue
        assert row.baseline == BASELINES.get(row.system, "bpe")
        stored = STORED[row.test_set]
        sides = [list(stored["systems"][name].values()) for name in (row.system, row.baseline)]
        drawn = draws(len(stored["reference"]), 3)
        expected[row.test_set, row.system] = independent_test(sides[0], sides[1], stored["reference"], *drawn)
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
            # 2.638...: the quantile of the normal distribution at 1 - 0.05 / 12; 0.8416...: at 0.8.
            values["detectable"] = (2.638257273476751 + 0.8416212335729143) * values["standard_error"]
            for name, value in values.items():
                assert getattr(found[key], name) == pytest.approx(value, rel=1e-6, abs=1e-9), (key, name)
        p_values = [values["p_holm"] for values in expected.values()]
        assert min(p_values) < 0.05 < max(p_values), "the stored translations should hold both outcomes"
    for key, values in expected.items():
        assert found[key].p == pytest.approx(values["p"], abs=0.08)
        assert found[key].standard_error == pytest.approx(values["standard_error"], rel=0.15)


def test_with_one_seed_the_resamples_are_sacrebleus(scores: list[Path]) -> None:
    """Its command draws the same segments: its p-value can be had from ours. Ours is two-sided, its is not."""
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
    # Where the difference is clear, theirs is about half of the two-sided value.
    clear = [test for test in ours if 0.012 < test.p < 0.2]
    assert clear and all(0.3 * test.p < (test.sacrebleu_p or 0) < 0.8 * test.p for test in clear)


def two_systems(draw: random.Random, trainings: int, spread: float, shift: float) -> list[Difference]:
    """Test one pair of made-up systems of 60 segments each, whose trainings differ by ``spread``."""
    drawn = draw_segments(60, 199)
    sides = []
    for mean in (shift, 0.0):
        own = [draw.gauss(0, 1) for _ in range(60)]
        side = []
        for _ in range(trainings):
            level = mean + draw.gauss(0, spread)
            side.append(resample(SegmentMean(), [(value + draw.gauss(level, 1), 1) for value in own], drawn))
        sides.append(side)
    return [compare_trainings(*sides)]


@pytest.mark.parametrize(("trainings", "spread"), [(1, 0.0), (3, 0.2)])
def test_systems_that_do_not_differ_are_seldom_found_to(trainings: int, spread: float) -> None:
    """At level 5 % about one in twenty; sacreBLEU's form of p finds one in ten with one training per system."""
    draw = random.Random(11)
    found = [two_systems(draw, trainings, spread, 0.0)[0] for _ in range(400)]
    wrong = sum(test.p <= 0.05 for test in found) / len(found)
    assert 0.01 <= wrong <= 0.08
    if trainings == 1:
        assert sum((test.sacrebleu_p or 1) <= 0.05 for test in found) / len(found) > 0.085


def test_a_difference_as_large_as_the_power_line_says_is_found_four_times_in_five() -> None:
    """The normal approximation holds for a mean over segments."""
    draw = random.Random(12)
    error = statistics.fmean(two_systems(draw, 1, 0.0, 0.0)[0].standard_error for _ in range(50))
    found = [two_systems(draw, 1, 0.0, detectable(error, 1))[0] for _ in range(300)]
    assert 0.7 <= sum(test.p <= 0.05 for test in found) / len(found) <= 0.9
    assert detectable(error, 10) > 1.2 * detectable(error, 1)


def test_equal_systems_do_not_differ() -> None:
    """Nothing is to be found where every resample gives a difference of 0."""
    drawn = draw_segments(5, 50)
    same = [resample(SegmentMean(), [(value, 1) for value in range(5)], drawn)]
    test = compare_trainings(same, same)
    assert (test.difference, test.p, test.low, test.high, test.detectable) == (0, 1, 0, 0, 0)


def test_holms_correction() -> None:
    """The example of the method: each p times the number of those not smaller, never decreasing, at most 1."""
    assert correct({"a": 0.005, "b": 0.04, "c": 0.011, "d": 0.9}) == pytest.approx(
        {"a": 0.02, "b": 0.08, "c": 0.033, "d": 0.9}
    )
    assert correct({"a": 0.5, "b": 0.6}) == {"a": 1.0, "b": 1.0} and correct({}) == {}
