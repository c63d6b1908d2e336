"""Scores of several language models → one table of bits per byte, with tests against each one's baseline."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from mt_scaffold.corpus.files import PathLike, write_text
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.evaluation.bits_per_byte import LanguageModelScores
from mt_scaffold.experiment.evaluation.compare import training_of
from mt_scaffold.experiment.evaluation.comparison import Spread
from mt_scaffold.experiment.evaluation.document_tests import (
    mean_bits,
    paired_seeds,
    randomisation_p,
    resample_documents,
)
from mt_scaffold.experiment.evaluation.model_comparison import (
    ModelComparison,
    ModelRow,
    ModelTest,
    ModelTraining,
    as_csv,
    as_text,
)
from mt_scaffold.experiment.evaluation.significance import RANDOM_SEED, compare_trainings, corrected
from mt_scaffold.experiment.runtime.provenance import versions
from mt_scaffold.experiment.runtime.results import read_result, write_result


class Labelled(NamedTuple):
    """A file of one training of a system. group: of the systems that are compared with each other; may be empty."""

    group: str
    system: str
    path: PathLike


class _Key(NamedTuple):
    group: str
    test_set: str
    system: str


@dataclass(frozen=True)
class _Scored:
    path: Path
    scores: LanguageModelScores


# The trainings of one system on one test set, by seed.
_Runs = dict[int, _Scored]


def compare_models(
    scores: Sequence[Labelled],
    baseline: str,
    output: PathLike | None = None,
    *,
    baselines: Mapping[str, str] = {},
    samples: int = 1000,
    title: str = "",
    trainings: Sequence[Labelled] = (),
) -> ModelComparison:
    """Compare each system in the files that ``evaluate`` wrote with ``baselines[system]``, or else with ``baseline``.

    Systems are compared within their group only: the paper's two comparisons, after equal tokens and after equal text,
    are two groups, each with its baseline. For each group, test set and system: mean and standard deviation of the bits
    per byte over the seeds, and the difference from the baseline's mean with its 95 % interval and p-value from
    ``samples`` resamples (``ModelTest``). ``trainings``: training.json files, whose figures make another table.

    With ``output`` the comparison is written to ``output.txt``, ``.md``, ``.json`` and ``.csv``. Raises MTScaffoldError
    where score files are not as ``evaluate`` wrote them, or are of different documents or made differently; UsageError
    where two are for the same run, or a baseline has no scores.
    """
    if samples < 2:
        raise UsageError(f"compare-models: the number of samples must be 2 or more, not {samples}")
    runs = _read_all(scores)
    _check_baselines(runs, baseline, baselines)
    tests: dict[_Key, ModelTest] = {}
    for group, test_set in dict.fromkeys((key.group, key.test_set) for key in runs):
        involved = {key.system: each for key, each in runs.items() if (key.group, key.test_set) == (group, test_set)}
        _check_alike(each for by_seed in involved.values() for each in by_seed.values())
        against = {system: other for system in involved if (other := _against(system, baseline, baselines))}
        for system, test in _tests(involved, against, samples).items():
            tests[_Key(group, test_set, system)] = test
    tests = _corrected(tests)
    rows = [
        _row(key, by_seed, _against(key.system, baseline, baselines), tests.get(key))
        for key, by_seed in sorted(runs.items(), key=lambda entry: _order(entry[0], list(runs), baseline))
    ]
    every = [each.scores for by_seed in runs.values() for each in by_seed.values()]
    comparison = ModelComparison(
        title=title,
        synthetic=any(each.synthetic for each in every),
        baseline=baseline,
        samples=samples,
        random_seed=RANDOM_SEED,
        comparisons=len(tests),
        rows=rows,
        trainings=[
            ModelTraining(**asdict(training_of(each.system, each.path)), group=each.group) for each in trainings
        ],
        signatures={f"bits per byte, {each.test_set}": each.signature for each in every},
        versions=versions(),
    )
    if output is not None:
        write_text(f"{output}.txt", as_text(comparison))
        write_text(f"{output}.md", as_text(comparison, markdown=True))
        write_text(f"{output}.csv", as_csv(comparison))
        write_result(f"{output}.json", comparison)
    return comparison


def _read_all(scores: Sequence[Labelled]) -> dict[_Key, _Runs]:
    runs: dict[_Key, _Runs] = {}
    for group, system, path in scores:
        found = read_result(LanguageModelScores, path)
        if len(found.by_document.bits) != len(found.by_document.bytes) or not found.by_document.bits:
            raise MTScaffoldError(f"{path}: not as many bits as documents; evaluate again")
        by_seed = runs.setdefault(_Key(group, found.test_set, system), {})
        if found.seed in by_seed:
            raise UsageError(
                f"{path} and {by_seed[found.seed].path} are for the same group, test set, system and seed; give one"
            )
        by_seed[found.seed] = _Scored(Path(path), found)
    if not runs:
        raise UsageError("compare-models: give at least one NAME=scores.json")
    return runs


def _against(system: str, baseline: str, baselines: Mapping[str, str]) -> str | None:
    other = baselines.get(system, baseline)
    return None if other == system else other


def _check_baselines(runs: Mapping[_Key, _Runs], baseline: str, baselines: Mapping[str, str]) -> None:
    """Raise UsageError where a system has no baseline on a test set of its group."""
    known = dict.fromkeys(key.system for key in runs)
    for name in (baseline, *baselines, *baselines.values()):
        if name not in known:
            raise UsageError(f"compare-models: no scores of {name} (there are those of {', '.join(known)})")
    for key in runs:
        other = _against(key.system, baseline, baselines)
        if other is not None and _Key(key.group, key.test_set, other) not in runs:
            where = f"{key.test_set}, group {key.group}" if key.group else key.test_set
            raise UsageError(
                f"compare-models: no scores of {other}, the baseline of {key.system}, on {where}; add them"
            )


def _check_alike(several: Iterable[_Scored]) -> None:
    """Raise MTScaffoldError where scores are of different documents, or were computed differently."""
    first, *others = several
    for other in others:
        if other.scores.by_document.bytes != first.scores.by_document.bytes or (
            other.scores.data_sha256 != first.scores.data_sha256
        ):
            raise MTScaffoldError(
                f"{first.path} and {other.path} are scores of different documents; evaluate both on the same"
            )
        if other.scores.signature != first.scores.signature:
            raise MTScaffoldError(
                f"{first.path} and {other.path} were computed differently ({first.scores.signature} and "
                f"{other.scores.signature}); evaluate both again with the same --context-window"
            )


def _tests(systems: Mapping[str, _Runs], against: Mapping[str, str], samples: int) -> dict[str, ModelTest]:
    """Return the test of each system that has a baseline; all on the same documents, of which there are several."""
    import numpy

    sizes = numpy.array(next(iter(next(iter(systems.values())).values())).scores.by_document.bytes, numpy.float64)
    # Every resample of one document is that document, and every difference would be certain.
    if not against or len(sizes) < 2:
        return {}
    bits = {name: [each.scores.by_document.bits for each in by_seed.values()] for name, by_seed in systems.items()}
    flat: Any = numpy.array([row for rows in bits.values() for row in rows], numpy.float64)
    resampled = iter(resample_documents(flat, sizes, samples))
    trainings = {name: [next(resampled) for _ in rows] for name, rows in bits.items()}
    found = {}
    for system, other in against.items():
        difference = compare_trainings(trainings[system], trainings[other])
        by_seed = [
            {seed: each.scores.bits_per_byte for seed, each in systems[name].items()} for name in (system, other)
        ]
        found[system] = ModelTest(
            # It is of sacreBLEU's resamples only.
            replace(difference, sacrebleu_p=None),
            randomisation_p(mean_bits(bits[system]) - mean_bits(bits[other]), samples),
            paired_seeds(*by_seed),
        )
    return found


def _corrected(tests: Mapping[_Key, ModelTest]) -> dict[_Key, ModelTest]:
    """Return the tests with what depends on their number."""
    over_all = corrected({key: test.over_all for key, test in tests.items()})
    return {key: replace(test, over_all=over_all[key]) for key, test in tests.items()}


def _order(key: _Key, keys: Sequence[_Key], baseline: str) -> tuple[Any, ...]:
    """Order rows by group, test set and system as they were given, the baseline first."""
    groups, test_sets, systems = ([getattr(each, name) for each in keys] for name in _Key._fields)
    return groups.index(key.group), test_sets.index(key.test_set), key.system != baseline, systems.index(key.system)


def _row(key: _Key, by_seed: _Runs, other: str | None, test: ModelTest | None) -> ModelRow:
    scores = {seed: each.scores for seed, each in sorted(by_seed.items())}
    first = next(iter(scores.values()))
    return ModelRow(
        group=key.group,
        test_set=key.test_set,
        system=key.system,
        baseline=other,
        seeds=list(scores),
        n_vocab=first.n_vocab,
        tokens=first.tokens,
        bytes=first.bytes,
        documents=first.documents,
        bytes_per_token=first.bytes_per_token,
        bits_per_byte=_spread({seed: each.bits_per_byte for seed, each in scores.items()}),
        perplexity=_spread({seed: each.perplexity_per_token for seed, each in scores.items()}),
        test=test,
    )


def _spread(by_seed: Mapping[int, float]) -> Spread:
    values = list(by_seed.values())
    sd = statistics.stdev(values) if len(values) > 1 else None
    return Spread(statistics.fmean(values), sd, {str(seed): value for seed, value in by_seed.items()})
