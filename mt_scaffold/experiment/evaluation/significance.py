"""One test for a difference between two systems: over their trainings and the segments of a test set together.

This is the Multi-Bootstrap (Sellam et al. 2022, *The MultiBERTs*, ICLR, section 3) with unpaired seeds: each resample
draws segments with replacement, the same for both systems, and trainings with replacement, of each system by itself.
Its statistic is the mean over the trainings drawn of the corpus score on the segments drawn, system minus baseline.

Two things differ from the publication's code. Its p-value is one-sided; here it is two-sided. And resampling n
trainings underestimates the variance between them by (n - 1) / n, which matters for two or three; each resampled mean
is therefore moved away from the mean of all trainings by the factor sqrt(n / (n - 1)) (the rescaling bootstrap of Rao
and Wu 1988, *Resampling Inference With Complex Survey Data*, JASA). With one training per system the test is the paired
bootstrap over segments (Koehn 2004), on the very resamples that sacreBLEU draws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Floats = NDArray[numpy.float64]

# sacreBLEU's default, so that its command draws the same segments.
RANDOM_SEED = 12345
LEVEL, POWER = 0.05, 0.8


@dataclass(frozen=True)
class Difference:
    """A system's mean score minus its baseline's, and how sure that is.

    low, high: 95 % percentile interval of the resampled differences. p: two-sided; the least p that ``n`` resamples
    can give is 1 / (n + 1). p_holm: corrected for all comparisons of the table. standard_error: standard deviation of
    the resampled differences. detectable: the smallest true difference that this design would find (``detectable``).
    sacrebleu_p: what sacreBLEU's own paired bootstrap reports, for one training per system; it is not two-sided (about
    half of p where the difference is clear), and kept only so that the resamples can be checked with its command.
    """

    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    standard_error: float
    detectable: float
    sacrebleu_p: float | None = field(default=None, metadata={"omit_none": True})


@dataclass(frozen=True)
class Resampled:
    """One training on one test set: its score, and its score on each resample of the segments."""

    score: float
    scores: Floats


def draw_segments(segments: int, samples: int) -> Floats:
    """Return how often each resample holds each segment (samples × segments), as sacreBLEU draws them."""
    import numpy

    drawn = numpy.random.default_rng(RANDOM_SEED).choice(segments, size=(samples, segments), replace=True)
    counts = [numpy.bincount(row, minlength=segments) for row in drawn]
    return numpy.array(counts, dtype=numpy.float64)


def resample(metric: Any, statistics: Sequence[Sequence[float]], drawn: Floats) -> Resampled:
    """Return the score of one training, and those on the resamples ``drawn``.

    metric: sacreBLEU's, or any with ``_compute_score_from_stats``. statistics: its sufficient statistics (segments ×
    statistics), whose sums over the segments give the corpus score.
    """
    import numpy

    rows = numpy.asarray(statistics, dtype=numpy.float64)
    scores = [metric._compute_score_from_stats(sums).score for sums in (drawn @ rows).tolist()]
    return Resampled(
        float(metric._compute_score_from_stats(rows.sum(axis=0).tolist()).score),
        numpy.array(scores, dtype=numpy.float64),
    )


def compare_trainings(system: Sequence[Resampled], baseline: Sequence[Resampled]) -> Difference:
    """Test a system against its baseline: the trainings of each, all on the same resamples of the segments.

    p counts the resamples whose difference, less the mean of all resampled differences, is at least as large in size
    as the difference found: (1 + count) / (1 + resamples). It and ``detectable`` are not yet corrected for the number
    of comparisons (``correct``).
    """
    import numpy

    found = _mean(system) - _mean(baseline)
    differences = _resampled_mean(system, 1) - _resampled_mean(baseline, 2)
    samples = len(differences)
    count = int(numpy.sum(numpy.abs(differences - differences.mean()) >= abs(found)))
    p = (1 + count) / (1 + samples)
    low, high = (float(numpy.percentile(differences, percent)) for percent in (2.5, 97.5))
    error = float(differences.std(ddof=1)) if samples > 1 else 0.0
    sizes = numpy.abs(differences)
    sacrebleu_p = None
    if len(system) == len(baseline) == 1:
        sacrebleu_p = (1 + int(numpy.sum(sizes - sizes.mean() > abs(found)))) / (1 + samples)
    return Difference(found, low, high, p, p, error, detectable(error, 1), sacrebleu_p)


def correct(p_values: Mapping[Any, float]) -> dict[Any, float]:
    """Return p-values corrected for their number by Holm's method (1979, *A Simple Sequentially Rejective Test*).

    >>> correct({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    ordered = sorted(p_values, key=lambda key: p_values[key])
    corrected: dict[Any, float] = {}
    largest = 0.0
    for rank, key in enumerate(ordered):
        largest = max(largest, min(1.0, (len(ordered) - rank) * p_values[key]))
        corrected[key] = largest
    return {key: corrected[key] for key in p_values}


def detectable(standard_error: float, comparisons: int) -> float:
    """Return the smallest true difference that a test finds with probability 80 % at level 5 %.

    (z(1 - 0.05 / 2m) + z(0.8)) × standard error, with the first step of Holm's method for m comparisons: the minimum
    detectable effect of Bloom 1995 (*Minimum Detectable Effects*), in normal approximation. Card et al. 2020 (*With
    Little Power Comes Great Responsibility*) find how seldom MT experiments reach such power.
    """
    normal = NormalDist()
    return (normal.inv_cdf(1 - LEVEL / (2 * comparisons)) + normal.inv_cdf(POWER)) * standard_error


def _mean(trainings: Sequence[Resampled]) -> float:
    return math.fsum(training.score for training in trainings) / len(trainings)


def _resampled_mean(trainings: Sequence[Resampled], side: int) -> Floats:
    """Return the mean score over the trainings drawn, for each resample; ``side``: 1 the system, 2 the baseline."""
    import numpy

    number = len(trainings)
    scores = numpy.stack([training.scores for training in trainings])
    samples = scores.shape[1]
    drawn = numpy.random.default_rng([RANDOM_SEED, side]).integers(number, size=(samples, number))
    weights = numpy.stack([(drawn == index).sum(axis=1) for index in range(number)]) / number
    if number > 1:
        weights = 1 / number + math.sqrt(number / (number - 1)) * (weights - 1 / number)
    return numpy.asarray((weights * scores).sum(axis=0))
