"""One test for a difference between two systems: over their trainings and the segments of a test set together.

Both are random: another training would score differently, and so would other segments. Trainings belong to one system,
segments are the same for all, and the score of a training is a function of sums over the segments. The variance of the
difference between two systems' means over n₁ and n₂ trainings has three parts:

- s₁² / n₁ and s₂² / n₂, from the variance of the scores of each system's trainings, with n - 1 degrees of freedom;
- the contribution of the segments: the variance of the difference over resampled segments (bootstrap, Efron 1979) less
  the share due to how differently the trainings of one system treat the same segments, which s² already contains.

The statistic is the difference divided by the square root of their sum, against Student's t with Satterthwaite's
degrees of freedom (1946, *An Approximate Distribution of Estimates of Variance Components*), as in Welch's test (1947).
This is the quasi-F test of Clark (1973, *The Language-as-Fixed-Effect Fallacy*) for scores that are not means over
segments. docs/results/significance has its error rates.

On the mean over several test sets, which share no segments, the score of a training is its mean over them, and the
segments contribute a part for each test set, divided by the square of their number.

It takes three trainings of each system. With two there is only an interval. With one, the test is the paired bootstrap
over segments (Koehn 2004), on the resamples that sacreBLEU draws, and says nothing about other trainings.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Floats = NDArray[numpy.float64]

# sacreBLEU's default, so that its command draws the same segments.
RANDOM_SEED = 12345
LEVEL, POWER = 0.05, 0.8
# With two, the test finds a difference that does not exist in up to 12 of 100 cases.
TRAININGS_FOR_P = 3
# No p is smaller than that of an exact sign-flip test, 2 / 2^n for n segments (Fisher 1935, *The Design of
# Experiments*): with fewer, it cannot be below the level, and there is no test.
SEGMENTS_FOR_P = 6
# With fewer segments, Student's t and the bootstrap are rough.
ROUGH_BELOW = 30
_NUMBERS_AT_ONCE = 1 << 23


@dataclass(frozen=True)
class Difference:
    """A system's mean score minus its baseline's, and how certain that is.

    low, high: 95 % interval. p: two-sided, over trainings and segments; None for fewer than three trainings of either
    system. p_holm: corrected for all such p of the table. standard_error: of the difference. freedom: the degrees of
    freedom of Student's t; None if a system has a single training. detectable: the smallest true difference that this
    design would find (``detectable``).

    If a system has a single training, all but ``difference`` concerns other segments for these trainings only:
    segments_p is the p of the paired bootstrap, segments_p_holm the same corrected for all of its kind, low and high
    are percentiles. sacrebleu_p: the p that sacreBLEU's own paired bootstrap reports, for one training per system; it
    is not two-sided (about half of segments_p for a clear difference), and kept only so that the resamples can be
    checked with its command. segments: on which the test rests; None in results of earlier versions.
    """

    difference: float
    low: float
    high: float
    p: float | None
    p_holm: float | None
    standard_error: float
    freedom: float | None
    detectable: float
    segments_p: float | None = field(default=None, metadata={"omit_none": True})
    segments_p_holm: float | None = field(default=None, metadata={"omit_none": True})
    sacrebleu_p: float | None = field(default=None, metadata={"omit_none": True})
    segments: int | None = field(default=None, metadata={"omit_none": True})


@dataclass(frozen=True)
class Resampled:
    """One training on one test set: its score, its score on each resample, and the number of segments."""

    score: float
    scores: Floats
    segments: int


def draw_segments(segments: int, samples: int) -> Floats:
    """Return how often each resample contains each segment (samples × segments), as sacreBLEU draws them."""
    import numpy

    drawn = numpy.random.default_rng(RANDOM_SEED).choice(segments, size=(samples, segments), replace=True)
    counts = [numpy.bincount(row, minlength=segments) for row in drawn]
    return numpy.array(counts, dtype=numpy.float64)


def resample(metric: Any, statistics: Sequence[Sequence[float]], drawn: Floats) -> Resampled:
    """Return the score of one training, and those on the resamples ``drawn``.

    metric: sacreBLEU's, or any object with ``_compute_score_from_stats``. statistics: its sufficient statistics
    (segments × statistics), whose sums over the segments give the corpus score.
    """
    import numpy

    rows = numpy.asarray(statistics, dtype=numpy.float64)
    scores = [metric._compute_score_from_stats(sums).score for sums in (drawn @ rows).tolist()]
    return Resampled(
        float(metric._compute_score_from_stats(rows.sum(axis=0).tolist()).score),
        numpy.array(scores, dtype=numpy.float64),
        len(rows),
    )


def resample_documents(bits: Floats, sizes: Floats, samples: int) -> list[Resampled]:
    """Return the bits per byte of each training, on all documents and on each resample of them (paired bootstrap).

    bits: trainings × documents. sizes: the bytes of each document. The documents are drawn with replacement, as
    ``draw_segments`` draws segments, but in bounded memory.
    """
    import numpy

    documents = len(sizes)
    columns = numpy.vstack([bits, sizes]).T
    generator = numpy.random.default_rng(RANDOM_SEED)
    drawn = numpy.empty((samples, columns.shape[1]))
    at_once = max(1, _NUMBERS_AT_ONCE // documents)
    for begin in range(0, samples, at_once):
        rows = generator.choice(documents, size=(min(at_once, samples - begin), documents), replace=True)
        counts = numpy.array([numpy.bincount(row, minlength=documents) for row in rows], numpy.float64)
        drawn[begin : begin + len(rows)] = counts @ columns
    whole = columns.sum(axis=0)
    return [
        Resampled(float(whole[number] / whole[-1]), drawn[:, number] / drawn[:, -1], documents)
        for number in range(len(bits))
    ]


def mean_interval(scores: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of two or more trainings' scores, by Student's t.

    >>> [round(each, 3) for each in mean_interval([1.0, 2.0, 3.0])]
    [-0.484, 4.484]
    """
    error = statistics.stdev(scores) / math.sqrt(len(scores))
    margin = t_quantile(1 - LEVEL / 2, len(scores) - 1) * error
    return statistics.fmean(scores) - margin, statistics.fmean(scores) + margin


def bootstrap_interval(resampled: Resampled) -> tuple[float, float]:
    """Return the 95 % interval of one training's score over segments, as sacreBLEU computes it.

    That is the mean of the resamples plus or minus half the distance between their percentiles.
    """
    import numpy

    ordered = numpy.sort(resampled.scores)
    outside = int(len(ordered) * LEVEL / 2)
    half = float(ordered[len(ordered) - outside - 1] - ordered[outside]) / 2
    mean = float(ordered.mean())
    return mean - half, mean + half


def compare_trainings(system: Sequence[Resampled], baseline: Sequence[Resampled]) -> Difference:
    """Test a system against its baseline: the trainings of each, all on the same resamples of the segments.

    p and ``detectable`` are not yet corrected for the number of comparisons (``corrected``). Raises ValueError for
    fewer than SEGMENTS_FOR_P segments.
    """
    return compare_means([system], [baseline])


def compare_means(system: Sequence[Sequence[Resampled]], baseline: Sequence[Sequence[Resampled]]) -> Difference:
    """Test a system against its baseline on the mean over test sets, as ``compare_trainings`` does on one.

    system, baseline: for each test set, the same trainings in the same order.
    """
    import numpy

    sizes = [trainings[0].segments for trainings in system]
    if min(sizes) < SEGMENTS_FOR_P:
        raise ValueError(f"{min(sizes)} segments are too few for a test")
    number, found = len(sizes), [_arrays(sides) for sides in zip(system, baseline, strict=True)]
    means = [numpy.mean([scores[side] for scores, _ in found], axis=0) for side in (0, 1)]
    if min(map(len, means)) == 1:
        # Two test sets of equal length have the same draws: independent ones are in another order.
        orders = [numpy.random.default_rng(place).permutation(len(system[0][0].scores)) for place in range(number)]
        orders[0].sort()
        drawn = [
            numpy.mean([each[side][:, order] for (_, each), order in zip(found, orders, strict=True)], axis=0)
            for side in (0, 1)
        ]
        return _over_segments(means, drawn, sum(sizes))
    of_segments = [variances(*each, size)[0] for each, size in zip(found, sizes, strict=True)]
    parts = [(float(variance) / number**2, freedom) for variance, freedom in of_segments]
    return joint_test(means[0].tolist(), means[1].tolist(), parts, sum(sizes))


def joint_test(
    system: Sequence[float],
    baseline: Sequence[float],
    of_segments: Iterable[tuple[float, float]],
    segments: int | None = None,
) -> Difference:
    """Test the scores of two or more trainings of each system, over trainings and segments together.

    of_segments: what the segments contribute to the variance of the difference, with the degrees of freedom of each
    part; without any, this is Welch's test over trainings alone. segments: their number, if known.
    """
    sides = (system, baseline)
    own = ((statistics.variance(side) / len(side), len(side) - 1.0) for side in sides)
    error, freedom = map(float, satterthwaite([*of_segments, *own]))
    found = statistics.fmean(system) - statistics.fmean(baseline)
    p = None
    if min(map(len, sides)) >= TRAININGS_FOR_P:
        p = float(found == 0) if error == 0 else t_test_p(found / error, freedom)
        p = p if segments is None else max(p, least_p(segments))
    margin = t_quantile(1 - LEVEL / 2, freedom) * error
    return Difference(
        *(found, found - margin, found + margin, p, p, error, freedom, detectable(error, freedom, comparisons=1)),
        segments=segments,
    )


def least_p(segments: int) -> float:
    """Return the smallest two-sided p of an exact sign-flip test over segments.

    >>> least_p(6)
    0.03125
    """
    return 2.0 ** (1 - segments)


def _arrays(sides: Sequence[Sequence[Resampled]]) -> tuple[list[Floats], list[Floats]]:
    """Return the scores of each system's trainings, and those on the resamples."""
    import numpy

    scores = [numpy.array([training.score for training in side]) for side in sides]
    return scores, [numpy.stack([training.scores for training in side]) for side in sides]


@dataclass(frozen=True)
class Design:
    """The numbers of trainings of each of two systems, and of segments that they are scored on."""

    trainings: int
    segments: int


def variances(
    scores: Sequence[Floats], resampled: Sequence[Floats], segments: int, planned: Design | None = None
) -> list[tuple[Floats, float]]:
    """Return the parts of the variance of the difference between two systems' means, with their degrees of freedom.

    scores: for each system, (..., trainings). resampled: for each, (..., trainings, resamples). The leading axes are
    those of the result, for many experiments at once. planned: return the variances expected for this design (default:
    those found). The contribution of the segments, also to the variance between trainings, shrinks with their number.
    """
    import numpy

    # Between resamples, a mean has (segments - 1) / segments times its true variance.
    unbiased = segments / (segments - 1)
    samples = resampled[0].shape[-1]
    over_trainings = [each.mean(axis=-2) for each in resampled]
    by_segments = unbiased * numpy.var(over_trainings[0] - over_trainings[1], axis=-1, ddof=1)
    parts = []
    fewer = 1.0 if planned is None else segments / planned.segments
    for own, drawn, mean in zip(scores, resampled, over_trainings, strict=True):
        number = own.shape[-1]
        deviating = (drawn - mean[..., None, :]).var(axis=-1, ddof=1).sum(axis=-1) / (number - 1)
        by_segments = by_segments - unbiased * deviating / number
        between = own.var(axis=-1, ddof=1)
        between = between - numpy.minimum(between, unbiased * deviating) * (1 - fewer)
        trainings = number if planned is None else planned.trainings
        parts.append((between / trainings, trainings - 1.0))
    drawn_from = segments if planned is None else planned.segments
    # The degrees of freedom of a variance estimated from resamples of the segments.
    freedom = 1 / (1 / (drawn_from - 1) + 1 / (samples - 1))
    return [(numpy.maximum(by_segments, 0.0) * fewer, freedom), *parts]


def satterthwaite(parts: Iterable[tuple[Any, float]]) -> tuple[Any, Any]:
    """Return the standard error from the parts of its square, and its degrees of freedom.

    If all parts are 0, the degrees of freedom are the fewest of any part.
    """
    import numpy

    parts = [(numpy.asarray(variance, numpy.float64), freedom) for variance, freedom in parts]
    total = sum(variance for variance, _ in parts)
    # Shares, as the squares of the variances may underflow.
    shares = [(variance / numpy.where(total > 0, total, 1.0), freedom) for variance, freedom in parts]
    inverse = sum(share**2 / freedom for share, freedom in shares)
    fewest = min(freedom for _, freedom in parts)
    return numpy.sqrt(total), numpy.where(total > 0, 1 / numpy.where(total > 0, inverse, 1.0), fewest)


def _over_segments(scores: Sequence[Floats], resampled: Sequence[Floats], segments: int) -> Difference:
    """Return the paired bootstrap over segments.

    segments_p is (1 + count) / (1 + resamples), where count is the number of resamples whose difference, less the mean
    of all resampled differences, is at least as large in absolute value as the difference found.
    """
    import numpy

    found = float(scores[0].mean() - scores[1].mean())
    differences = resampled[0].mean(axis=0) - resampled[1].mean(axis=0)
    samples = len(differences)
    p = (1 + int(numpy.sum(numpy.abs(differences - differences.mean()) >= abs(found)))) / (1 + samples)
    p = max(p, least_p(segments))
    low, high = (float(numpy.percentile(differences, percent)) for percent in (2.5, 97.5))
    error = float(differences.std(ddof=1)) if samples > 1 else 0.0
    sizes = numpy.abs(differences)
    sacrebleu_p = None
    if len(scores[0]) == len(scores[1]) == 1:
        sacrebleu_p = (1 + int(numpy.sum(sizes - sizes.mean() > abs(found)))) / (1 + samples)
    least = detectable(error, None, comparisons=1)
    return Difference(found, low, high, None, None, error, None, least, p, p, sacrebleu_p, segments)


def corrected(tests: Mapping[Any, Difference]) -> dict[Any, Difference]:
    """Return the tests of one table with the fields that depend on their number, ``p_holm`` and ``detectable``.

    Tests over trainings and tests over segments alone are counted separately.
    """
    over_trainings = correct({key: test.p for key, test in tests.items() if test.p is not None})
    over_segments = correct({key: test.segments_p for key, test in tests.items() if test.segments_p is not None})
    found = {}
    for key, test in tests.items():
        number = len(over_trainings) if key in over_trainings else len(over_segments) if key in over_segments else 1
        found[key] = replace(
            test,
            p_holm=over_trainings.get(key),
            segments_p_holm=over_segments.get(key),
            detectable=detectable(test.standard_error, test.freedom, number),
        )
    return found


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


def detectable(standard_error: float, freedom: float | None, comparisons: int) -> float:
    """Return the smallest true difference that a test finds with probability 80 % at level 5 %.

    The standard error times the noncentrality of Student's t that exceeds the critical value of the first step of
    Holm's method for that many comparisons with probability 80 % (the minimum detectable effect of Bloom 1995, *Minimum
    Detectable Effects*, by the noncentral distribution). freedom: None for the normal distribution. Card et al. 2020
    (*With Little Power Comes Great Responsibility*) find how seldom MT experiments reach such power.

    >>> round(detectable(1.0, 4, 1), 2), round(detectable(1.0, None, 1), 2)
    (3.76, 2.8)
    """
    from scipy import special

    freedom = math.inf if freedom is None else freedom
    critical = t_quantile(1 - LEVEL / (2 * comparisons), freedom)
    return float(special.nctdtrinc(freedom, 1 - POWER, critical)) * standard_error


def planned_detectable(
    system: Sequence[Resampled], baseline: Sequence[Resampled], planned: Design, comparisons: int
) -> float:
    """Return ``detectable`` for a planned design, from the variances of the trainings at hand, two or more per system.

    For the design at hand it equals the result of ``compare_trainings`` and ``corrected``.
    """
    return detectable(*_error_and_freedom(system, baseline, planned), comparisons)


def planned_power(
    system: Sequence[Resampled], baseline: Sequence[Resampled], planned: Design, difference: float, comparisons: int
) -> float:
    """Return the probability with which a design would find a true difference (80 % for that of ``detectable``).

    That is the probability that the noncentral t exceeds the critical value of the first step of Holm's correction, on
    the side of the difference.
    """
    return power(*_error_and_freedom(system, baseline, planned), difference, comparisons)


def power(error: float, freedom: float, difference: float, comparisons: int) -> float:
    """Return ``planned_power`` from the standard error of the difference and its degrees of freedom.

    >>> round(power(1.0, 4, 3.76, 1), 2)
    0.8
    """
    from scipy import special

    if error == 0:
        return 1.0
    critical = t_quantile(1 - LEVEL / (2 * comparisons), freedom)
    return float(1 - special.nctdtr(freedom, abs(difference) / error, critical))


def _error_and_freedom(
    system: Sequence[Resampled], baseline: Sequence[Resampled], planned: Design
) -> tuple[float, float]:
    """Return the standard error of the difference in a planned design, and its degrees of freedom."""
    scores, resampled = _arrays((system, baseline))
    error, freedom = satterthwaite(variances(scores, resampled, system[0].segments, planned))
    return float(error), float(freedom)


def spread_interval(freedom: float) -> tuple[float, float]:
    """Return the 95 % interval of a true standard deviation, as multiples of the one found (the chi-squared interval).

    >>> [round(each, 2) for each in spread_interval(4)]
    [0.6, 2.87]
    """
    from scipy import special

    low, high = (math.sqrt(freedom / special.chdtri(freedom, tail)) for tail in (LEVEL / 2, 1 - LEVEL / 2))
    return low, high


def t_test_p(t: float, freedom: float) -> float:
    """Return the two-sided p of Student's t.

    >>> round(t_test_p(4.302653, 2), 6)
    0.05
    """
    from scipy import special

    return float(2 * special.stdtr(freedom, -abs(t)))


def t_quantile(share: float, freedom: float) -> float:
    """Return the value that Student's t stays below with probability ``share``.

    >>> round(t_quantile(0.975, 2), 6)
    4.302653
    """
    from scipy import special

    return float(special.stdtrit(freedom, share))


def shown_p(p: float | None) -> str:
    """Return a p-value as the tables show it.

    >>> shown_p(0.0123), shown_p(0.0009), shown_p(None)
    ('0.012', '< 0.001', '')
    """
    if p is None:
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_columns(tests: Iterable[Difference], units: str = "sentences") -> dict[str, str]:
    """Return the headings of a table's p-values, and the attribute of ``Difference`` that each shows.

    units: the name of the segments of this test set.
    """
    tests = list(tests)
    columns: dict[str, str] = {}
    if any(test.p is not None for test in tests):
        columns |= {"p": "p", "p, Holm": "p_holm"}
    if any(test.segments_p is not None for test in tests):
        columns |= {f"{units} only": "segments_p", f"{units} only, Holm": "segments_p_holm"}
    return columns
