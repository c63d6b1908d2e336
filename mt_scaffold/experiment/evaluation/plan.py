"""The trainings at hand → the numbers of trainings and segments that would find a difference of a given size.

The variances that the test over trainings and segments (``significance``) estimates are assumed to hold for other
designs: any number of trainings, the same for each system, on any number of segments of the same kind.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.evaluation.compare import baselines_of, by_row
from mt_scaffold.experiment.evaluation.measures import Labelled, Measure, measure_of
from mt_scaffold.experiment.evaluation.metrics import KINDS
from mt_scaffold.experiment.evaluation.significance import (
    LEVEL,
    SEGMENTS_FOR_P,
    TRAININGS_FOR_P,
    Design,
    planned_detectable,
    planned_power,
    spread_interval,
)
from mt_scaffold.tables import format_table

_SEEDS, _TIMES = (3, 5, 10, 20, 50), (1, 2, 5, 10)
# The limits of a search: trainings of each system, and multiples of the segments at hand.
_MOST_SEEDS, _MOST_TIMES = 1000, 1000
_SEARCHED = range(TRAININGS_FOR_P, _MOST_SEEDS + 1)


@dataclass(frozen=True)
class Planned:
    """The differences that a comparison of two systems on one test set would find.

    metric: its name. seeds: trainings of each at hand, the fewer of the two. segments: at hand. comparisons: that the
    test is corrected for. difference: to be found with probability 80 %. power: the probability with which
    ``with_seeds`` trainings on the segments at hand would find it. detectable: design → the smallest true difference
    that it would find. by_seeds: the fewest trainings of each system that would find ``difference`` on the segments at
    hand. by_segments: the fewest segments, in steps of 5 %, on which ``with_seeds`` trainings would find it. Both are
    None if no number up to 1,000 seeds, or 1,000 times the segments, does.
    """

    group: str
    test_set: str
    system: str
    baseline: str
    metric: str
    seeds: int
    segments: int
    units: str
    comparisons: int
    difference: float
    power: float
    detectable: dict[Design, float]
    by_seeds: Design | None
    with_seeds: int
    by_segments: Design | None


def plan(
    scores: Sequence[Labelled],
    baseline: str,
    difference: float,
    metric: str | None = None,
    *,
    samples: int = 1000,
    baselines: Mapping[str, str] = {},
    measure: Measure | None = None,
) -> list[Planned]:
    """Return the designs that find a true difference in a metric, for each system with its baseline and each test set.

    scores, baseline, baselines, samples, measure: as for ``compare``. metric: default: the first that is tested and
    that all scores have.

    Raises UsageError for a difference that is not positive, for a metric that is missing from scores or not tested, or
    if a system has a single training, which does not show how far trainings differ; MTScaffoldError for a test set of
    too few segments.
    """
    if not difference > 0:
        raise UsageError(f"plan: --difference {difference:g}: must be more than 0")
    measure = measure or measure_of(scores)
    several, _ = measure.read(scores)
    measure.signatures(several)
    runs = by_row(several)
    common = set[str].intersection(*(set(scored.values) for trained in runs.values() for scored in trained.values()))
    tested = [
        name
        for name in measure.metrics.in_order(common)
        if all(measure.has_statistics(name, trained) for trained in runs.values())
    ]
    if not tested:
        raise UsageError("plan: the scores have no tested metric in common; score again with the same --metrics")
    name = metric or tested[0]
    if name not in tested:
        raise UsageError(f"plan: --metric {name}: not tested in these scores; choose one of {', '.join(tested)}")
    against = baselines_of([(key.group, key.system) for key in runs], baseline, baselines)
    cells = dict.fromkeys((key.group, key.test_set) for key in runs)
    there = {cell: {key.system: runs[key] for key in runs if (key.group, key.test_set) == cell} for cell in cells}
    pairs = [
        (cell, system, other)
        for cell, systems in there.items()
        for system in against
        if system in systems and (other := against[system]) in systems and other is not None
    ]
    if not pairs:
        raise UsageError("plan: there is no system to compare with the baseline; give the scores of two systems")
    pairs = [each for each in pairs if measure.is_tested(name, *(there[each[0]][system] for system in each[1:]))]
    if not pairs:
        raise UsageError(f"plan: no difference in {name} can be tested here (mt-scaffold compare says why)")
    found = []
    for cell, systems in there.items():
        measure.check_alike([scored for trained in systems.values() for scored in trained.values()])
        for system, trained in systems.items():
            if len(trained) < 2:
                raise UsageError(
                    f"plan: {system} has one training on {cell[1]}, which does not show how far trainings differ; "
                    f"train with two seeds or more ({TRAININGS_FOR_P} are better)"
                )
        segments = measure.segments(next(iter(next(iter(systems.values())).values())), name)
        if segments < SEGMENTS_FOR_P:
            raise MTScaffoldError(
                f"plan: {cell[1]} has {segments} {measure.units}, and a test takes {SEGMENTS_FOR_P}; use a longer one"
            )
        resampled = measure.resample(name, systems, samples)
        for place, system, other in pairs:
            if place != cell:
                continue
            sides = (resampled[system], resampled[other])
            seeds = min(map(len, sides))
            with_seeds = max(TRAININGS_FOR_P, seeds)
            least = functools.partial(planned_detectable, *sides, comparisons=len(pairs))
            designs = [Design(each, times * segments) for each in sorted({*_SEEDS, with_seeds}) for times in _TIMES]
            found.append(
                Planned(
                    *cell,
                    system,
                    other,
                    name,
                    seeds,
                    segments,
                    measure.units,
                    len(pairs),
                    difference,
                    planned_power(*sides, Design(with_seeds, segments), difference, len(pairs)),
                    {each: least(each) for each in designs},
                    _first(difference, least, [Design(each, segments) for each in _SEARCHED]),
                    with_seeds,
                    _first(difference, least, [Design(with_seeds, each) for each in _growing(segments)]),
                )
            )
    return found


def _first(difference: float, least: Callable[[Design], float], designs: Iterable[Design]) -> Design | None:
    return next((design for design in designs if least(design) <= difference), None)


def _growing(segments: int) -> Iterator[int]:
    """Yield numbers of segments from two, each 5 % above the last."""
    number = 2
    while number <= _MOST_TIMES * segments:
        yield number
        number = max(number + 1, number * 21 // 20)


def _percent(share: float) -> str:
    """Return a probability as text; it is an estimate, and never certain.

    >>> _percent(0.8), _percent(0.9999), _percent(1.0)
    ('80 %', 'over 99 %', 'over 99 %')
    """
    return "over 99 %" if share > 0.99 else f"{share * 100:.0f} %"


def as_text(plans: Sequence[Planned]) -> str:
    """Return plans as text: for each, a table of seeds by segments, and the designs that find the difference."""
    blocks = []
    for each in plans:
        kind = KINDS[each.metric]
        place = ": ".join(filter(None, (each.group, each.test_set)))
        blocks.append(
            f"{place}: {each.system} against {each.baseline}, {kind.label}; at hand: {each.seeds} seeds, "
            f"{each.segments:,} {each.units}"
        )
        columns = list(dict.fromkeys(design.segments for design in each.detectable))
        rows = [["seeds", *(f"{number:,} {each.units}" for number in columns)]]
        for seeds in dict.fromkeys(design.trainings for design in each.detectable):
            values = [each.detectable[Design(seeds, number)] for number in columns]
            rows.append([str(seeds), *(f"{value:.{kind.digits}f}" for value in values)])
        blocks.append(format_table(rows).rstrip("\n"))
        enough = f"{each.by_seeds.trainings} seeds" if each.by_seeds else f"more than {_MOST_SEEDS:,} seeds"
        if each.by_segments is None:
            more = f"no number of {each.units} up to {_MOST_TIMES * each.segments:,} would"
        else:
            more = f"about {each.by_segments.segments:,} {each.units}"
        blocks.append(
            f"To find a true difference of {each.difference:g}: {enough} of each system on {each.segments:,} "
            f"{each.units}; with {each.with_seeds} seeds, {more}.\n"
            f"{each.with_seeds} seeds on {each.segments:,} {each.units} would find it with probability "
            f"{_percent(each.power)}."
        )
    fewest = min(each.seeds for each in plans)
    low, high = spread_interval(2 * (fewest - 1))
    corrected = f", corrected for {plans[0].comparisons} comparisons" if plans[0].comparisons > 1 else ""
    blocks.append(
        f"In the table: the smallest true difference that is found with probability 80 % (two-sided, level "
        f"{LEVEL * 100:.0f} %{corrected}).\n"
        f"The variances are estimates: with {fewest} seeds of two systems that vary alike, "
        f"the true standard deviation between trainings is {low:.2g} to {high:.2g} times the one found (95 %)."
    )
    return "\n\n".join(blocks) + "\n"
