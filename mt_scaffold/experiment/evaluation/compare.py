"""Scores of several systems → one table: mean and spread over the seeds, and a test against each one's baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from mt_scaffold.corpus.files import PathLike, refuse_overwriting
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.data_folder import DictionaryUse
from mt_scaffold.experiment.binarise.pairs_as_ids import DESCRIPTION
from mt_scaffold.experiment.configuration import Primary, Published
from mt_scaffold.experiment.data.record import DataRecord
from mt_scaffold.experiment.evaluation.comparison import (
    Comparison,
    FarRow,
    PublishedBeside,
    Row,
    ScoreInterval,
    Spread,
    Training,
)
from mt_scaffold.experiment.evaluation.comparison_files import comparison_files, write_comparison
from mt_scaffold.experiment.evaluation.measures import (
    Labelled,
    Measure,
    Runs,
    Scored,
    keys_of,
    measure_of,
    resampled_alike,
)
from mt_scaffold.experiment.evaluation.metrics import REFERENCE_BITS
from mt_scaffold.experiment.evaluation.significance import (
    RANDOM_SEED,
    ROUGH_BELOW,
    SEGMENTS_FOR_P,
    TRAININGS_FOR_P,
    Difference,
    Resampled,
    bootstrap_interval,
    compare_means,
    compare_trainings,
    corrected,
    mean_interval,
)
from mt_scaffold.experiment.runtime.provenance import versions
from mt_scaffold.experiment.runtime.result_warnings import (
    FEW_SEEDS,
    FEW_SEGMENTS,
    UNEQUAL_RESAMPLING,
    UNEQUAL_ROWS,
    ResultWarning,
    read_warnings,
)
from mt_scaffold.experiment.runtime.results import read_result
from mt_scaffold.experiment.training.train import TrainingRecord
from mt_scaffold.options import refuse_text
from mt_scaffold.tables import decimal

# The largest ratio of two numbers of embedding rows that counts as equal.
_EQUAL_ROWS = 1.01


class RowKey(NamedTuple):
    """The key of a row of the table."""

    group: str
    test_set: str
    system: str


def compare(
    scores: Sequence[PathLike | Labelled],
    baseline: str,
    output: PathLike | None = None,
    samples: int = 1000,
    title: str = "",
    published: Sequence[Published] = (),
    *,
    baselines: Mapping[str, str] = {},
    usual: Mapping[str, str] = {},
    trainings: Sequence[Labelled] = (),
    dictionaries: Mapping[str, DictionaryUse | None] = {},
    measure: Measure | None = None,
    reports: Sequence[PathLike] = (),
    allow_equal: bool = False,
    primary: Primary | None = None,
) -> Comparison:
    """Compare each system in the files that ``score``, ``evaluate`` or ``run_harness`` wrote with its baseline.

    That is ``baselines[system]``, or else ``usual[system]``, or else ``baseline``; ``usual`` may name systems without
    scores. A system has the name in its file, unless the file is ``Labelled``. Files labelled with a group are compared
    within it only: language models after equal tokens and after equal text are two groups, each with its baseline.
    ``measure``: how systems are compared; default: inferred from the files.

    For each group, test set and system: mean and standard deviation (of the sample, n - 1) of each score over the
    seeds, and, for each metric that is tested, the difference from the baseline's mean with its 95 % interval, its
    p-value and the one corrected for all comparisons of the table in that metric (``significance``), from ``samples``
    resamples.

    ``published``: scores from elsewhere, shown next to ours with the difference and marked as theirs. ``trainings``:
    training.json files, labelled with their systems, for a second table; ``dictionaries``: by system, for the same.

    The warnings in scores, trainings and ``reports`` (files of other steps, or the data folders of test sets) are shown
    below the first table, with those about fewer than three seeds and unequal rows of embeddings. If ``reports``
    includes the data report, test sets are also scored without the sentences that are nearly in the training text.

    ``primary``: the primary measure; its p are corrected for their own number alone.

    ``allow_equal``: whether two systems or seeds may have equal outputs on a test set.

    With ``output`` the comparison is written to ``output.txt``, ``.md``, ``.tex``, ``.json`` and ``.csv``. Raises
    MTScaffoldError if score files are malformed or outdated, or not of the same references or documents; UsageError if
    two are for the same run or of equal outputs, or a baseline has no scores.
    """
    refuse_text(reports=reports)
    refuse_text(scores=scores)
    if samples < 2:
        raise UsageError(f"compare: the number of bootstrap samples must be 2 or more, not {samples}")
    if not scores:
        raise UsageError("compare: give at least one file of scores")
    labelled = [each if isinstance(each, Labelled) else Labelled("", None, each) for each in scores]
    if output is not None:
        refuse_overwriting(comparison_files(output), [*(each.path for each in (*labelled, *trainings)), *reports])
    measure = measure or measure_of(labelled)
    several, left_out = measure.read(labelled)
    runs = by_row(several)
    against = baselines_of([(key.group, key.system) for key in runs], baseline, baselines, usual)
    known = {(key.group, key.system) for key in runs}
    for each in trainings:
        if (each.group, each.system) not in known:
            raise UsageError(f"compare: no scores of the system {each.system}, whose training is given; leave it out")
    groups, test_sets, systems = list(dict.fromkeys(key.group for key in runs)), _test_sets(runs), list(against)
    order = sorted(
        runs, key=lambda key: (groups.index(key.group), test_sets.index(key.test_set), systems.index(key.system))
    )
    resampled = _resample(order, runs, against, samples, measure)
    tests = _test_each(resampled, measure)
    primary = _completed(primary or Primary(), runs, measure)
    means, tests_of_means = _means(order, runs, against, resampled, primary, measure)
    if primary.others == "untested":
        tests = {} if primary.of_mean else {name: own for name, own in tests.items() if name == primary.metric}
    of_means = {f"{name}, mean": len(own) for name, own in tests_of_means.items()}
    signatures = measure.signatures(several)
    if not allow_equal:
        _refuse_equal(several, measure)
    rows = [
        Row(
            key.group or None,
            key.test_set,
            key.system,
            against[key.system],
            list(runs[key]),
            scores=_spreads(runs[key], measure),
            tests={name: found[key] for name, found in tests.items() if key in found},
            size=measure.size(next(iter(runs[key].values()))),
            intervals=_intervals(key, runs[key], measure, resampled.drawn),
        )
        for key in order
    ]
    comparison = Comparison(
        title=title,
        synthetic=any(scored.scores.synthetic for scored in several),
        baseline=baseline,
        bootstrap_samples=samples,
        random_seed=RANDOM_SEED,
        comparisons={name: len(found) for name, found in tests.items()} | of_means,
        rows=rows,
        trainings=[
            training_of(str(each.system), each.path, each.group or None, dictionaries.get(str(each.system)))
            for each in sorted(trainings, key=lambda each: (groups.index(each.group), systems.index(str(each.system))))
        ],
        published=_beside(published, rows),
        signatures=signatures,
        not_comparable=[name for name, kind in measure.metrics.items() if not kind.comparable],
        versions=versions(),
        warnings=[
            *_few_seeds((key.system, len(trained)) for key, trained in runs.items()),
            *resampled.few,
            *unequal_rows(against, dictionaries),
            *unequal_resampling(against, several),
            *_warnings(several, trainings, reports),
            *left_out,
        ],
        far=_far(order, runs, against, near_lines(reports), samples, measure),
        primary=primary,
        means=means,
    )
    if output is not None:
        write_comparison(output, comparison)
    return comparison


def _few_seeds(trained: Iterable[tuple[str, int]]) -> list[ResultWarning]:
    """Return a warning for each system with too few trainings for p.

    trained: the system and the number of trainings of each row.
    """
    fewest: dict[str, int] = {}
    for system, seeds in trained:
        fewest[system] = min(fewest.get(system, seeds), seeds)
    few = {system: seeds for system, seeds in fewest.items() if seeds < TRAININGS_FOR_P}
    return [
        ResultWarning(FEW_SEEDS, system, f"{seeds} seed{'s' if seeds > 1 else ''}") for system, seeds in few.items()
    ]


def unequal_rows(
    against: Mapping[str, str | None], dictionaries: Mapping[str, DictionaryUse | None]
) -> list[ResultWarning]:
    """Return a warning for each system whose number of embedding rows differs from its baseline's by over 1 %."""
    warnings = []
    for system, baseline in against.items():
        sides = [dictionaries.get(name or "") for name in (system, baseline)]
        own, other = (sum(each.rows) if each is not None else 0 for each in sides)
        if own and other and max(own, other) > _EQUAL_ROWS * min(own, other):
            figure = f"{own:,} and {other:,} rows, {decimal(100 * (own / other - 1), 1, signed=True)} %"
            warnings.append(ResultWarning(UNEQUAL_ROWS, f"{system} and {baseline}", figure))
    return warnings


def unequal_resampling(against: Mapping[str, str | None], several: Iterable[Scored]) -> list[ResultWarning]:
    """Return a warning for each system with bits per byte whose target is resampled otherwise than its baseline's.

    Their differences in bits per byte are neither tested nor shown.
    """
    with_bits = {scored.system: scored for scored in several if REFERENCE_BITS in scored.values}
    return [
        ResultWarning(UNEQUAL_RESAMPLING, f"{system} and {baseline}")
        for system, baseline in against.items()
        if {system, baseline} <= with_bits.keys() and not resampled_alike(with_bits[system], with_bits[baseline or ""])
    ]


def near_lines(reports: Iterable[PathLike]) -> dict[str, list[int]]:
    """Return the numbers, from 0, of the lines of each test set that are nearly in the training text.

    reports: of any steps, among them the data report. Raises MTScaffoldError for a report that cannot be read.
    """
    found: dict[str, list[int]] = {}
    for path in map(_report_in, reports):
        if "get-data" in keys_of(path):
            overlaps = read_result(DataRecord, path).raw.test_overlap
            found |= {test: overlap.near for test, overlap in overlaps.items() if overlap.near is not None}
    return found


def _far(
    order: Sequence[RowKey],
    runs: Mapping[RowKey, Runs],
    against: Mapping[str, str | None],
    near: Mapping[str, list[int]],
    samples: int,
    measure: Measure,
) -> list[FarRow]:
    """Return the rows of test sets without the sentences that are nearly in the training text."""
    without: dict[RowKey, Runs] = {}
    for key in order:
        if not (lines := near.get(key.test_set)):
            continue
        chosen = {seed: measure.without(scored, {*lines}) for seed, scored in runs[key].items()}
        if kept := {seed: scored for seed, scored in chosen.items() if scored is not None}:
            without[key] = kept
    tests = _test_each(_resample([*without], without, against, samples, measure), measure)
    return [
        FarRow(
            key.group or None,
            key.test_set,
            key.system,
            against[key.system],
            lines=next(iter(runs[key].values())).scores.lines,
            left_out=len(near[key.test_set]),
            scores=_spreads(own, measure),
            tests={name: found[key] for name, found in tests.items() if key in found},
        )
        for key, own in without.items()
    ]


def _spreads(trained: Runs, measure: Measure) -> dict[str, Spread]:
    """Return the scores of one row, of the metrics that each of its trainings has."""
    return {
        name: Spread.of({seed: scored.values[name] for seed, scored in trained.items()})
        for name in _common(trained.values(), measure)
    }


def _intervals(
    key: RowKey, trained: Runs, measure: Measure, drawn: Mapping[str, Mapping[RowKey, list[Resampled]]]
) -> dict[str, ScoreInterval]:
    """Return the intervals of one row's scores, within the ranges of the metrics; none over two trainings.

    drawn: the resamples of each training, by metric and row.
    """
    found = {}
    if len(trained) == 1:
        found = {name: (bootstrap_interval(each[key][0]), measure.units) for name, each in drawn.items() if key in each}
    elif len(trained) >= TRAININGS_FOR_P:
        for name in _common(trained.values(), measure):
            found[name] = (mean_interval([each.values[name] for each in trained.values()]), "trainings")
    return {name: _within(name, *each, measure) for name, each in found.items()}


def _within(name: str, ends: tuple[float, float], over: str, measure: Measure) -> ScoreInterval:
    least, most = measure.metrics[name].range
    low, high = (min(max(end, least), most) for end in ends)
    return ScoreInterval(low, high, over)


def _warnings(
    several: Iterable[Scored], trainings: Iterable[Labelled], reports: Iterable[PathLike]
) -> list[ResultWarning]:
    """Return the warnings in the reports of all steps; those of a training or its scores name it."""
    found = [warning for path in reports for warning in read_warnings(_report_in(path))]
    for each in trainings:
        seed = read_result(TrainingRecord, each.path).seed
        found += read_warnings(each.path, _named(each.group, str(each.system), seed))
    for scored in several:
        found += read_warnings(scored.path, _named(scored.group, scored.system, scored.seed))
    return [*dict.fromkeys(found)]


def _named(group: str, system: str, seed: int) -> str:
    """Return the name of a training in warnings."""
    return f"{f'{group}: ' if group else ''}{system}, seed {seed}"


def _report_in(path: PathLike) -> Path:
    return Path(path) / DESCRIPTION if Path(path).is_dir() else Path(path)


def by_row(several: Iterable[Scored]) -> dict[RowKey, Runs]:
    """Return the scores of each row by seed."""
    runs: dict[RowKey, Runs] = {}
    for scored in several:
        key = RowKey(scored.group, scored.test_set, scored.system)
        other = runs.setdefault(key, {}).setdefault(scored.seed, scored)
        if other is not scored:
            what = "group, test set" if scored.group else "test set"
            raise UsageError(f"{scored.path} and {other.path} are for the same {what}, system and seed; give only one")
    return runs


def _refuse_equal(several: Iterable[Scored], measure: Measure) -> None:
    """Raise UsageError if two score files of one test set are of the same outputs, as if those were two trainings'."""
    seen: list[tuple[tuple[str, str], object, Scored]] = []
    for scored in several:
        place, outputs = (scored.group, scored.test_set), measure.outputs(scored)
        if other := next((each for where, what, each in seen if where == place and what == outputs), None):
            raise UsageError(
                f"{other.path} and {scored.path}: two trainings with equal outputs on {scored.test_set}; score each "
                "training's own, or give --allow-equal if two trainings agree"
            )
        seen.append((place, outputs, scored))


def _test_sets(runs: Iterable[RowKey]) -> list[str]:
    return list(dict.fromkeys(key.test_set for key in runs))


def baselines_of(
    runs: Sequence[tuple[str, str]], baseline: str, baselines: Mapping[str, str], usual: Mapping[str, str] = {}
) -> dict[str, str | None]:
    """Return each system's baseline (None: itself), the default baseline first, the others in the order given.

    runs: the group and the system of each. usual: as for ``compare``. Raises UsageError if a system's group has no
    scores of its baseline.
    """
    ordered = sorted(dict.fromkeys(system for _, system in runs), key=lambda system: system != baseline)
    baselines = {name: other for name, other in usual.items() if name in ordered} | dict(baselines)
    for name in (baseline, *baselines.values(), *baselines):
        if name not in ordered:
            role = "system" if name in baselines and name not in baselines.values() else "baseline"
            raise UsageError(
                f"compare: the {role} {name} is not among the systems with scores: {', '.join(ordered)}; choose one"
            )
    against = {system: baselines.get(system, baseline) for system in ordered}
    in_group = set(runs)
    for group, system in in_group:
        if (group, against[system]) not in in_group:
            raise UsageError(
                f"compare: no scores of {against[system]}, the baseline of {system}, in group {group}; add them"
            )
    return {system: None if other == system else other for system, other in against.items()}


def _common(several: Iterable[Scored], measure: Measure) -> list[str]:
    """Return the metrics that each of the score files has, in the order of the measure."""
    return measure.metrics.in_order(set[str].intersection(*(set(scored.values) for scored in several)))


class _Resamples(NamedTuple):
    """The resamples that tests and intervals need.

    drawn: by metric and row, those of each training. pairs: by metric, the rows to test, each with its baseline's.
    few: warnings about tests that rest on few segments.
    """

    drawn: dict[str, dict[RowKey, list[Resampled]]]
    pairs: dict[str, dict[RowKey, RowKey]]
    few: list[ResultWarning]


def _resample(
    order: Sequence[RowKey],
    runs: Mapping[RowKey, Runs],
    against: Mapping[str, str | None],
    samples: int,
    measure: Measure,
) -> _Resamples:
    found = _Resamples({}, {}, [])
    for group, test_set in dict.fromkeys((key.group, key.test_set) for key in order):
        there = {key.system: runs[key] for key in order if (key.group, key.test_set) == (group, test_set)}
        measure.check_alike([scored for trained in there.values() for scored in trained.values()])
        pairs = {system: other for system in there if (other := against[system]) in there and other is not None}
        common = {system: _common(each.values(), measure) for system, each in there.items()}
        for name in measure.metrics.in_order({name for names in common.values() for name in names}):
            having = {system for system, names in common.items() if name in names}
            tested = {
                system: other
                for system, other in pairs.items()
                if {system, other} <= having and measure.is_tested(name, there[system], there[other])
            }
            alone = {each for each in having if len(there[each]) == 1 and measure.has_statistics(name, there[each])}
            needed = alone.union(*tested.items())
            segments = measure.segments(next(iter(there[min(needed)].values())), name) if needed else 0
            if tested and segments < ROUGH_BELOW:
                about = f"{test_set}, {measure.metrics[name].label}"
                found.few.append(ResultWarning(FEW_SEGMENTS, about, f"{segments} {measure.units}"))
            if segments < SEGMENTS_FOR_P:
                continue
            chosen = {system: each for system, each in there.items() if system in needed}
            for system, drawn in measure.resample(name, chosen, samples).items():
                found.drawn.setdefault(name, {})[RowKey(group, test_set, system)] = drawn
            for system, other in tested.items():
                place = RowKey(group, test_set, system)
                found.pairs.setdefault(name, {})[place] = place._replace(system=other)
    return found


def _test_each(resampled: _Resamples, measure: Measure) -> dict[str, dict[RowKey, Difference]]:
    """Return the tests by metric and row, those of a metric corrected for their number."""
    found = {}
    for name in measure.metrics.in_order(resampled.pairs):
        drawn, pairs = resampled.drawn[name], resampled.pairs[name]
        tests = corrected({key: compare_trainings(drawn[key], drawn[other]) for key, other in pairs.items()})
        if measure.units != "sentences":
            # Documents and questions are not resampled by sacreBLEU's command.
            tests = {key: replace(test, sacrebleu_p=None) for key, test in tests.items()}
        found[name] = tests
    return found


def _completed(primary: Primary, runs: Mapping[RowKey, Runs], measure: Measure) -> Primary:
    """Return the primary measure with its metric; raise an error if scores lack it, or a test set of its mean."""
    common = set[str].intersection(*(set(_common(trained.values(), measure)) for trained in runs.values()))
    if not common:
        raise MTScaffoldError("compare: the score files have no metric in common; score again with the same --metrics")
    metric = primary.metric or measure.metrics.in_order(common)[0]
    # Metrics of other programs are known by their names without the prefix.
    metric = next((each for each in common if metric in (each, measure.metrics[each].label)), metric)
    if metric not in common:
        raise UsageError(f"compare: not all scores have the primary metric {metric}, but {', '.join(sorted(common))}")
    tests = _test_sets(runs)
    if lacking := [test for test in primary.over.tests_of_mean(tests) if test not in tests]:
        raise UsageError(f"compare: no scores on {lacking[0]}, a test set of the mean; there are {', '.join(tests)}")
    return replace(primary, metric=metric)


def _means(
    order: Sequence[RowKey],
    runs: Mapping[RowKey, Runs],
    against: Mapping[str, str | None],
    resampled: _Resamples,
    primary: Primary,
    measure: Measure,
) -> tuple[list[Row], dict[str, dict[RowKey, Difference]]]:
    """Return the rows of the means over test sets, and their tests if the primary measure is a mean.

    Of each system, these are the trainings with scores on all of the test sets.
    """
    over = primary.over.tests_of_mean(_test_sets(runs))
    if len(over) < 2 and not primary.of_mean:
        return [], {}
    label, whole = f"mean of {len(over)}", dict[RowKey, list[dict[int, Scored]]]()
    for key in dict.fromkeys(key._replace(test_set=label) for key in order):
        own = [runs.get(key._replace(test_set=test), {}) for test in over]
        seeds = [seed for seed in own[0] if all(seed in each for each in own)]
        if seeds:
            whole[key] = [{seed: each[seed] for seed in seeds} for each in own]
    found: dict[str, dict[RowKey, Difference]] = {}
    names = [str(primary.metric)] if primary.others == "untested" else [*resampled.pairs]
    for name in names if primary.of_mean else ():
        for key in whole:
            other = key._replace(system=against[key.system] or "")
            if other in whole and all(key._replace(test_set=test) in resampled.pairs.get(name, {}) for test in over):
                sides = []
                for side in (key, other):
                    places = [side._replace(test_set=test) for test in over]
                    drawn = [dict(zip(runs[place], resampled.drawn[name][place], strict=True)) for place in places]
                    sides.append([[each[seed] for seed in whole[side][0]] for each in drawn])
                found.setdefault(name, {})[key] = compare_means(*sides)
    tests = {name: corrected(own) for name, own in found.items()}
    rows = []
    for key, several in whole.items():
        common = set[str].intersection(*(set(_common(each.values(), measure)) for each in several))
        scores = {
            name: Spread.of({seed: fmean(each[seed].values[name] for each in several) for seed in several[0]})
            for name in measure.metrics.in_order(common)
        }
        intervals = {}
        if len(several[0]) >= TRAININGS_FOR_P:
            ends = {name: mean_interval([*spread.by_seed.values()]) for name, spread in scores.items()}
            intervals = {name: _within(name, each, "trainings", measure) for name, each in ends.items()}
        tested = {name: each[key] for name, each in tests.items() if key in each}
        seeds, against_it = [*several[0]], against[key.system]
        rows.append(Row(key.group or None, label, key.system, against_it, seeds, scores, tested, intervals=intervals))
    return rows, tests


def training_of(
    system: str, path: PathLike, group: str | None = None, dictionary: DictionaryUse | None = None
) -> Training:
    """Return the figures of a training of ``system`` from its report, which ``train`` wrote.

    Raises MTScaffoldError if the report cannot be read.
    """
    report = read_result(TrainingRecord, path)
    return Training(
        system=system,
        seed=report.seed,
        parameters=report.parameters,
        updates=report.updates,
        epochs=report.epochs,
        subwords=report.subwords,
        text_bytes=report.text_bytes,
        stop=report.stop,
        hours=report.seconds / 3600,
        group=group,
        dictionary=dictionary,
    )


def _beside(published: Sequence[Published], rows: Sequence[Row]) -> list[PublishedBeside]:
    """Return each published score with our mean for the system that it is shown next to, and the difference."""
    ours = {(row.test_set, row.system): row for row in rows}
    found = []
    for theirs in published:
        row = ours.get((theirs.test_set, theirs.beside))
        spread = None if row is None else row.metric(theirs.metric)
        mean = None if spread is None else spread.mean
        difference = None if mean is None else mean - theirs.score
        found.append(PublishedBeside(**asdict(theirs), ours=mean, difference=difference))
    return found
