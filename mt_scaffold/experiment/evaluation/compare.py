"""Scores of several systems → one table: mean and spread over the seeds, and a test against each one's baseline."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import PathLike, write_text
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import Published
from mt_scaffold.experiment.evaluation.comparison import Checkpoints, Comparison, PublishedBeside, Row, Spread, Training
from mt_scaffold.experiment.evaluation.comparison_tables import as_csv, as_text
from mt_scaffold.experiment.evaluation.metrics import LABELS, METRICS, NOT_COMPARABLE, sacrebleu_metric
from mt_scaffold.experiment.evaluation.score import Scores
from mt_scaffold.experiment.evaluation.significance import (
    RANDOM_SEED,
    Difference,
    Resampled,
    compare_trainings,
    corrected,
    draw_segments,
    resample,
)
from mt_scaffold.experiment.runtime.provenance import sha256, versions
from mt_scaffold.experiment.runtime.results import read_result, write_result
from mt_scaffold.experiment.training.train import TrainingReport


@dataclass(frozen=True)
class _Scored:
    """A score file and its path."""

    path: Path
    scores: Scores

    @property
    def key(self) -> tuple[str, str, int, str | None]:
        return self.scores.test_set, self.scores.system, self.scores.seed, self.scores.checkpoint

    def check_unchanged(self) -> None:
        """Raise where a file that was scored has changed since; the statistics are enough where it is not there."""
        for name in ("hypothesis", *self.scores.references):
            file = self.scores.files[name]
            path = self.path.resolve().parent / file.path
            if path.exists() and sha256(path) != file.sha256:
                raise MTScaffoldError(f"{path}: has changed since {self.path} was written; score again")

    def statistics(self, name: str) -> list[list[float]]:
        """Return the sufficient statistics of each segment in a metric."""
        rows = self.scores.metrics[name].segments
        if rows is None or len(rows) != self.scores.lines:
            raise MTScaffoldError(f"{self.path}: {LABELS[name]} lacks the statistics of its segments; score again")
        try:
            found = [list(map(float, row.split())) for row in rows]
        except ValueError as error:
            raise MTScaffoldError(f"{self.path}: {LABELS[name]}: segments: {error}; score again") from error
        if len({len(row) for row in found}) > 1:
            raise MTScaffoldError(f"{self.path}: {LABELS[name]}: segments: not as many figures in each; score again")
        return found


# The trainings of one system on one test set, by seed.
_Runs = dict[int, _Scored]


def compare(
    scores: Sequence[PathLike],
    baseline: str,
    output: PathLike | None = None,
    samples: int = 1000,
    title: str = "",
    published: Sequence[Published] = (),
    *,
    baselines: Mapping[str, str] = {},
    trainings: Mapping[str, Sequence[PathLike]] = {},
) -> Comparison:
    """Compare each system in the files that ``score`` wrote with ``baselines[system]``, or else with ``baseline``.

    For each test set and system: mean and standard deviation (of the sample, n - 1) of each score over the seeds, and,
    for each metric on detokenised text, the difference from the baseline's mean with its 95 % interval, its p-value and
    the one corrected for all comparisons of the table in that metric (``significance``), from ``samples`` resamples.

    Scores of single checkpoints (``score(checkpoint=...)``) are summed up beside those of the final models.
    ``published`` are scores from elsewhere, shown beside ours with the difference and marked as theirs. ``trainings``:
    each system's training.json files, whose figures make a second table.

    With ``output`` the comparison is written to ``output.txt``, ``.md``, ``.json`` and ``.csv``. Raises MTScaffoldError
    where score files are not as ``score`` wrote them, or were scored against different references; UsageError where two
    are for the same run, or a baseline has no scores.
    """
    if samples < 2:
        raise UsageError(f"compare: the number of bootstrap samples must be 2 or more, not {samples}")
    by_key: dict[tuple[str, str, int, str | None], _Scored] = {}
    for scored in map(_read, scores):
        if scored.key in by_key:
            raise UsageError(
                f"{scored.path} and {by_key[scored.key].path} are for the same test set, system and seed; give only one"
            )
        by_key[scored.key] = scored
    runs: dict[tuple[str, str], _Runs] = {}
    single: dict[tuple[str, str], list[_Scored]] = {}
    for (test_set, system, seed, checkpoint), scored in by_key.items():
        if checkpoint is None:
            runs.setdefault((test_set, system), {})[seed] = scored
        else:
            single.setdefault((test_set, system), []).append(scored)
    for key in single.keys() - runs.keys():
        raise UsageError(f"{single[key][0].path}: is for a single checkpoint; give the score of the final model, too")
    against = _baselines([system for _, system in runs], baseline, baselines)
    if unknown := trainings.keys() - against.keys():
        raise UsageError(f"compare: no scores of the system {min(unknown)}, whose training is given; leave it out")
    test_sets = list(dict.fromkeys(test_set for test_set, _ in runs))
    order = [(test_set, system) for test_set in test_sets for system in against if (test_set, system) in runs]

    tests = _test(order, runs, against, samples)
    rows = [
        Row(
            test_set,
            system,
            against[system],
            list(runs[test_set, system]),
            scores={name: _spread(name, runs[test_set, system]) for name in _common(runs[test_set, system].values())},
            tests={name: found[test_set, system] for name, found in tests.items() if (test_set, system) in found},
            checkpoints=_checkpoints(single.get((test_set, system), [])),
        )
        for test_set, system in order
    ]
    comparison = Comparison(
        title=title,
        synthetic=any(scored.scores.synthetic for scored in by_key.values()),
        baseline=baseline,
        bootstrap_samples=samples,
        random_seed=RANDOM_SEED,
        comparisons={name: len(found) for name, found in tests.items()},
        rows=rows,
        trainings=[training_of(system, path) for system in against for path in trainings.get(system, ())],
        published=_beside(published, rows),
        signatures=_signatures(by_key.values()),
        not_comparable=list(NOT_COMPARABLE),
        versions=versions(),
        engines=_engines(scored.scores for scored in by_key.values()),
    )
    if not comparison.metrics:
        raise MTScaffoldError("compare: the score files have no metric in common; score again with the same --metrics")
    if output is not None:
        write_text(f"{output}.txt", as_text(comparison))
        write_text(f"{output}.md", as_text(comparison, markdown=True))
        write_text(f"{output}.csv", as_csv(comparison))
        write_result(f"{output}.json", comparison)
    return comparison


def _read(path: PathLike) -> _Scored:
    scored = _Scored(Path(path), read_result(Scores, path))
    if unknown := scored.scores.metrics.keys() - METRICS.keys():
        raise MTScaffoldError(f"{path}: holds an unknown metric, {min(unknown)}; score again")
    split = scored.scores.metrics.get("tokenised_bleu_split")
    if split is not None and "compounds:split" not in split.signature:
        raise MTScaffoldError(
            f"{path}: its {LABELS['tokenised_bleu_split']}, is of an earlier release, which split words made with -a "
            "(too high a figure); score again"
        )
    for name in ("hypothesis", "reference"):
        if name not in scored.scores.files:
            raise MTScaffoldError(f"{path}: does not name the {name} file; score again")
    return scored


def _baselines(systems: Sequence[str], baseline: str, baselines: Mapping[str, str]) -> dict[str, str | None]:
    """Return each system's baseline (None: its own), the default baseline first, the others in the order given."""
    ordered = sorted(dict.fromkeys(systems), key=lambda system: system != baseline)
    for name in (baseline, *baselines.values(), *baselines):
        if name not in ordered:
            role = "system" if name in baselines and name not in baselines.values() else "baseline"
            raise UsageError(
                f"compare: the {role} {name} is not among the systems with scores: {', '.join(ordered)}; choose one"
            )
    against = {system: baselines.get(system, baseline) for system in ordered}
    return {system: None if other == system else other for system, other in against.items()}


def _common(several: Iterable[_Scored]) -> list[str]:
    """Return the metrics that each of the score files has, in the order of METRICS."""
    held = [scored.scores.metrics.keys() for scored in several]
    return [name for name in METRICS if all(name in metrics for metrics in held)]


def _spread(name: str, runs: _Runs) -> Spread:
    by_seed = {str(seed): scored.scores.metrics[name].score for seed, scored in runs.items()}
    values = list(by_seed.values())
    return Spread(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, by_seed)


def _checkpoints(several: Sequence[_Scored]) -> dict[str, Checkpoints]:
    """Sum up the scores of single checkpoints: their mean, and their spread within a training."""
    found = {}
    for name in _common(several) if several else ():
        by_seed: dict[int, list[float]] = {}
        for scored in several:
            by_seed.setdefault(scored.scores.seed, []).append(scored.scores.metrics[name].score)
        squares = sum((value - statistics.fmean(values)) ** 2 for values in by_seed.values() for value in values)
        freedom = len(several) - len(by_seed)
        found[name] = Checkpoints(
            mean=statistics.fmean(value for values in by_seed.values() for value in values),
            sd=math.sqrt(squares / freedom) if freedom else None,
            count=max(map(len, by_seed.values())),
        )
    return found


def _test(
    order: Sequence[tuple[str, str]],
    runs: Mapping[tuple[str, str], _Runs],
    against: Mapping[str, str | None],
    samples: int,
) -> dict[str, dict[tuple[str, str], Difference]]:
    """Return, for each metric, the test of each system on each test set, corrected for their number."""
    found: dict[str, dict[tuple[str, str], Difference]] = {}
    for test_set in dict.fromkeys(test_set for test_set, _ in order):
        pairs = {system: against[system] for name, system in order if name == test_set}
        pairs = {system: other for system, other in pairs.items() if (test_set, other) in runs}
        involved = {system: runs[test_set, system] for pair in pairs.items() for system in pair if system is not None}
        if not involved:
            continue
        _check_references(involved)
        for scored in (scored for trained in involved.values() for scored in trained.values()):
            scored.check_unchanged()
        lines = next(iter(next(iter(involved.values())).values())).scores.lines
        # Every resample of one segment is that segment, and every difference would be certain.
        if lines < 2:
            continue
        drawn = draw_segments(lines, samples)
        for name in [name for name, kind in METRICS.items() if kind.tested]:
            having = {system: each for system, each in involved.items() if name in _common(each.values())}
            tested = {system: other for system, other in pairs.items() if system in having and other in having}
            needed = {system for pair in tested.items() for system in pair}
            resampled = _resample(name, {system: having[system] for system in having if system in needed}, drawn)
            for system, other in tested.items():
                assert other is not None
                difference = compare_trainings(resampled[system], resampled[other])
                found.setdefault(name, {})[test_set, system] = difference
    return {name: corrected(found[name]) for name in METRICS if name in found}


def _resample(name: str, systems: Mapping[str, _Runs], drawn: Any) -> dict[str, list[Resampled]]:
    """Return the scores of every training of ``systems`` on the resamples of one test set."""
    if not systems:
        return {}
    metric = sacrebleu_metric(name)
    found: dict[str, list[Resampled]] = {}
    for system, trained in systems.items():
        for scored in trained.values():
            own = scored.scores.metrics[name]
            resampled = resample(metric, scored.statistics(name), drawn)
            if not math.isclose(resampled.score, own.score, rel_tol=1e-6, abs_tol=1e-6):
                raise MTScaffoldError(
                    f"{scored.path}: {LABELS[name]} was {own.score:.4f} when this was written and is "
                    f"{resampled.score:.4f} now (another sacreBLEU?); score again"
                )
            found.setdefault(system, []).append(resampled)
    return found


def _check_references(systems: Mapping[str, _Runs]) -> None:
    """Raise where trainings on one test set were scored against different references."""
    first, *others = [scored for trained in systems.values() for scored in trained.values()]
    digests = [first.scores.files[name].sha256 for name in first.scores.references]
    for other in others:
        if [other.scores.files[name].sha256 for name in other.scores.references] != digests:
            raise MTScaffoldError(
                f"{first.path} and {other.path} were scored against different references; score both against the same"
            )


def _engines(scores: Iterable[Scores]) -> list[str] | None:
    """Return what translated, by name; None where it was fairseq alone, or is not known."""
    found = set()
    for each in scores:
        section = (each.config or {}).get("translate", {})
        if section.get("engine", "fairseq") == "fairseq":
            found.add("fairseq")
        else:
            version = each.versions.get("ctranslate2", "of unknown version")
            found.add(f"CTranslate2 {version}, {section.get('quantization', 'float32')}")
    return sorted(found) if found - {"fairseq"} else None


def _signatures(several: Iterable[_Scored]) -> dict[str, str]:
    """Return the signature of each metric; raise where scores of one test set were computed differently."""
    found: dict[str, dict[str, tuple[str, _Scored]]] = {}
    for scored in several:
        for name, metric in scored.scores.metrics.items():
            by_test_set = found.setdefault(name, {})
            signature, other = by_test_set.setdefault(scored.scores.test_set, (metric.signature, scored))
            if signature != metric.signature:
                raise MTScaffoldError(
                    f"{other.path} and {scored.path}: {LABELS[name]} was computed differently ({signature} and "
                    f"{metric.signature}); score both again"
                )
    shown = {}
    for name in [name for name in METRICS if name in found]:
        different = {signature for signature, _ in found[name].values()}
        for test_set, (signature, _) in found[name].items():
            shown[LABELS[name] if len(different) == 1 else f"{LABELS[name]}, {test_set}"] = signature
    return shown


def training_of(system: str, path: PathLike) -> Training:
    """Return what a training of ``system`` cost and saw, from its report (``train`` writes it).

    Raises MTScaffoldError if the report cannot be read.
    """
    report = read_result(TrainingReport, path)
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
    )


def _beside(published: Sequence[Published], rows: Sequence[Row]) -> list[PublishedBeside]:
    """Return each published score with our mean for the system that it is shown beside, and the difference."""
    ours = {(row.test_set, row.system): row for row in rows}
    found = []
    for theirs in published:
        row = ours.get((theirs.test_set, theirs.beside))
        spread = None if row is None else row.metric(theirs.metric)
        mean = None if spread is None else spread.mean
        difference = None if mean is None else mean - theirs.score
        found.append(PublishedBeside(**asdict(theirs), ours=mean, difference=difference))
    return found
