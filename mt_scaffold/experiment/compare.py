"""Scores of several systems → one table: mean and spread over seeds, and paired bootstrap tests against a baseline."""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.provenance import sha256, versions
from mt_scaffold.experiment.score import COMPARABLE, LABELS, NOT_COMPARABLE, read_lines
from mt_scaffold.files import PathLike, open_input, write_text

if TYPE_CHECKING:
    from mt_scaffold.experiment.configuration import Published

SYNTHETIC_NOTE = "SYNTHETIC DATA: generated text; these figures say nothing about any real language."


@dataclass(frozen=True)
class _Scored:
    """One score file: what was scored, and where its lines are."""

    path: Path
    content: dict[str, Any]

    @property
    def key(self) -> tuple[str, str, int]:
        return self.content["test_set"], self.content["system"], self.content["seed"]

    def lines(self, name: str) -> list[str]:
        """The lines of the ``hypothesis`` or ``reference`` that was scored, which must still be what it was."""
        entry = self.content["files"][name]
        path = self.path.resolve().parent / entry["path"]
        if sha256(path) != entry["sha256"]:
            raise MTScaffoldError(f"{path}: has changed since {self.path} was written: score it again")
        return read_lines(path)


def compare(
    scores: Sequence[PathLike],
    baseline: str,
    output: PathLike | None = None,
    samples: int = 1000,
    title: str = "",
    published: Sequence[Published] = (),
) -> dict[str, Any]:
    """Compare what ``score`` wrote (files with ``system``, ``test_set`` and ``seed``) with the system ``baseline``.

    For each test set and system: mean and standard deviation (of the sample, n - 1) of each score over the seeds, the
    difference of the mean BLEU to the baseline's, and for each seed that both were trained with the p-value of
    sacreBLEU's paired bootstrap test (Koehn 2004) with ``samples`` resamples, for BLEU and chrF.

    Where a system and the baseline have two seeds or more, Welch's t-test over the seeds' BLEU is added: whether the
    trainings differ, where the bootstrap test asks whether the translations of two trainings do.
    ``published`` are scores from elsewhere, to be shown beside ours with the difference, marked as theirs.

    With ``output`` the comparison goes to ``output.txt``, ``.md``, ``.json`` and ``.csv``. Returns the content of the
    JSON. Raises MTScaffoldError where score files are not as ``score`` wrote them, or do not fit each other.
    """
    if samples < 1:
        raise UsageError(f"the number of bootstrap samples must be 1 or more, not {samples}")
    by_key: dict[tuple[str, str, int], _Scored] = {}
    for scored in (_read(path) for path in scores):
        if scored.key in by_key:
            raise UsageError(f"{scored.path} and {by_key[scored.key].path} are for the same test set, system and seed")
        by_key[scored.key] = scored
    systems = list(dict.fromkeys(system for _, system, _ in by_key))
    if baseline not in systems:
        raise UsageError(f"the baseline {baseline} is not among the systems with scores: {', '.join(systems)}")
    systems.sort(key=lambda system: system != baseline)
    test_sets = list(dict.fromkeys(test_set for test_set, _, _ in by_key))

    rows = []
    signatures: dict[str, str] = {}
    for test_set in test_sets:
        for system in systems:
            of_system = {seed: by_key[key] for key in by_key for seed in [key[2]] if key[:2] == (test_set, system)}
            if not of_system:
                continue
            row = {"test_set": test_set, "system": system, "seeds": list(of_system), **_statistics(of_system)}
            pairs = [
                (seed, by_key[test_set, baseline, seed], scored)
                for seed, scored in of_system.items()
                if system != baseline and (test_set, baseline, seed) in by_key
            ]
            row["p"] = {"bleu": {}, "chrf": {}}
            for seed, of_baseline, scored in pairs:
                for name, (p, signature) in _paired_bootstrap(of_baseline, scored, samples).items():
                    row["p"][name][str(seed)] = p
                    signatures[f"paired bootstrap, {COMPARABLE[name]}"] = signature
            if system != baseline:
                row["t_test"] = _t_test(
                    [scored.content["metrics"]["bleu"]["score"] for scored in of_system.values()],
                    [
                        by_key[key].content["metrics"]["bleu"]["score"]
                        for key in by_key
                        if key[:2] == (test_set, baseline)
                    ],
                )
            rows.append(row)
    for scored in by_key.values():
        for name, metric in scored.content["metrics"].items():
            signatures.setdefault(LABELS[name], metric["signature"])

    comparison = {
        "title": title,
        "synthetic": any(scored.content.get("synthetic", False) for scored in by_key.values()),
        "baseline": baseline,
        "bootstrap_samples": samples,
        "rows": rows,
        "published": _beside(published, rows),
        "signatures": dict(sorted(signatures.items())),
        "not_comparable": list(NOT_COMPARABLE),
        "versions": versions(),
    }
    if output is not None:
        write_text(f"{output}.txt", as_text(comparison))
        write_text(f"{output}.md", as_text(comparison, markdown=True))
        write_text(f"{output}.csv", as_csv(comparison))
        write_text(f"{output}.json", json.dumps(comparison, indent=2, ensure_ascii=False) + "\n")
    return comparison


def as_text(comparison: Mapping[str, Any], markdown: bool = False) -> str:
    """The comparison as a table for people, with what they must know to read it."""
    from tabulate import tabulate

    rows = comparison["rows"]
    base = {row["test_set"]: row for row in rows if row["system"] == comparison["baseline"]}
    metrics = [name for name in LABELS if all(name in row for row in rows)]
    heading = ["test set", "system", "BLEU", "difference", "p", "chrF", "p"]
    heading += [f"{NOT_COMPARABLE[name]} *" for name in metrics if name in NOT_COMPARABLE]
    table = []
    for row in rows:
        reference = base.get(row["test_set"])
        is_base = row["system"] == comparison["baseline"]
        difference = "" if is_base or reference is None else f"{row['bleu']['mean'] - reference['bleu']['mean']:+.2f}"
        line = [row["test_set"], row["system"], _mean(row["bleu"]), difference, _p_values(row, "bleu")]
        line += [_mean(row["chrf"]), _p_values(row, "chrf")]
        line += [_mean(row[name]) for name in metrics if name in NOT_COMPARABLE]
        table.append(line)
    drawn = tabulate(table, heading, tablefmt="github" if markdown else "simple", disable_numparse=True)

    seeds = sorted({seed for row in rows for seed in row["seeds"]})
    notes = [
        f"BLEU and chrF: sacreBLEU on detokenised text against the untouched reference. Seeds: {_listed(seeds)}"
        + (
            "; mean ± standard deviation over them."
            if len(seeds) > 1
            else "; one training does not show how far trainings differ by chance."
        ),
        f"p: paired bootstrap test against {comparison['baseline']}, {comparison['bootstrap_samples']} resamples"
        + (", one value for each seed." if len(seeds) > 1 else "."),
    ]
    for row in rows:
        if row.get("t_test") is not None:
            notes.append(
                f"{row['test_set']}, {row['system']} against {comparison['baseline']}: Welch's t-test over the seeds' "
                f"BLEU, p {row['t_test']:.3f}."
            )
    if len(metrics) > len(COMPARABLE):
        notes.append("*: not comparable with scores from elsewhere; it depends on the tokeniser.")
    quote = "`" if markdown else ""
    notes += [f"{name}: {quote}{signature}{quote}" for name, signature in comparison["signatures"].items()]
    if markdown:
        notes = [f"- {note.replace('*:', chr(92) + '*:')}" for note in notes]
    blocks = [comparison["title"]] if comparison["title"] else []
    if comparison["synthetic"]:
        blocks.append(f"**{SYNTHETIC_NOTE}**" if markdown else SYNTHETIC_NOTE)
    blocks.append(drawn)
    if published := comparison.get("published"):
        blocks.append("Published elsewhere (THEIRS: copied from the papers, not measured here):")
        blocks.append(_published_table(published, "github" if markdown else "simple"))
    return "\n\n".join([*blocks, "\n".join(notes)]) + "\n"


def as_csv(comparison: Mapping[str, Any]) -> str:
    """The comparison as CSV: one line a test set and system, scores as mean and standard deviation."""
    metrics = [name for name in LABELS if any(name in row for row in comparison["rows"])]
    heading = ["test_set", "system", "baseline", "synthetic", "seeds"]
    heading += [f"{name}_{part}" for name in metrics for part in ("mean", "sd")] + ["p_bleu", "p_chrf"]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heading)
    for row in comparison["rows"]:
        line = [row["test_set"], row["system"], comparison["baseline"], comparison["synthetic"]]
        line.append(" ".join(map(str, row["seeds"])))
        for name in metrics:
            line += [row[name]["mean"], row[name]["sd"]] if name in row else ["", ""]
        line += [" ".join(map(str, row["p"][name].values())) for name in ("bleu", "chrf")]
        writer.writerow(["" if entry is None else entry for entry in line])
    return stream.getvalue()


def _read(path: PathLike) -> _Scored:
    with open_input(path) as stream:
        try:
            content = json.load(stream)
        except ValueError as error:
            raise MTScaffoldError(f"{path}: not JSON: {error}") from error
    wanted = {"test_set": str, "system": str, "seed": int, "metrics": dict, "files": dict}
    for name, kind in wanted.items():
        if not isinstance(content, dict) or not isinstance(content.get(name), kind):
            raise MTScaffoldError(f"{path}: not as mt-scaffold score writes it with --system, --test-set: no {name}")
    whole = all(isinstance(metric, dict) and _is_number(metric.get("score")) for metric in content["metrics"].values())
    for name in ("hypothesis", "reference"):
        entry = content["files"].get(name)
        whole &= isinstance(entry, dict) and all(isinstance(entry.get(key), str) for key in ("path", "sha256"))
    if not whole:
        raise MTScaffoldError(f"{path}: not as mt-scaffold score writes it: a score or the digest of a file is missing")
    return _Scored(Path(path), content)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _statistics(of_system: Mapping[int, _Scored]) -> dict[str, Any]:
    """Mean, standard deviation (None for one seed) and the single scores of each metric that every seed has."""
    found = {}
    for name in LABELS:
        if not all(name in scored.content["metrics"] for scored in of_system.values()):
            continue
        by_seed = {str(seed): scored.content["metrics"][name]["score"] for seed, scored in of_system.items()}
        values = list(by_seed.values())
        spread = statistics.stdev(values) if len(values) > 1 else None
        found[name] = {"mean": statistics.fmean(values), "sd": spread, "by_seed": by_seed}
    return found


def _paired_bootstrap(baseline: _Scored, system: _Scored, samples: int) -> dict[str, tuple[float, str]]:
    """Metric → p-value and signature, from sacreBLEU's own test."""
    from sacrebleu.metrics import BLEU, CHRF
    from sacrebleu.significance import PairedTest

    references = system.lines("reference")
    if baseline.lines("reference") != references:
        raise MTScaffoldError(f"{baseline.path} and {system.path} were scored against different references")
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
    # To sacreBLEU a difference of exactly 0 is never chance, so that equal translations would get the smallest p.
    same = of_baseline == of_system
    return {name: (1.0 if same else results[shown][1].p_value, str(signatures[shown])) for name, shown in names.items()}


def _t_test(ours: Sequence[float], baseline: Sequence[float]) -> float | None:
    """The p-value of Welch's t-test; None with fewer than two seeds on a side, or where no score differs."""
    if len(ours) < 2 or len(baseline) < 2 or len({*ours, *baseline}) == 1:
        return None
    from scipy.stats import ttest_ind

    return float(ttest_ind(ours, baseline, equal_var=False).pvalue)


def _beside(published: Sequence[Published], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each published score with our mean for the system that it is to stand beside, and the difference."""
    ours = {(row["test_set"], row["system"]): row for row in rows}
    found = []
    for theirs in published:
        row = ours.get((theirs.test_set, theirs.beside), {})
        mean = row[theirs.metric]["mean"] if theirs.metric in row else None
        difference = None if mean is None else mean - theirs.score
        found.append({**asdict(theirs), "ours": mean, "difference": difference})
    return found


def _published_table(published: Sequence[Mapping[str, Any]], tablefmt: str) -> str:
    from tabulate import tabulate

    heading = ["test set", "our system", "score", "ours", "THEIRS", "ours - theirs", "who", "their system"]
    table = [
        [
            *(entry["test_set"], entry["beside"], LABELS[entry["metric"]]),
            "" if entry["ours"] is None else f"{entry['ours']:.2f}",
            f"{entry['score']:.2f}",
            "" if entry["difference"] is None else f"{entry['difference']:+.2f}",
            *(entry["by"], entry["system"]),
        ]
        for entry in published
    ]
    return str(tabulate(table, heading, tablefmt=tablefmt, disable_numparse=True))


def _mean(result: Mapping[str, Any]) -> str:
    return f"{result['mean']:.2f}" + ("" if result["sd"] is None else f" ± {result['sd']:.2f}")


def _p_values(row: Mapping[str, Any], name: str) -> str:
    return ", ".join(f"{p:.3f}" for p in row["p"][name].values())


def _listed(entries: Sequence[object]) -> str:
    return ", ".join(map(str, entries))
