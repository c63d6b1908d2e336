"""Print the comparisons of Multi30k that a configuration names, from stored comparisons.

python -m studies.named_comparisons FOLDER/comparison.json ... [--config NAME] [--average TEST ...] [--seeds N ...]
python -m studies.named_comparisons FOLDER/comparison.json ... --pool

The primary measure is the mean over the test sets that --average names, in each of three metrics; each single test set
is secondary. If one file compares both systems, the test is that of mt-scaffold compare, over trainings and sentences:
what sentences contribute to the variance is its squared standard error less Welch's, and that of a mean over k test
sets, which share no sentences, is their sum divided by k squared. Otherwise it is Welch's (1947) over trainings alone,
which says nothing about other sentences. p of the primary measure is corrected by Holm over the comparisons that the
configuration names, separately in each metric. Intervals and p need three trainings of each system. Next to each
interval are the gains that the paper reports in BLEU on WMT'14; the probability that this test finds a true difference
of that size, at the step of Holm's correction that follows its rejections, with its 95 % interval, since the spread of
the trainings is an estimate; and how often people prefer the system with the higher BLEU if two differ by as much. The
first table shows the systems, with the number of trainings that ended while still improving. Missing trainings are
listed.

--pool prints the primary measure of Scaffold-BPE against BPE, with or without dropout, of each file by itself, and
their mean weighted by squared standard errors, with Satterthwaite's degrees of freedom and Cochran's Q. It assumes one
true difference, and estimates that share nothing.
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
    Difference,
    correct,
    joint_test,
    power,
    satterthwaite,
    shown_p,
    spread_interval,
    t_quantile,
)
from mt_scaffold.experiment.runtime.result_warnings import NOT_CONVERGED
from mt_scaffold.tables import decimal, format_table

METRICS = {"bleu": ("BLEU", 2), "chrf": ("chrF", 2), "reference_bits_per_byte": ("bits per byte of the reference", 4)}
UNTOUCHED = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")


class Named(NamedTuple):
    """A system, its baseline, and the paper's gains in BLEU on En-De and En-Fr, if it has this comparison.

    exploratory: whether it was named after its trainings had been scored.
    """

    system: str
    baseline: str
    gains: tuple[float, ...] = ()
    exploratory: bool = False

    @property
    def name(self) -> str:
        """The name of the comparison in tables."""
        return f"{self.system} − {self.baseline}"


WITHOUT_DROPOUT = Named("scaffold", "bpe", (0.45, 0.61))
WITH_DROPOUT = Named("scaffold+dropout", "bpe+dropout", (0.28, 0.39))
# Those that configs/NAME.yaml names.
NAMED = {
    "multi30k_en_de": (
        WITHOUT_DROPOUT._replace(exploratory=True),
        WITH_DROPOUT,
        Named("control", "bpe"),
        Named("scaffold", "control"),
    ),
    "multi30k_confirmatory": (WITHOUT_DROPOUT,),
    "study_multi30k_en_de": (WITHOUT_DROPOUT, WITH_DROPOUT),
}

# Test set → system → seed → score.
Scores = dict[str, dict[str, dict[int, float]]]
# Test set → system and baseline → what sentences contribute to the variance of the difference of all their trainings.
OfSentences = dict[str, dict[tuple[str, str], float]]


@dataclass(frozen=True)
class Training:
    """One training in a comparison. rows: of its embeddings, without fairseq's own symbols and padding.

    improving: whether its last validation was the best.
    """

    epochs: int
    updates: int
    subwords: int
    rows: int
    improving: bool


# System → seed → training.
Trainings = dict[str, dict[int, Training]]


def read(paths: Iterable[Path], metric: str) -> tuple[Scores, OfSentences, Trainings]:
    """Return the scores of all files, the contributions of sentences, and the trainings.

    Contributions are those of pairs of systems all of whose trainings are in one file.

    Raises MTScaffoldError if a file is missing or malformed, or a training is in two of them.
    """
    scores: Scores = {}
    of_sentences: OfSentences = {}
    trainings: Trainings = {}
    for path in paths:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            rows = [
                (row["test_set"], row["system"], row["scores"].get(metric, {}).get("by_seed", {}))
                for row in content["rows"]
            ]
            own = {(test, system): by_seed for test, system, by_seed in rows}
            for row in content["rows"]:
                test, pair = row["test_set"], (row["system"], row.get("baseline", ""))
                sides = [list(own.get((test, system), {}).values()) for system in pair]
                if (found := row["tests"].get(metric)) is not None and min(map(len, sides)) >= TRAININGS_FOR_P:
                    beyond = found["standard_error"] ** 2 - sum(variance(side) / len(side) for side in sides)
                    of_sentences.setdefault(test, {})[pair] = max(0.0, beyond)
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
            # The contribution is that of the trainings of one file.
            if by_seed and len(seeds) > len(by_seed):
                pairs = of_sentences.get(test, {})
                of_sentences[test] = {pair: value for pair, value in pairs.items() if system not in pair}
    return scores, of_sentences, trainings


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


def compare(
    system: Mapping[int, float], baseline: Mapping[int, float], of_sentences: float | None = None
) -> Difference | None:
    """Test one difference; None for fewer than three trainings of either system, or if none of them differ.

    system, baseline: seed → score. of_sentences: what sentences contribute to the variance (default: unknown). Its
    degrees of freedom, about as many as there are sentences, count as infinite.
    """
    own, other = (list(side.values()) for side in (system, baseline))
    if min(len(own), len(other)) < TRAININGS_FOR_P or not (variance(own) or variance(other)):
        return None
    return joint_test(own, other, [] if of_sentences is None else [(of_sentences, math.inf)])


def variance_of_sentences(named: Named, of_sentences: OfSentences, tests: Sequence[str]) -> float | None:
    """Return what sentences contribute to the variance of a difference, on the mean of some test sets, if known."""
    parts = [of_sentences.get(test, {}).get((named.system, named.baseline)) for test in tests]
    known = [part for part in parts if part is not None]
    return None if len(known) < len(parts) else sum(known) / len(tests) ** 2


def people_agree(difference: float) -> float:
    """Return the percentage of pairs of systems in which people prefer the one whose BLEU is higher by ``difference``.

    50 is chance, and the least that is returned: below it, the fit no longer holds.

    Source: Kocmi et al. 2024, "Navigating the Metrics Maze: Reconciling Score Magnitudes and Accuracies": a curve
    fitted to pairs of systems, mostly of one company, that people had assessed. Its constants are those of
    mt-thresholds 1.0.4.
    """
    return max(50.0, 88.33333333333225 / (1 + math.exp(-0.9663926931178954 * abs(difference))))


def systems_table(
    named: Sequence[Named], scores: Scores, trainings: Trainings, tests: Sequence[str], digits: int
) -> str:
    """Return a table of the trained systems of the comparisons: trainings and scores."""
    means = averaged(scores, tests)
    lines = [["system", "trainings", "epochs", "updates", "subwords", "rows", "still improving", *tests, "mean"]]
    for system in dict.fromkeys(system for each in named for system in (each.baseline, each.system)):
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
    """Return the smallest and the largest of some numbers, or their common value."""
    ordered = sorted(values)
    return " to ".join(f"{value:,}" for value in dict.fromkeys((ordered[0], ordered[-1])))


def _mean_and_sd(values: Sequence[float], digits: int) -> str:
    spread = f" ± {decimal(variance(values) ** 0.5, digits)}" if len(values) > 1 else ""
    return f"{decimal(fmean(values), digits)}{spread}"


def rows_of(
    named: Sequence[Named],
    scores: Scores,
    of_sentences: OfSentences,
    measures: Mapping[str, Sequence[str]],
    digits: int,
    metric: str,
    *,
    primary: bool,
) -> Iterator[list[str]]:
    """Yield a row for each comparison and measure, the first of which is the primary one if there is one.

    measures: the test sets whose mean each of them is.
    """
    means = {name: averaged(scores, tests) for name, tests in measures.items()}
    tests = {
        (name, each): compare(
            systems[each.system],
            systems[each.baseline],
            variance_of_sentences(each, of_sentences, measures[name]),
        )
        for name, systems in means.items()
        for each in named
        if systems.get(each.system) and systems.get(each.baseline)
    }
    first = next(iter(measures)) if primary else ""
    # A missing one counts with the largest p, so that no corrected p rises when it is added.
    found = {each: tests.get((first, each)) for each in named}
    holm = correct({each: 1.0 if test is None or test.p is None else test.p for each, test in found.items()})
    remaining = max(1, sum(p >= LEVEL for p in holm.values()))
    for (name, compared), test in tests.items():
        sides = [means[name][system].values() for system in (compared.system, compared.baseline)]
        values = [fmean(side) for side in sides]
        row = [
            name,
            compared.name,
            *(
                " and ".join(each)
                for each in ((str(len(side)) for side in sides), (decimal(value, digits) for value in values))
            ),
            decimal(values[0] - values[1], digits, signed=True),
        ]
        if test is not None:
            row.append(" to ".join(decimal(end, digits, signed=True) for end in (test.low, test.high)))
            known = variance_of_sentences(compared, of_sentences, measures[name]) is not None
            row += ["trainings, sentences" if known else "trainings"]
            row += [_p(test.p), _p(holm[compared]) if name == first else ""]
        if test is not None and metric == "bleu" and name == first:
            row.append("; ".join(_gain_and_interval(test, gain, remaining) for gain in compared.gains))
        yield row + [""] * (len(HEADING) - len(row))


def _p(value: float | None) -> str:
    """Return a p without the sign that Markdown would escape."""
    return shown_p(value).replace("< ", "under ")


def _gain_and_interval(test: Difference, gain: float, comparisons: int) -> str:
    """Return whether a gain of the paper is in the interval, its power, and how often people agree with it."""
    assert test.freedom is not None
    low, high = spread_interval(test.freedom)
    powers = (power(test.standard_error * times, test.freedom, gain, comparisons) for times in (1, high, low))
    found, *ends = (decimal(100 * each, 0) for each in powers)
    place = "inside" if test.low <= gain <= test.high else "outside"
    agree = decimal(people_agree(gain), 0)
    return f"+{gain} {place}, found with {found} % ({' to '.join(ends)}), people agree in {agree} %"


def missing_trainings(
    named: Sequence[Named], systems: Mapping[str, Mapping[int, float]], seeds: Sequence[int]
) -> list[str]:
    """Return the trainings of the named systems without scores."""
    lines = []
    for system in dict.fromkeys(system for each in named for system in (each.system, each.baseline)):
        lacking = [str(seed) for seed in seeds if seed not in systems.get(system, {})]
        if lacking:
            lines.append(f"{system}, seed{'s' * (len(lacking) > 1)} {', '.join(lacking)}")
    return lines


def pooled(paths: Sequence[Path], tests: Sequence[str]) -> str:
    """Return a table of Scaffold-BPE's differences in the files, and of their mean weighted by squared errors."""
    rows = [["file", "difference", "95 % interval"]]
    found: list[Difference] = []
    for path in paths:
        scores, of_sentences, _ = read([path], "bleu")
        means = averaged(scores, tests)
        for each in (WITHOUT_DROPOUT, WITH_DROPOUT):
            own, other = means.get(each.system, {}), means.get(each.baseline, {})
            test = compare(own, other, variance_of_sentences(each, of_sentences, tests))
            if test is not None:
                found.append(test)
                rows.append([f"{path}: {each.name}", *_effect(test.difference, test.low, test.high)])
    if not found:
        raise MTScaffoldError("no file has three trainings of Scaffold-BPE and of BPE")
    weights = [test.standard_error**-2 for test in found]
    mean = sum(weight * test.difference for weight, test in zip(weights, found, strict=True)) / sum(weights)
    shares = [(weight / sum(weights) ** 2, test.freedom) for weight, test in zip(weights, found, strict=True)]
    error, freedom = map(float, satterthwaite([(share, of) for share, of in shares if of is not None]))
    margin = t_quantile(1 - LEVEL / 2, freedom) * error
    q = sum(weight * (test.difference - mean) ** 2 for weight, test in zip(weights, found, strict=True))
    rows.append(["pooled", *_effect(mean, mean - margin, mean + margin)])
    table = format_table(rows, markdown=True)
    return f"{table}\nCochran's Q: {decimal(q, 1)} with {len(found) - 1} degrees of freedom.\n"


def _effect(difference: float, low: float, high: float) -> tuple[str, str]:
    low_to_high = " to ".join(decimal(end, 2, signed=True) for end in (low, high))
    return decimal(difference, 2, signed=True), low_to_high


HEADING = ["measure", "comparison", "trainings", "means", "difference", "95 % interval", "over", "p", "p, Holm"]
HEADING += ["the paper's gains"]


def report(named: Sequence[Named], paths: Sequence[Path], tests: Sequence[str], seeds: Sequence[int]) -> str:
    """Return the tables of each metric, and the missing trainings."""
    parts = []
    for metric, (name, digits) in METRICS.items():
        scores, of_sentences, trainings = read(paths, metric)
        parts += [f"{name}, mean ± standard deviation:", systems_table(named, scores, trainings, tests, digits)]
        measures = {f"mean of {len(tests)} (primary)": tests} | {test: [test] for test in tests}
        others = {test: [test] for test in scores if test not in tests}
        for title, table in ((name, measures), (f"{name}, other test sets", others)):
            if table:
                rows = rows_of(named, scores, of_sentences, table, digits, metric, primary=table is measures)
                parts += [f"{title}, differences:", format_table([HEADING, *rows], markdown=True).rstrip()]
    missing = missing_trainings(named, averaged(read(paths, next(iter(METRICS)))[0], tests), seeds)
    known = "; ".join(each.name for each in named if each.exploratory) or "none"
    parts.append(
        "Primary: the mean over " + ", ".join(tests) + "; others are secondary.\n"
        f"Exploratory, because named after its trainings were scored: {known}.\n"
        "Over: what other trainings and sentences could change, by the test of mt-scaffold compare; or other trainings "
        "only, by Welch's. Intervals are not corrected. p, Holm: corrected for the "
        f"{len(named)} named comparisons, whether they are trained or not, in each metric by itself.\n"
        "Found with: the probability of finding a true difference of that size, at the level that Holm's correction "
        "leaves after its rejections, and its 95 % interval.\n"
        "People agree (Kocmi et al. 2024): how often they prefer, of two systems, the one whose BLEU is higher by so "
        "much; other systems, other texts; 50 % is chance.\n"
        "Still improving: the last validation was the best. With dropout, single epochs scatter, so that a smaller "
        "number does not mean that they had stopped: see the curves."
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
    parser.add_argument(
        "--config", choices=NAMED, default="multi30k_en_de", help="whose comparisons (default: %(default)s)"
    )
    parser.add_argument("--average", nargs="+", default=UNTOUCHED, metavar="TEST", help="default: the untouched three")
    parser.add_argument(
        "--seeds", nargs="+", type=int, default=range(1, 6), metavar="N", help="planned (default: 1 to 5)"
    )
    parser.add_argument("--pool", action="store_true", help="pool the files' differences of Scaffold-BPE from BPE")
    options = parser.parse_args(arguments)
    try:
        if options.pool:
            print(pooled(options.comparisons, options.average), end="")
            return 0
        print(report(NAMED[options.config], options.comparisons, options.average, options.seeds), end="")
    except MTScaffoldError as error:
        print(f"studies.named_comparisons: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
