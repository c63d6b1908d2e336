"""Simulate the error rate and the power of the test over trainings and segments: docs/results/significance.

python -m studies.significance [--experiments 10000] [--part normal|real] [--multi30k FOLDER] [--text FILE]

Normal scores: the score of a segment is the sum of its difficulty, common to all systems, of the system's effect on it
(standard deviation 1), and of the training's effect on it (1); a training adds a constant to all of its segments. The
spread is the standard error that the trainings add to the difference, as a multiple of the one that the segments add.

Real statistics: of BLEU, by translating Multi30k with the most similar sentence of the training text; of bits per byte,
by n-gram models of bytes. A training is one random part of the training text. There are 40 of each system, and an
experiment draws trainings and segments from these with replacement, so that the true difference is known.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray
from scipy import sparse, special

from mt_scaffold.corpus.files import open_input
from mt_scaffold.experiment.evaluation.metrics import SumRatio
from mt_scaffold.experiment.evaluation.significance import (
    LEVEL,
    POWER,
    compare_trainings,
    detectable,
    draw_segments,
    resample,
    satterthwaite,
    variances,
)

Floats = NDArray[numpy.float64]

SEGMENTS, SAMPLES = 100, 400
REAL_SAMPLES = 200
NEIGHBOURS = 400
LINES = 24_000
SPREADS = (0.3, 1.0, 3.0, 10.0)
RATIOS = (1.0, 4.0, math.inf)
TRAININGS = (2, 3, 5, 8)
AT_ONCE = 500
POOL = 40


@dataclass
class Outcome:
    """Experiments: differences found minus the true one, and the least significant one by each of two estimates."""

    found: list[Floats]
    critical: list[Floats]
    counted_twice: list[Floats]
    spread: list[Floats]

    @classmethod
    def empty(cls) -> Outcome:
        """Return an outcome without experiments."""
        return cls([], [], [], [])

    def add(self, scores: Sequence[Floats], resampled: Sequence[Floats], segments: int, true: float) -> None:
        """Test many experiments at once; they are the leading axis of the arrays."""
        parts = variances(scores, resampled, segments)
        self.found.append(scores[0].mean(axis=-1) - scores[1].mean(axis=-1) - true)
        self.critical.append(least_significant(parts))
        # The simpler estimate adds the whole variance of resampled segments, of which s² already contains a part.
        differences = resampled[0].mean(axis=-2) - resampled[1].mean(axis=-2)
        by_segments = differences.var(axis=-1, ddof=1) * segments / (segments - 1)
        self.counted_twice.append(least_significant([(by_segments, parts[0][1]), *parts[1:]]))
        by_trainings = numpy.maximum(parts[0][0] + parts[1][0] + parts[2][0] - by_segments, 0)
        self.spread.append(numpy.array([by_trainings.mean(), by_segments.mean()]))

    def wrong(self, critical: list[Floats]) -> float:
        """Return the percentage of experiments whose interval misses the true difference."""
        return 100 * float(numpy.mean(numpy.abs(numpy.concatenate(self.found)) > numpy.concatenate(critical)))

    def found_in_four_of_five(self, critical: list[Floats], error: float) -> float:
        """Return the smallest true difference found with probability 80 %, in true standard errors."""
        needed = (numpy.concatenate(critical) - numpy.concatenate(self.found)) / error
        return float(numpy.quantile(needed, POWER))


def least_significant(parts: list[tuple[Any, float]]) -> Floats:
    """Return the least difference that is significant."""
    error, freedom = satterthwaite(parts)
    return numpy.asarray(special.stdtrit(freedom, 1 - LEVEL / 2) * error)


def normal_systems(
    draw: numpy.random.Generator, experiments: int, trainings: int, between: Sequence[float]
) -> list[Floats]:  # fmt: skip
    """Return the scores of the segments (experiments × trainings × segments) of two equal systems.

    between: the standard deviation between the trainings of each.
    """
    difficulty = draw.normal(0, 1, (experiments, 1, SEGMENTS))
    sides = []
    for deviation in between:
        own = draw.normal(0, 1, (experiments, 1, SEGMENTS)) + difficulty
        treated = own + draw.normal(0, 1, (experiments, trainings, SEGMENTS))
        sides.append(treated + draw.normal(0, 1, (experiments, trainings, 1)) * deviation)
    return sides


def deviations(trainings: int, spread: float, ratio: float) -> list[float]:
    """Return the standard deviations between the trainings of two systems, from the ratio of their variances."""
    both = spread**2 * 2 * (1 + 1 / trainings) / SEGMENTS * trainings
    first = 1.0 if ratio == math.inf else ratio / (1 + ratio)
    return [math.sqrt(both * first), math.sqrt(both * (1 - first))]


def check(sides: Sequence[Floats], drawn: Floats, outcome: Outcome) -> None:
    """Check on one experiment that the simulation computes the same test as ``compare``."""
    trained = [
        [resample(SumRatio(), [(float(value), 1.0) for value in row], drawn) for row in side[0]] for side in sides
    ]
    test = compare_trainings(trained[0], trained[1])
    assert math.isclose(test.high - test.difference, outcome.critical[0][0], rel_tol=1e-9)
    assert math.isclose(test.difference, outcome.found[0][0], rel_tol=1e-9, abs_tol=1e-12)


def normal_table(experiments: int) -> None:
    """Print how often normal scores of equal systems are found to differ, and the differences that can be found."""
    draw = numpy.random.default_rng(3)
    drawn = draw_segments(SEGMENTS, SAMPLES)
    print(f"Normal scores: {experiments:,} experiments per row, {SEGMENTS} segments, {SAMPLES} resamples\n")
    print(
        "| trainings | variances | spread | wrong, % | counted twice | found in 4 of 5 | counted twice | power line |"
    )
    print("|---|---|---|---|---|---|---|---|")
    worst: dict[int, float] = {}
    for trainings in TRAININGS:
        for ratio in RATIOS:
            for spread in SPREADS:
                between = deviations(trainings, spread, ratio)
                outcome = Outcome.empty()
                lines = []
                for begin in range(0, experiments, AT_ONCE):
                    number = min(AT_ONCE, experiments - begin)
                    sides = normal_systems(draw, number, trainings, between)
                    resampled = [side @ drawn.T / SEGMENTS for side in sides]
                    scores = [side.mean(axis=-1) for side in sides]
                    outcome.add(scores, resampled, SEGMENTS, 0.0)
                    if begin == 0:
                        check(sides, drawn, outcome)
                        error, freedom = satterthwaite(variances(scores, resampled, SEGMENTS))
                        lines = [detectable(*pair, 1) for pair in zip(error.tolist(), freedom.tolist(), strict=True)]
                segments = 2 * (1 + 1 / trainings) / SEGMENTS
                error = math.sqrt(segments * (1 + spread**2))
                figures = [
                    f"{outcome.wrong(outcome.critical):.1f}",
                    f"{outcome.wrong(outcome.counted_twice):.1f}",
                    f"{outcome.found_in_four_of_five(outcome.critical, error):.2f}",
                    f"{outcome.found_in_four_of_five(outcome.counted_twice, error):.2f}",
                    f"{statistics.median(lines) / error:.2f}",
                ]
                worst[trainings] = max(worst.get(trainings, 0.0), outcome.wrong(outcome.critical))
                shown = "one system's" if ratio == math.inf else f"{ratio:g} : 1"
                print(f"| {trainings} | {shown} | {spread:g} | {' | '.join(figures)} |", flush=True)
    print("\nWorst:", ", ".join(f"{trainings} trainings {value:.1f} %" for trainings, value in worst.items()))


def one_training(experiments: int) -> None:
    """Print how often the paired bootstrap over segments errs if trainings differ as well."""
    draw = numpy.random.default_rng(4)
    drawn = draw_segments(SEGMENTS, SAMPLES)
    print(f"\nOne training per system, sentences only: {experiments:,} experiments per row\n")
    print("| spread | p ≤ 0.05, % | sacreBLEU's p ≤ 0.05, % |\n|---|---|---|")
    for spread in (0.0, *SPREADS):
        wrong = [0, 0]
        sides = normal_systems(draw, experiments, 1, deviations(1, spread, 1.0))
        for one, other in zip(*sides, strict=True):
            pair = [[resample(SumRatio(), [(value, 1.0) for value in row[0].tolist()], drawn)] for row in (one, other)]
            test = compare_trainings(pair[0], pair[1])
            wrong[0] += (test.segments_p or 1) <= LEVEL
            wrong[1] += (test.sacrebleu_p or 1) <= LEVEL
        print(f"| {spread:g} | {100 * wrong[0] / experiments:.1f} | {100 * wrong[1] / experiments:.1f} |", flush=True)


# Real statistics


@dataclass(frozen=True)
class Pool:
    """The statistics of two systems on one test set (each: trainings × segments × statistics), and their score."""

    name: str
    sides: tuple[Floats, Floats]
    score: Callable[[Floats], Floats]


def bleu(sums: Floats) -> Floats:
    """Return BLEU from sums of sacreBLEU's statistics (the last axis), none of which may be 0."""
    lengths, references, matching, total = sums[..., 0], sums[..., 1], sums[..., 2:6], sums[..., 6:10]
    brevity = numpy.minimum(1.0, numpy.exp(1 - references / lengths))
    return numpy.asarray(100 * brevity * numpy.exp(numpy.log(matching / total).mean(axis=-1)))


def ratio(sums: Floats) -> Floats:
    """Return bits per byte from sums of bits and bytes (the last axis)."""
    return numpy.asarray(sums[..., 0] / sums[..., 1])


def parts_of(size: int, varying: bool, seed: int) -> Iterator[NDArray[numpy.bool_]]:
    """Yield a mask of the lines of the training text for each training: half of them, or a share from 1/20 to all."""
    draw = numpy.random.default_rng(seed)
    for _ in range(POOL):
        share = draw.uniform(0.05, 1) if varying else 0.5
        yield draw.random(size) < share


def read(path: Path) -> list[str]:
    """Return the lines of a file."""
    with open_input(path) as stream:
        return stream.read().decode().split("\n")[:-1]


def words_of(line: str) -> list[str]:
    """Return the features of the first system: words."""
    return line.lower().split()


def trigrams_of(line: str) -> list[str]:
    """Return the features of the second system: character trigrams."""
    line = f" {line.lower()} "
    return [line[at : at + 3] for at in range(len(line) - 2)]


def vectors(lines: list[str], features: Callable[[str], list[str]], size: int) -> Any:
    """Return a unit vector of tf-idf weights per line; document frequencies are those of the first ``size`` lines."""
    numbers: dict[str, int] = {}
    rows, columns = [], []
    for row, line in enumerate(lines):
        for feature in features(line):
            rows.append(row)
            columns.append(numbers.setdefault(feature, len(numbers)))
    ones = numpy.ones(len(rows), numpy.float32)
    counts = sparse.csr_matrix((ones, (rows, columns)), shape=(len(lines), len(numbers)))
    holding = numpy.asarray((counts[:size] > 0).sum(axis=0)).ravel()
    weighted = counts.multiply(numpy.log((size + 1) / (holding + 1))[None, :]).tocsr()
    lengths = numpy.sqrt(numpy.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    return sparse.diags(1 / numpy.maximum(lengths, 1e-9)) @ weighted


def translations(folder: Path, varying: bool) -> Pool:
    """Return BLEU's statistics of translations by the most similar sentence of the training text."""
    from sacrebleu.metrics import BLEU

    sources, targets = read(folder / "train.en.gz"), read(folder / "train.de.gz")
    test, references = read(folder / "test_2016_flickr.en.gz"), read(folder / "test_2016_flickr.de.gz")
    metric = BLEU(references=[references])
    by_pair: dict[tuple[int, int], list[float]] = {}
    sides = []
    for seed, features in enumerate((words_of, trigrams_of)):
        weights = vectors(sources + test, features, len(sources))
        likeness = (weights[len(sources) :] @ weights[: len(sources)].T).toarray().astype(numpy.float32)
        nearest = numpy.argpartition(-likeness, NEIGHBOURS)[:, :NEIGHBOURS]
        order = numpy.argsort(-numpy.take_along_axis(likeness, nearest, 1), kind="stable")
        nearest = numpy.take_along_axis(nearest, order, 1)
        pool = []
        for chosen in parts_of(len(sources), varying, seed):
            assert chosen[nearest].any(axis=1).all()
            best = nearest[numpy.arange(len(test)), chosen[nearest].argmax(axis=1)].tolist()
            unseen = [pair for pair in enumerate(best) if pair not in by_pair]
            for segment, other in unseen:
                own = BLEU(references=None)
                own._ref_cache = [metric._ref_cache[segment]]
                by_pair[segment, other] = own._extract_corpus_statistics([targets[other]], None)[0]
            pool.append([by_pair[pair] for pair in enumerate(best)])
        sides.append(numpy.array(pool, numpy.float64))
    whole = float(bleu(sides[0][0].sum(axis=0)))
    assert math.isclose(whole, metric._compute_score_from_stats(sides[0][0].sum(axis=0).tolist()).score, rel_tol=1e-9)
    return Pool("BLEU, Multi30k", (sides[0], sides[1]), bleu)


def byte_model(text: bytes, order: int) -> Callable[[bytes], Floats]:
    """Return a function for the bits of each byte of data in an n-gram model of ``text``.

    Source: the interpolation of Witten and Bell 1991, with the uniform distribution at the bottom.
    """

    def keys(data: bytes, length: int) -> NDArray[numpy.uint64]:
        values = numpy.frombuffer(b"\n" * (order - 1) + data, numpy.uint8).astype(numpy.uint64)
        found = numpy.zeros(len(data), numpy.uint64)
        for back in range(length):
            begin = order - 1 - back
            found |= values[begin : begin + len(data)] << numpy.uint64(8 * back)
        return found

    counted = [numpy.unique(keys(text, length), return_counts=True) for length in range(1, order + 1)]

    def looked_up(table: tuple[Any, Any], wanted: Any) -> Floats:
        places = numpy.minimum(numpy.searchsorted(table[0], wanted), len(table[0]) - 1)
        return numpy.where(table[0][places] == wanted, table[1][places], 0).astype(numpy.float64)

    def bits(data: bytes) -> Floats:
        likelihood = numpy.full(len(data), 1 / 256)
        for length, (grams, counts) in enumerate(counted, 1):
            wanted = keys(data, length)
            contexts, places = numpy.unique(grams >> numpy.uint64(8), return_inverse=True)
            totals, types = numpy.bincount(places, weights=counts), numpy.bincount(places)
            history = wanted >> numpy.uint64(8)
            total, kinds = looked_up((contexts, totals), history), looked_up((contexts, types), history)
            matching = looked_up((grams, counts), wanted)
            seen = numpy.where(total > 0, (matching + kinds * likelihood) / numpy.maximum(total + kinds, 1), likelihood)
            likelihood = seen
        return numpy.asarray(-numpy.log2(likelihood))

    return bits


def documents(path: Path, varying: bool) -> Pool:
    """Return the bits and bytes of blocks of 20 lines, in models of orders three and four."""
    with open_input(path) as stream:
        lines = [line for line, _ in zip(stream, range(LINES), strict=False)]
    blocks = [b"".join(lines[begin : begin + 20]) for begin in range(0, len(lines), 20)]
    held_out, texts = blocks[::5], [block for number, block in enumerate(blocks) if number % 5]
    ends = numpy.cumsum([len(block) for block in held_out])[:-1]
    sides = []
    for seed, order in enumerate((3, 4)):
        pool = []
        for chosen in parts_of(len(texts), varying, 10 + seed):
            bits = byte_model(b"".join(texts[place] for place in numpy.flatnonzero(chosen)), order)(b"".join(held_out))
            by_document = [float(part.sum()) for part in numpy.split(bits, ends)]
            pool.append([[found, len(block)] for found, block in zip(by_document, held_out, strict=True)])
        sides.append(numpy.array(pool, numpy.float64))
    return Pool("bits per byte, MDN", (sides[0], sides[1]), ratio)


def real_table(pools: Sequence[Pool], experiments: int) -> None:
    """Print how often the interval misses the true difference between two systems, with real statistics."""
    print(f"\nReal statistics: {experiments:,} experiments per row, {REAL_SAMPLES} resamples\n")
    print("| statistics | segments | scores of the trainings | trainings | spread | wrong, % | counted twice |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for number, pool in enumerate(pools):
        draw = numpy.random.default_rng(5 + number)
        segments, columns = pool.sides[0].shape[1:]
        drawn = draw_segments(segments, REAL_SAMPLES)
        whole = [pool.score(side.sum(axis=1)) for side in pool.sides]
        true = float(whole[0].mean() - whole[1].mean())
        shown = " and ".join(f"{each.mean():.3f} ± {each.std(ddof=1):.3f}" for each in whole)
        for trainings in TRAININGS[1:]:
            outcome = Outcome.empty()
            for _ in range(experiments):
                chosen = draw.integers(segments, size=segments)
                sides = [side[draw.integers(POOL, size=trainings)][:, chosen] for side in pool.sides]
                flat = numpy.concatenate(sides).transpose(1, 0, 2).reshape(segments, -1)
                sums = (drawn @ flat).reshape(REAL_SAMPLES, 2, trainings, columns).transpose(1, 2, 0, 3)
                resampled = [each[None] for each in pool.score(sums)]
                outcome.add([pool.score(side.sum(axis=1))[None] for side in sides], resampled, segments, true)
            between, within = numpy.mean(outcome.spread, axis=0)
            row = [pool.name, f"{segments:,}", shown, str(trainings), f"{math.sqrt(between / within):.1f}"]
            row += [f"{outcome.wrong(outcome.critical):.1f}", f"{outcome.wrong(outcome.counted_twice):.1f}"]
            print(f"| {' | '.join(row)} |", flush=True)


def main() -> None:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiments", type=int, default=10_000, metavar="N", help="per row; a tenth for real ones")
    parser.add_argument("--part", choices=("normal", "real"), help="print only these tables")
    parser.add_argument("--multi30k", type=Path, metavar="FOLDER", help="train and test_2016_flickr, .en.gz and .de.gz")
    parser.add_argument("--text", type=Path, metavar="FILE", help=f"a text of {LINES:,} lines or more, .gz")
    options = parser.parse_args()
    if options.part != "real":
        normal_table(options.experiments)
        one_training(options.experiments // 10)
    pools = []
    for varying in (False, True):
        if options.part != "normal" and options.multi30k:
            pools.append(translations(options.multi30k, varying))
        if options.part != "normal" and options.text:
            pools.append(documents(options.text, varying))
    if pools:
        real_table(pools, options.experiments // 10)


if __name__ == "__main__":
    main()
