"""Tests for a difference in bits per byte: over documents and trainings, over documents alone, over seeds.

The score is a ratio of sums: the bits of all documents divided by their bytes. Documents are the units of resampling,
the same for both systems. The test over documents and trainings together is ``significance.compare_trainings``.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mt_scaffold.experiment.evaluation.significance import RANDOM_SEED, TRAININGS_FOR_P, Resampled, t_test_p

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Floats = NDArray[numpy.float64]

_NUMBERS_AT_ONCE = 1 << 23


@dataclass(frozen=True)
class PairedSeeds:
    """The differences between two systems' trainings with the same seeds, system minus baseline, in bits per byte.

    sd: of the differences (n - 1). p: of Student's paired t-test, two-sided.
    """

    seeds: list[int]
    mean: float
    sd: float
    p: float


def resample_documents(bits: Floats, sizes: Floats, samples: int) -> list[Resampled]:
    """Return the bits per byte of each training, on all documents and on each resample of them (paired bootstrap).

    bits: trainings × documents. sizes: the bytes of each document. The documents are drawn with replacement, as
    ``significance.draw_segments`` draws segments, but in bounded memory.
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


def randomisation_p(differences: Floats, samples: int) -> float:
    """Return the two-sided p of approximate randomisation (Noreen 1989) over documents.

    differences: the bits of each document, system minus baseline, each a mean over its trainings. Under the null
    hypothesis the two are exchangeable in every document: each sample swaps them with probability 1/2, and p is
    (1 + the number of samples whose sum is at least as large in absolute value) / (1 + samples).
    """
    import numpy

    generator = numpy.random.default_rng([RANDOM_SEED, 3])
    found = abs(float(differences.sum()))
    # Sums of the same numbers in a different order may differ in the last bits.
    least = found - 1e-9 * float(numpy.abs(differences).sum())
    count = 0
    at_once = max(1, _NUMBERS_AT_ONCE // len(differences))
    for begin in range(0, samples, at_once):
        swapped = generator.integers(2, size=(min(at_once, samples - begin), len(differences)), dtype=numpy.int8)
        sums = (1 - 2 * swapped) @ differences
        count += int(numpy.count_nonzero(numpy.abs(sums) >= least))
    return (1 + count) / (1 + samples)


def paired_seeds(system: Mapping[int, float], baseline: Mapping[int, float]) -> PairedSeeds | None:
    """Return the test over the seeds that both systems were trained with (scores by seed); None for fewer than 3."""
    seeds = sorted(system.keys() & baseline.keys())
    if len(seeds) < TRAININGS_FOR_P:
        return None
    differences = [system[seed] - baseline[seed] for seed in seeds]
    mean, sd = statistics.fmean(differences), statistics.stdev(differences)
    if sd == 0:
        return PairedSeeds(seeds, mean, sd, 1.0 if mean == 0 else 0.0)
    return PairedSeeds(seeds, mean, sd, t_test_p(mean / (sd / math.sqrt(len(seeds))), len(seeds) - 1))


def mean_bits(trainings: Sequence[Any]) -> Floats:
    """Return the mean bits of each document over the trainings of a system (trainings × documents)."""
    import numpy

    return numpy.asarray(numpy.mean(numpy.asarray(trainings, numpy.float64), axis=0))
