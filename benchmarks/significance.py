"""How often the test finds a difference where there is none: the table of docs/scores.md.

python benchmarks/significance.py [--experiments N]
"""

from __future__ import annotations

import argparse
import math

import numpy
from numpy.typing import NDArray

from mt_scaffold.experiment.evaluation.significance import RANDOM_SEED, Resampled, compare_trainings, draw_segments

SEGMENTS, SAMPLES, LEVEL = 80, 399, 0.05


def p_not_rescaled(system: list[Resampled], baseline: list[Resampled]) -> float:
    """Return the two-sided p from the resamples as the publication draws them, not rescaled."""
    means = []
    for side, trainings in enumerate((system, baseline), 1):
        number = len(trainings)
        drawn = numpy.random.default_rng([RANDOM_SEED, side]).integers(number, size=(SAMPLES, number))
        scores = numpy.stack([training.scores for training in trainings])
        means.append(scores[drawn, numpy.arange(SAMPLES)[:, None]].mean(axis=1))
    differences = means[0] - means[1]
    found = numpy.mean([each.score for each in system]) - numpy.mean([each.score for each in baseline])
    count = int(numpy.sum(numpy.abs(differences - differences.mean()) >= abs(found)))
    return (1 + count) / (1 + SAMPLES)


def made_up_system(
    draw: numpy.random.Generator, trainings: int, spread: float, drawn: NDArray[numpy.float64]
) -> list[Resampled]:
    """Return the trainings of a system whose score is a mean over segments, all of one expectation."""
    own = draw.normal(0, 1, SEGMENTS)
    segments = [own + draw.normal(draw.normal(0, spread), 1, SEGMENTS) for _ in range(trainings)]
    return [Resampled(float(each.mean()), numpy.asarray(drawn @ each)) for each in segments]


def main() -> None:
    """Print a row for each number of trainings and each spread between them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=1000, metavar="N", help="made-up experiments per row")
    experiments = parser.parse_args().experiments
    draw = numpy.random.default_rng(3)
    drawn = draw_segments(SEGMENTS, SAMPLES) / SEGMENTS
    print("trainings  spread  sacreBLEU's p  not rescaled   ours  (% with p <= 0.05)")
    for trainings in (1, 2, 3, 5):
        for ratio in (0.0,) if trainings == 1 else (0.5, 1.0, 3.0):
            by_segments = math.sqrt(2 * (1 + 1 / trainings) / SEGMENTS)
            spread = ratio * by_segments / math.sqrt(2 / trainings)
            wrong = [0, 0, 0]
            for _ in range(experiments):
                sides = [made_up_system(draw, trainings, spread, drawn) for _ in range(2)]
                test = compare_trainings(*sides)
                wrong[0] += test.sacrebleu_p is not None and test.sacrebleu_p <= LEVEL
                wrong[1] += p_not_rescaled(*sides) <= LEVEL
                wrong[2] += test.p <= LEVEL
            shares = [f"{100 * count / experiments:.1f}" for count in wrong]
            one = trainings == 1
            print(
                f"{trainings:9}  {'–' if one else ratio:>6}  {shares[0] if one else '–':>13}  "
                f"{'–' if one else shares[1]:>13}  {shares[2]:>4}",
                flush=True,
            )


if __name__ == "__main__":
    main()
