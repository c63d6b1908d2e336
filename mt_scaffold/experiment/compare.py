"""Scores of several systems → one table: mean and spread over the seeds, and paired tests against a baseline."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.comparison import Comparison, PublishedBeside, Row, Spread, as_csv, as_text
from mt_scaffold.experiment.configuration import Published
from mt_scaffold.experiment.provenance import sha256, versions
from mt_scaffold.experiment.results import read_result, write_result
from mt_scaffold.experiment.score import COMPARABLE, LABELS, NOT_COMPARABLE, Scores
from mt_scaffold.files import PathLike, write_text
from mt_scaffold.text import read_lines


@dataclass(frozen=True)
class _Scored:
    """A score file and its path."""

    path: Path
    scores: Scores

    @property
    def key(self) -> tuple[str, str, int]:
        return self.scores.test_set, self.scores.system, self.scores.seed

    def lines(self, name: str) -> list[str]:
        """Return the lines of the ``hypothesis`` or ``reference`` that was scored; raise where it has changed since."""
        file = self.scores.files[name]
        path = self.path.resolve().parent / file.path
        if sha256(path) != file.sha256:
            raise MTScaffoldError(f"{path}: has changed since {self.path} was written; score again")
        return read_lines(path)


def compare(
    scores: Sequence[PathLike],
    baseline: str,
    output: PathLike | None = None,
    samples: int = 1000,
    title: str = "",
    published: Sequence[Published] = (),
) -> Comparison:
    """Compare each system in the files that ``score`` wrote with the system ``baseline``.

    For each test set and system: mean and standard deviation (of the sample, n - 1) of each score over the seeds, the
    difference between its mean BLEU and the baseline's, and, for each seed that both were trained with, the p-value of
    sacreBLEU's paired bootstrap test (Koehn 2004) with ``samples`` resamples, for BLEU and chrF.

    Where a system and the baseline have two or more seeds each, Welch's t-test over the seeds' BLEU is added: it asks
    whether the trainings differ, the bootstrap test whether the translations of two trainings do.
    ``published`` are scores from elsewhere, shown beside ours with the difference and marked as theirs.

    With ``output`` the comparison is written to ``output.txt``, ``.md``, ``.json`` and ``.csv``. Raises MTScaffoldError
    where score files are not as ``score`` wrote them, or were scored against different references; UsageError where two
    are for the same run, or none is for the baseline.
    """
    if samples < 1:
        raise UsageError(f"compare: the number of bootstrap samples must be 1 or more, not {samples}")
    by_key: dict[tuple[str, str, int], _Scored] = {}
    for scored in map(_read, scores):
        if scored.key in by_key:
            raise UsageError(
                f"{scored.path} and {by_key[scored.key].path} are for the same test set, system and seed; give only one"
            )
        by_key[scored.key] = scored
    systems = list(dict.fromkeys(system for _, system, _ in by_key))
    if baseline not in systems:
        raise UsageError(
            f"compare: the baseline {baseline} is not among the systems with scores: {', '.join(systems)}; choose one"
        )
    systems.sort(key=lambda system: system != baseline)
    test_sets = list(dict.fromkeys(test_set for test_set, _, _ in by_key))

    rows = []
    signatures: dict[str, str] = {}
    for test_set in test_sets:
        for system in systems:
            of_system = {key[2]: scored for key, scored in by_key.items() if key[:2] == (test_set, system)}
            of_baseline = {key[2]: scored for key, scored in by_key.items() if key[:2] == (test_set, baseline)}
            if not of_system:
                continue
            p: dict[str, dict[str, float]] = {name: {} for name in COMPARABLE}
            for seed in [seed for seed in of_system if seed in of_baseline and system != baseline]:
                for name, (value, signature) in _paired_bootstrap(of_baseline[seed], of_system[seed], samples).items():
                    p[name][str(seed)] = value
                    signatures[f"paired bootstrap, {COMPARABLE[name]}"] = signature
            t_test = _t_test(_bleu(of_system), _bleu(of_baseline)) if system != baseline else None
            spreads = {name: _spread(name, of_system) for name in LABELS}
            rows.append(Row(test_set, system, list(of_system), **spreads, p=p, t_test=t_test))
    for scored in by_key.values():
        for name, metric in scored.scores.metrics.items():
            signatures.setdefault(LABELS[name], metric.signature)

    comparison = Comparison(
        title=title,
        synthetic=any(scored.scores.synthetic for scored in by_key.values()),
        baseline=baseline,
        bootstrap_samples=samples,
        rows=rows,
        published=_beside(published, rows),
        signatures=dict(sorted(signatures.items())),
        not_comparable=list(NOT_COMPARABLE),
        versions=versions(),
    )
    if output is not None:
        write_text(f"{output}.txt", as_text(comparison))
        write_text(f"{output}.md", as_text(comparison, markdown=True))
        write_text(f"{output}.csv", as_csv(comparison))
        write_result(f"{output}.json", comparison)
    return comparison


def _read(path: PathLike) -> _Scored:
    scored = _Scored(Path(path), read_result(Scores, path))
    for name, label in COMPARABLE.items():
        if name not in scored.scores.metrics:
            raise MTScaffoldError(f"{path}: has no {label} score; score again")
    if unknown := scored.scores.metrics.keys() - LABELS.keys():
        raise MTScaffoldError(f"{path}: holds an unknown metric, {min(unknown)}; score again")
    for name in ("hypothesis", "reference"):
        if name not in scored.scores.files:
            raise MTScaffoldError(f"{path}: does not name the {name} file; score again")
    return scored


def _spread(name: str, of_system: Mapping[int, _Scored]) -> Spread | None:
    """Return a metric over the seeds of a system; None where a seed lacks it."""
    if not all(name in scored.scores.metrics for scored in of_system.values()):
        return None
    by_seed = {str(seed): scored.scores.metrics[name].score for seed, scored in of_system.items()}
    values = list(by_seed.values())
    return Spread(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, by_seed)


def _bleu(of_system: Mapping[int, _Scored]) -> list[float]:
    return [scored.scores.metrics["bleu"].score for scored in of_system.values()]


def _paired_bootstrap(baseline: _Scored, system: _Scored, samples: int) -> dict[str, tuple[float, str]]:
    """Return the p-value and signature of each metric, from sacreBLEU's own test."""
    from sacrebleu.metrics import BLEU, CHRF
    from sacrebleu.significance import PairedTest

    references = system.lines("reference")
    if baseline.lines("reference") != references:
        raise MTScaffoldError(
            f"{baseline.path} and {system.path} were scored against different references; score both against the same"
        )
    of_baseline, of_system = baseline.lines("hypothesis"), system.lines("hypothesis")
    test = PairedTest(
        [("baseline", of_baseline), ("system", of_system)],
        {"bleu": BLEU(), "chrf": CHRF()},
        [references],
        test_type="bs",
        n_samples=samples,
    )
    signatures, results = test()
    # sacreBLEU names the results by the score: BLEU, chrF2.
    names = {"bleu": "BLEU", "chrf": "chrF2"}
    # sacreBLEU never ascribes a difference of exactly 0 to chance: equal translations would get the smallest p.
    same = of_baseline == of_system
    return {name: (1.0 if same else results[shown][1].p_value, str(signatures[shown])) for name, shown in names.items()}


def _t_test(ours: Sequence[float], baseline: Sequence[float]) -> float | None:
    """Return the p-value of Welch's t-test; None with fewer than two seeds on a side, or where no score differs."""
    if len(ours) < 2 or len(baseline) < 2 or len({*ours, *baseline}) == 1:
        return None
    from scipy.stats import ttest_ind

    return float(ttest_ind(ours, baseline, equal_var=False).pvalue)


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
