"""The comparisons of Multi30k that were named before the trainings, from comparisons that are stored.

python -m studies.named_comparisons FOLDER/comparison.json ... [--average TEST ...] [--seeds N ...]

The configuration (configs/multi30k_en_de.yaml) has the names. The primary measure is the mean over the test sets that
--average names; each by itself is secondary. Segments of older trainings are not stored, so the test is Welch's (1947)
over trainings alone: it says nothing about other sentences. p is corrected by Holm over the comparisons of the primary
measure of one metric. Beside each interval stand the gains that the paper reports in BLEU on WMT'14, and the
probability with which this test would have found a true difference of that size, at the first step of Holm's
correction; and how often people prefer the system with the higher BLEU where two differ by so much. Systems have a
table first, with the trainings that ended while they still improved. Trainings that the files lack are listed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, variance
from typing import NamedTuple

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.evaluation.significance import (
    LEVEL,
    TRAININGS_FOR_P,
    correct,
    power,
    satterthwaite,
    shown_p,
    t_quantile,
    t_test_p,
)
from mt_scaffold.experiment.runtime.result_warnings import NOT_CONVERGED
from mt_scaffold.tables import decimal, format_table

METRICS = {"bleu": ("BLEU", 2), "reference_bits_per_byte": ("bits per byte of the reference", 4)}
UNTOUCHED = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")


class Named(NamedTuple):
    """A system, what it is compared with, and the paper's gains in BLEU on En-De and En-Fr, if it has this pair."""

    system: str
    baseline: str
    gains: tuple[float, ...] = ()


NAMED = (
    Named("scaffold", "bpe", (0.45, 0.61)),
    Named("scaffold+dropout", "bpe+dropout", (0.28, 0.39)),
    Named("control", "bpe"),
    Named("scaffold", "control"),
)

# Test set → system → seed → score.
Scores = dict[str, dict[str, dict[int, float]]]


@dataclass(frozen=True)
class Training:
    """What a comparison says of one training; rows: of its embeddings, without fairseq's own symbols and padding."""

    epochs: int
    updates: int
    subwords: int
    rows: int
    improving: bool


# System → seed → training.
Trainings = dict[str, dict[int, Training]]


@dataclass(frozen=True)
class Welch:
    """A difference between the means of two systems, over trainings; None for what too few trainings cannot give."""

    difference: float
    error: float | None = None
    freedom: float | None = None
    p: float | None = None

    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval."""
        if self.error is None or self.freedom is None:
            return None
        margin = t_quantile(1 - LEVEL / 2, self.freedom) * self.error
        return self.difference - margin, self.difference + margin


def read(paths: Iterable[Path], metric: str) -> tuple[Scores, Trainings]:
    """Return the scores and trainings of all files; the same training may stand in one of them only."""
    scores: Scores = {}
    trainings: Trainings = {}
    for path in paths:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            rows = [
                (row["test_set"], row["system"], row["scores"].get(metric, {}).get("by_seed", {}))
                for row in content["rows"]
            ]
            improving = {warning["about"] for warning in content["warnings"] if warning["kind"] == NOT_CONVERGED}
            for of in content["trainings"]:
                system, seed, (entries, *_) = of["system"], of["seed"], of["dictionary"]["entries"]
                ended = Training(
                    of["epochs"], of["updates"], of["subwords"], entries, f"{system}, seed {seed}" in improving
                )
                trainings.setdefault(system, {})[seed] = ended
        except OSError as error:
            raise MTScaffoldError(f"{path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MTScaffoldError(f"{path}: not a comparison.json of mt-scaffold compare ({error!r})") from error
        for test, system, by_seed in rows:
            seeds = scores.setdefault(test, {}).setdefault(system, {})
            for seed, score in by_seed.items():
                if int(seed) in seeds:
                    raise MTScaffoldError(
                        f"{path}: {system}, seed {seed}, is in another file as well; name one of them"
                    )
                seeds[int(seed)] = score
    return scores, trainings


def averaged(scores: Scores, tests: Sequence[str]) -> dict[str, dict[int, float]]:
    """Return the mean over the test sets of each training that has a score on all of them."""
    missing = [test for test in tests if test not in scores]
    if missing:
        raise MTScaffoldError(f"no file has the test set {missing[0]}, but {', '.join(scores)}")
    systems = dict.fromkeys(system for test in tests for system in scores[test])
    return {
        system: {
            seed: fmean(scores[test][system][seed] for test in tests)
            for seed in scores[tests[0]].get(system, {})
            if all(seed in scores[test].get(system, {}) for test in tests)
        }
        for system in systems
    }


def welch(system: Sequence[float], baseline: Sequence[float]) -> Welch:
    """Test one difference: an interval takes two trainings of each system, p takes three."""
    difference, sides = fmean(system) - fmean(baseline), (system, baseline)
    if min(map(len, sides)) < 2:
        return Welch(difference)
    error, freedom = map(float, satterthwaite((variance(side) / len(side), len(side) - 1.0) for side in sides))
    enough = min(map(len, sides)) >= TRAININGS_FOR_P and error > 0
    return Welch(difference, error, freedom, t_test_p(difference / error, freedom) if enough else None)


def people_agree(difference: float) -> float:
    """Return in how many % of pairs of systems people prefer the one whose BLEU is higher by ``difference``.

    50 is chance; below it, where the fit does not hold any more, 50 is returned.

    Source: Kocmi et al. 2024, "Navigating the Metrics Maze: Reconciling Score Magnitudes and Accuracies", a curve that
    was fitted to pairs of systems, mostly of one company, that people had assessed; its two constants are those of
    mt-thresholds 1.0.4.
    """
    return max(50.0, 88.33333333333225 / (1 + math.exp(-0.9663926931178954 * abs(difference))))


def systems_table(scores: Scores, trainings: Trainings, tests: Sequence[str], digits: int) -> str:
    """Return a line for each system of the comparisons that was trained: how, and its scores."""
    means = averaged(scores, tests)
    lines = [["system", "trainings", "epochs", "updates", "subwords", "rows", "still improving", *tests, "mean"]]
    for system in dict.fromkeys(each for named in NAMED for each in (named.baseline, named.system)):
        if not (seeds := means.get(system)):
            continue
        each = [trainings[system][seed] for seed in seeds]
        counts = [_range({getattr(one, name) for one in each}) for name in ("epochs", "updates", "subwords", "rows")]
        improving = f"{sum(one.improving for one in each)} of {len(each)}"
        own = [[scores[test][system][seed] for seed in seeds] for test in tests]
        shown = [_mean_and_sd(values, digits) for values in (*own, list(seeds.values()))]
        lines.append([system, str(len(each)), *counts, improving, *shown])
    return format_table(lines, markdown=True).rstrip()


def _range(values: Iterable[int]) -> str:
    """Return the least and the largest of some numbers, or the one that all are."""
    ordered = sorted(values)
    return " to ".join(f"{value:,}" for value in dict.fromkeys((ordered[0], ordered[-1])))


def _mean_and_sd(values: Sequence[float], digits: int) -> str:
    spread = f" ± {decimal(variance(values) ** 0.5, digits)}" if len(values) > 1 else ""
    return f"{decimal(fmean(values), digits)}{spread}"


def rows_of(
    measures: Mapping[str, Mapping[str, Mapping[int, float]]], digits: int, metric: str, *, primary: bool
) -> Iterator[list[str]]:
    """Yield a row for each comparison and measure, the first of which is the primary one if there is one."""
    tests = {
        (name, named): welch(list(systems[named.system].values()), list(systems[named.baseline].values()))
        for name, systems in measures.items()
        for named in NAMED
        if systems.get(named.system) and systems.get(named.baseline)
    }
    first = next(iter(measures)) if primary else ""
    # What is not trained yet counts as well, so that no p falls when it is.
    holm = correct(
        {named: 1.0 if (test := tests.get((first, named))) is None or test.p is None else test.p for named in NAMED}
    )
    for (name, named), test in tests.items():
        systems, ends, gains = measures[name], test.interval(), ""
        if metric == "bleu" and name == first and ends is not None and test.error is not None:
            gains = "; ".join(
                f"+{gain} {'inside' if ends[0] <= gain <= ends[1] else 'outside'}, "
                f"found with {decimal(100 * power(test.error, test.freedom or 1.0, gain, len(NAMED)), 0)} %, "
                f"people agree in {decimal(people_agree(gain), 0)} %"
                for gain in named.gains
            )
        yield [
            *(name, f"{named.system} − {named.baseline}"),
            " and ".join(str(len(systems[each])) for each in (named.system, named.baseline)),
            " and ".join(decimal(fmean(systems[each].values()), digits) for each in (named.system, named.baseline)),
            decimal(test.difference, digits, signed=True),
            "" if ends is None else " to ".join(decimal(end, digits, signed=True) for end in ends),
            shown_p(holm[named] if name == first and test.p is not None else test.p),
            gains,
        ]


def missing_trainings(systems: Mapping[str, Mapping[int, float]], seeds: Sequence[int]) -> list[str]:
    """Return the trainings of the named systems that there are no scores of."""
    lines = []
    for system in dict.fromkeys(each for named in NAMED for each in (named.system, named.baseline)):
        lacking = [str(seed) for seed in seeds if seed not in systems.get(system, {})]
        if lacking:
            lines.append(f"{system}, seed{'s' * (len(lacking) > 1)} {', '.join(lacking)}")
    return lines


HEADING = ["measure", "comparison", "trainings", "means", "difference", "95 % interval", "p", "the paper's gains"]


def report(paths: Sequence[Path], tests: Sequence[str], seeds: Sequence[int]) -> str:
    """Return the tables of both metrics, and what is missing."""
    parts = []
    for metric, (name, digits) in METRICS.items():
        scores, trainings = read(paths, metric)
        systems = averaged(scores, tests)
        parts += [f"{name}, mean ± standard deviation:", systems_table(scores, trainings, tests, digits)]
        measures = {f"mean of {len(tests)} (primary)": systems}
        measures |= {test: scores[test] for test in tests}
        others = {test: systems for test, systems in scores.items() if test not in tests}
        for title, table in ((name, measures), (f"{name}, other test sets", others)):
            if table:
                rows = [HEADING, *rows_of(table, digits, metric, primary=table is measures)]
                parts += [f"{title}, differences:", format_table(rows, markdown=True).rstrip()]
    missing = missing_trainings(averaged(read(paths, next(iter(METRICS)))[0], tests), seeds)
    parts.append(
        "Primary: the mean over " + ", ".join(tests) + "; p corrected by Holm. Others are secondary; p as it is.\n"
        "Welch's test over trainings: nothing is said about other sentences.\n"
        "Still improving: the last validation was the best. With dropout, trainings have other numbers of epochs.\n"
        "People agree (Kocmi et al. 2024): how often they prefer, of two systems, the one whose BLEU is higher by so "
        "much; other systems, other texts; 50 % is chance."
    )
    parts.append("Missing: " + ("; ".join(missing) or "none") + ".")
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.named_comparisons",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("comparisons", nargs="+", type=Path, metavar="FOLDER/comparison.json")
    parser.add_argument("--average", nargs="+", default=UNTOUCHED, metavar="TEST", help="default: the untouched three")
    parser.add_argument(
        "--seeds", nargs="+", type=int, default=range(1, 6), metavar="N", help="planned (default: 1 to 5)"
    )
    options = parser.parse_args(arguments)
    try:
        print(report(options.comparisons, options.average, options.seeds), end="")
    except MTScaffoldError as error:
        print(f"studies.named_comparisons: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
