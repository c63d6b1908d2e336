"""The measure of each task: how scores are read, checked against each other, and resampled."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, NamedTuple

from mt_scaffold.corpus.files import PathLike, open_input
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.evaluation.bits_per_byte import LanguageModelScores
from mt_scaffold.experiment.evaluation.comparison import TestSetSize, untranslated
from mt_scaffold.experiment.evaluation.lm_eval import HarnessScores, first_metric
from mt_scaffold.experiment.evaluation.losses.loss_split import LossSplit
from mt_scaffold.experiment.evaluation.metrics import (
    ANSWERS,
    METRICS,
    MODEL_METRICS,
    REFERENCE_BITS,
    TASK_METRICS,
    Metrics,
    SumRatio,
    is_external,
    metric_of_sums,
    without_python,
)
from mt_scaffold.experiment.evaluation.score import Metric, Scores
from mt_scaffold.experiment.evaluation.significance import Resampled, draw_segments, resample, resample_documents
from mt_scaffold.experiment.runtime.provenance import sha256
from mt_scaffold.experiment.runtime.result_warnings import ResultWarning
from mt_scaffold.experiment.runtime.results import read_result
from mt_scaffold.segment.draw import RESAMPLINGS


class Labelled(NamedTuple):
    """A file of one training of a system.

    group: of the systems that are compared with each other; may be empty. system: None for the name in the file.
    losses: the file of its ``LossSplit`` on the references of the test set, which adds their bits per byte.
    """

    group: str
    system: str | None
    path: PathLike
    losses: PathLike | None = None


@dataclass(frozen=True)
class Scored:
    """A score file, with its names in the comparison.

    values: the score of each of its metrics. too_long: the numbers, from 0, of the sentences that are longer than the
    model takes, and have no bits per byte.
    """

    path: Path
    group: str
    system: str
    scores: Any
    values: Mapping[str, float]
    too_long: Collection[int] = ()

    @property
    def test_set(self) -> str:
        """The test set."""
        return str(self.scores.test_set)

    @property
    def seed(self) -> int:
        """The seed of the training."""
        return int(self.scores.seed)


# The trainings of one system on one test set, by seed.
Runs = dict[int, Scored]


class Measure(ABC):
    """The figures by which the systems of a task are compared."""

    metrics: ClassVar[Metrics]
    # The name of a test set's segments.
    units: ClassVar[str] = "sentences"

    @abstractmethod
    def read(self, several: Iterable[Labelled]) -> tuple[list[Scored], list[ResultWarning]]:
        """Read score files: the scores on segments that all compared systems have, and warnings about those left out.

        Raises MTScaffoldError if one is malformed or incomplete.
        """

    def signatures(self, several: Sequence[Scored]) -> dict[str, str]:
        """Return the signature of each metric; raise MTScaffoldError if those of one test set differ."""
        return {}

    @abstractmethod
    def check_alike(self, several: Sequence[Scored]) -> None:
        """Raise MTScaffoldError if scores on one test set are not of the same segments."""

    @abstractmethod
    def outputs(self, scored: Scored) -> object:
        """Return the outputs of a training, or a digest of them: two trainings with equal ones are one."""

    def without(self, scored: Scored, lines: Collection[int]) -> Scored | None:
        """Return a score without some segments, by their numbers from 0; None if that is not possible."""
        return None

    @abstractmethod
    def segments(self, scored: Scored, name: str) -> int:
        """Return the number of segments that a metric of a score is computed on."""

    @abstractmethod
    def resample(self, name: str, systems: Mapping[str, Runs], samples: int) -> dict[str, list[Resampled]]:
        """Return the metric of every training, by system, on the same resamples of one test set."""

    def has_statistics(self, name: str, runs: Runs) -> bool:
        """Return whether a metric of these trainings can be tested; an error reports statistics that are missing."""
        return self.metrics[name].tested

    def is_tested(self, name: str, system: Runs, baseline: Runs) -> bool:
        """Return whether a difference between two systems in a metric is tested."""
        return self.has_statistics(name, system) and self.has_statistics(name, baseline)

    def size(self, scored: Scored) -> TestSetSize | None:
        """Return the size of the test set in the tokens of a system, if it differs between systems."""
        return None


class TranslationScores(Measure):
    """Translations, by the metrics of their text."""

    metrics = METRICS

    def read(self, several: Iterable[Labelled]) -> tuple[list[Scored], list[ResultWarning]]:
        return self._of_same_segments([*map(self._read, several)])

    def _read(self, labelled: Labelled) -> Scored:
        path = Path(str(labelled.path))
        scores = read_result(Scores, path)
        if unknown := [name for name in scores.metrics if name not in METRICS]:
            raise MTScaffoldError(f"{path}: holds an unknown metric, {unknown[0]}; score again")
        for name in ("hypothesis", "reference"):
            if name not in scores.files:
                raise MTScaffoldError(f"{path}: does not name the {name} file; score again")
        too_long: Collection[int] = ()
        if labelled.losses is not None:
            scores, too_long = _with_reference_bits(scores, labelled.losses)
        values = {name: metric.score for name, metric in scores.metrics.items()}
        system = labelled.system or scores.system
        return Scored(path, labelled.group, system, scores, values, too_long)

    def signatures(self, several: Sequence[Scored]) -> dict[str, str]:
        found: dict[str, dict[str, tuple[str, Scored]]] = {}
        for scored in several:
            for name, metric in scored.scores.metrics.items():
                by_test_set = found.setdefault(name, {})
                signature, other = by_test_set.setdefault(scored.test_set, (metric.signature, scored))
                if without_python(signature) != without_python(metric.signature):
                    raise MTScaffoldError(
                        f"{other.path} and {scored.path}: {METRICS[name].label} was computed differently ({signature} "
                        f"and {metric.signature}); score both again"
                    )
        shown = {}
        for name in METRICS.in_order(found):
            different = {signature for signature, _ in found[name].values()}
            for test_set, (signature, _) in found[name].items():
                shown[METRICS[name].label if len(different) == 1 else f"{METRICS[name].label}, {test_set}"] = signature
        return shown

    def check_alike(self, several: Sequence[Scored]) -> None:
        first, *others = several
        digests = [first.scores.files[name].sha256 for name in first.scores.references]
        for other in others:
            if [other.scores.files[name].sha256 for name in other.scores.references] != digests:
                raise MTScaffoldError(
                    f"{first.path} and {other.path} were scored against different references; score both against the "
                    "same"
                )
        read = dict[str, Scored]()
        for scored in several:
            for name in _also_read(scored):
                other = read.setdefault(name, scored)
                if other.scores.files[name].sha256 != scored.scores.files[name].sha256:
                    what = "source" if name == "source" else "reference words"
                    raise MTScaffoldError(
                        f"{other.path} and {scored.path} were scored with different {what}, on which a metric of both "
                        "depends; score both with the same"
                    )
            _check_unchanged(scored)

    def outputs(self, scored: Scored) -> object:
        return scored.scores.files["hypothesis"].sha256

    def _of_same_segments(self, several: Sequence[Scored]) -> tuple[list[Scored], list[ResultWarning]]:
        tables: dict[tuple[str, str], list[Scored]] = {}
        for scored in several:
            tables.setdefault((scored.group, scored.test_set), []).append(scored)
        without, warnings = dict[Path, Scored](), []
        for (_, test_set), all_scored in tables.items():
            those = [scored for scored in all_scored if REFERENCE_BITS in scored.values]
            rows = [_rows(scored, REFERENCE_BITS) for scored in those]
            lacking = {number for own in rows for number, row in enumerate(own) if row == _LEFT_OUT}
            if rows and any(_all_left_out(scored) for scored in all_scored):
                lacking = set(range(len(rows[0])))
            if lacking:
                self.check_alike(those)
                too_long = {number for scored in those for number in scored.too_long}
                for kind, numbers in (("left-out", lacking - too_long), ("too-long", too_long)):
                    if numbers:
                        warnings.append(_left_out(kind, test_set, len(numbers), len(rows[0])))
                without |= {scored.path: _without(scored, lacking) for scored in those}
        return [without.get(scored.path, scored) for scored in several], warnings

    def without(self, scored: Scored, lines: Collection[int]) -> Scored | None:
        metrics = {}
        for name in _OF_SENTENCES & scored.scores.metrics.keys():
            rows = scored.scores.metrics[name].segments
            if rows is None or len(rows) != scored.scores.lines:
                continue
            kept = [row for number, row in enumerate(rows) if number not in lines]
            if len(kept) < 2:
                return None
            sums = [math.fsum(each) for each in zip(*(map(float, row.split()) for row in kept), strict=True)]
            found = float(metric_of_sums(name)._compute_score_from_stats(sums).score)
            metrics[name] = replace(scored.scores.metrics[name], score=found, segments=kept)
        if not metrics:
            return None
        scores = replace(scored.scores, metrics=metrics, lines=scored.scores.lines - len(lines))
        return replace(scored, scores=scores, values={name: metric.score for name, metric in metrics.items()})

    def has_statistics(self, name: str, runs: Runs) -> bool:
        # Earlier versions stored none of metrics of words.
        stored = [each.scores.metrics[name].segments is not None for each in runs.values() if name in each.values]
        return all(stored) or self.metrics[name].input not in ("words", "moses")

    def is_tested(self, name: str, system: Runs, baseline: Runs) -> bool:
        if self.metrics[name].input == "losses":
            return resampled_alike(*(next(iter(runs.values())) for runs in (system, baseline)))
        tested = super().is_tested(name, system, baseline)
        return tested and not untranslated(name, [_means(system), _means(baseline)])

    def segments(self, scored: Scored, name: str) -> int:
        return len(_statistics(scored, name))

    def resample(self, name: str, systems: Mapping[str, Runs], samples: int) -> dict[str, list[Resampled]]:
        first = next(iter(next(iter(systems.values())).values()))
        metric, drawn = metric_of_sums(name), draw_segments(self.segments(first, name), samples)
        found: dict[str, list[Resampled]] = {}
        for system, trained in systems.items():
            for scored in trained.values():
                own = scored.scores.metrics[name]
                resampled = resample(metric, _statistics(scored, name), drawn)
                if not math.isclose(resampled.score, own.score, rel_tol=1e-6, abs_tol=1e-6):
                    raise MTScaffoldError(
                        f"{scored.path}: {METRICS[name].label} was {own.score:.4f} when this was written and is "
                        f"{resampled.score:.4f} now (another sacreBLEU?); score again"
                    )
                found.setdefault(system, []).append(resampled)
        return found


def _means(trained: Runs) -> dict[str, float]:
    """Return the mean of each metric that all trainings of a system have."""
    common = set[str].intersection(*(set(scored.values) for scored in trained.values()))
    return {name: fmean(scored.values[name] for scored in trained.values()) for name in common}


def resampled_alike(one: Scored, other: Scored) -> bool:
    """Return whether the targets of two trainings were resampled alike, by the configurations stored with the scores.

    True if one of them is unknown.
    """
    known = []
    for scored in (one, other):
        settings = (scored.scores.config or {}).get("systems", {}).get(scored.scores.system)
        if settings is not None:
            known.append([settings.get(f"{kind}_target", settings.get(kind, 0.0)) or 0.0 for kind in RESAMPLINGS])
    return len(known) < 2 or known[0] == known[1]


def _with_reference_bits(scores: Scores, losses: PathLike) -> tuple[Scores, Collection[int]]:
    """Return scores with the bits per byte of the first reference, and the numbers of the sentences that are too long.

    References with ``<unk>`` and sentences that are too long are left out; if none is left, there is no such score, and
    none in comparisons with this system.
    """
    split = read_result(LossSplit, losses)
    bits, lines = split.bits_of_each(), scores.lines
    if split.unit != "sentence" or split.unknown is None or not len(bits) == len(split.sizes) == lines:
        raise MTScaffoldError(f"{losses}: not the losses of {lines} references; run the step that writes them again")
    if split.data_sha256 != scores.files["reference"].sha256:
        raise MTScaffoldError(
            f"{losses}: of other text than {scores.files['reference'].path}; run the step losses again"
        )
    too_long = split.too_long or []
    lacking = {*split.unknown, *too_long}
    rows = [(0.0, 0) if number in lacking else row for number, row in enumerate(zip(bits, split.sizes, strict=True))]
    sums = [math.fsum(own) for own in zip(*rows, strict=True)]
    if not sums[1]:
        warnings = [*scores.warnings, _left_out("left-out", scores.test_set, lines, lines)]
        return replace(scores, warnings=warnings), too_long
    kind, value = METRICS[REFERENCE_BITS], SumRatio()._compute_score_from_stats(sums).score
    segments = [f"{own:.12g} {size}" for own, size in rows]
    text = f"{kind.label} = {value:.4f}"
    metrics = scores.metrics | {REFERENCE_BITS: Metric(value, text, split.signature, kind.comparable, segments)}
    return replace(scores, metrics=metrics), too_long


def _left_out(kind: str, test_set: str, references: int, lines: int) -> ResultWarning:
    return ResultWarning(kind, test_set, f"{references:,} of {lines:,}")


def _also_read(scored: Scored) -> list[str]:
    """Return the names of the files, besides hypothesis and references, that the metrics of a score file depend on."""
    words = any(METRICS[name].input == "words" for name in scored.values)
    source = any(map(is_external, scored.values))
    return [
        name
        for name in scored.scores.files
        if (words and name.startswith("reference_words")) or (source and name == "source")
    ]


def _check_unchanged(scored: Scored) -> None:
    """Raise MTScaffoldError if a scored file has changed since.

    One that is missing, or was a pipe, is fine, as the statistics suffice.
    """
    for name in ("hypothesis", *scored.scores.references):
        file = scored.scores.files[name]
        path = scored.path.resolve().parent / file.path
        if path.is_file() and sha256(path) != file.sha256:
            raise MTScaffoldError(f"{path}: has changed since {scored.path} was written; score again")


def _all_left_out(scored: Scored) -> bool:
    """Return whether every reference contains ``<unk>`` for this system."""
    warnings: list[ResultWarning] = scored.scores.warnings
    return REFERENCE_BITS not in scored.values and any(each.kind == "left-out" for each in warnings)


# The metrics that are also computed on the sentences far from the training text.
_OF_SENTENCES = {"bleu", "chrf"}
# The bits and bytes of a reference with <unk>.
_LEFT_OUT = [0.0, 0.0]


def _without(scored: Scored, lacking: Collection[int]) -> Scored:
    """Return a score without the bits of some references; without that metric if no reference is left."""
    rows = [_LEFT_OUT if number in lacking else row for number, row in enumerate(_rows(scored, REFERENCE_BITS))]
    metrics, values = dict(scored.scores.metrics), dict(scored.values)
    own = metrics.pop(REFERENCE_BITS)
    del values[REFERENCE_BITS]
    bits, size = map(math.fsum, zip(*rows, strict=True))
    if size:
        values[REFERENCE_BITS] = SumRatio()._compute_score_from_stats([bits, size]).score
        segments = [f"{bits:.12g} {size:.0f}" for bits, size in rows]
        metrics[REFERENCE_BITS] = replace(own, score=values[REFERENCE_BITS], segments=segments)
    return replace(scored, scores=replace(scored.scores, metrics=metrics), values=values)


def _statistics(scored: Scored, name: str) -> list[list[float]]:
    """Return the sufficient statistics of each segment in a metric, without the segments that are left out."""
    rows = _rows(scored, name)
    return [row for row in rows if row != _LEFT_OUT] if name == REFERENCE_BITS else rows


def _rows(scored: Scored, name: str) -> list[list[float]]:
    rows = scored.scores.metrics[name].segments
    if rows is None or len(rows) != scored.scores.lines:
        raise MTScaffoldError(f"{scored.path}: {METRICS[name].label} lacks the statistics of its segments; score again")
    try:
        found = [list(map(float, row.split())) for row in rows]
    except ValueError as error:
        raise MTScaffoldError(f"{scored.path}: {METRICS[name].label}: segments: {error}; score again") from error
    if len({len(row) for row in found}) > 1:
        raise MTScaffoldError(
            f"{scored.path}: {METRICS[name].label}: segments: not as many figures in each; score again"
        )
    return found


class BitsPerByte(Measure):
    """Language models, by their bits per byte of the raw documents."""

    metrics = MODEL_METRICS
    units = "documents"

    def read(self, several: Iterable[Labelled]) -> tuple[list[Scored], list[ResultWarning]]:
        return [*map(self._read, several)], []

    def _read(self, labelled: Labelled) -> Scored:
        path = Path(str(labelled.path))
        scores = read_result(LanguageModelScores, path)
        if len(scores.by_document.bits) != len(scores.by_document.bytes) or not scores.by_document.bits:
            raise MTScaffoldError(f"{path}: not as many bits as documents; evaluate again")
        values = {name: getattr(scores, name) for name in MODEL_METRICS}
        return Scored(path, labelled.group, labelled.system or scores.system, scores, values)

    def signatures(self, several: Sequence[Scored]) -> dict[str, str]:
        label = MODEL_METRICS["bits_per_byte"].label
        return {f"{label}, {each.test_set}": each.scores.signature for each in several}

    def check_alike(self, several: Sequence[Scored]) -> None:
        first, *others = several
        for other in others:
            if other.scores.data_sha256 != first.scores.data_sha256:
                raise MTScaffoldError(
                    f"{first.path} and {other.path} are scores of different documents; evaluate both on the same"
                )
            if other.scores.signature != first.scores.signature:
                raise MTScaffoldError(
                    f"{first.path} and {other.path} were computed differently ({first.scores.signature} and "
                    f"{other.scores.signature}); evaluate both again with the same --context-window, on text that both "
                    "tokenizers preserve"
                )
            if other.scores.by_document.bytes != first.scores.by_document.bytes:
                raise MTScaffoldError(
                    f"{first.path} and {other.path} are scores of different documents, or a tokenizer changes them; "
                    "evaluate both on text that both tokenizers preserve"
                )

    def outputs(self, scored: Scored) -> object:
        return scored.scores.by_document.bits

    def segments(self, scored: Scored, name: str) -> int:
        return len(scored.scores.by_document.bytes)

    def resample(self, name: str, systems: Mapping[str, Runs], samples: int) -> dict[str, list[Resampled]]:
        import numpy

        first = next(iter(next(iter(systems.values())).values()))
        sizes = numpy.array(first.scores.by_document.bytes, numpy.float64)
        flat = numpy.array([bits for runs in systems.values() for bits in _bits(runs)], numpy.float64)
        resampled = iter(resample_documents(flat, sizes, samples))
        return {system: [next(resampled) for _ in runs] for system, runs in systems.items()}

    def size(self, scored: Scored) -> TestSetSize | None:
        scores = scored.scores
        return TestSetSize(scores.n_vocab, scores.tokens, scores.bytes, scores.documents, scores.bytes_per_token)


def _bits(runs: Runs) -> list[list[float]]:
    return [scored.scores.by_document.bits for scored in runs.values()]


@dataclass(frozen=True)
class _Answers:
    """The answers of a training to a task.

    percent: of each question, by metric: the mean over checkpoints and numbers of solved questions. asked: digests of
    the questions, by the number of solved ones. signature: must be equal in answers that are compared.
    """

    test_set: str
    seed: int
    synthetic: bool
    percent: Mapping[str, Sequence[float]]
    asked: Mapping[int, str]
    signature: str


class TaskAnswers(Measure):
    """Language models, by the answers to the tasks of lm-evaluation-harness.

    A test set is a task in the metric by which it is compared, such as ``piqa acc_norm``.
    """

    metrics = TASK_METRICS
    units = "questions"

    def read(self, several: Iterable[Labelled]) -> tuple[list[Scored], list[ResultWarning]]:
        import numpy

        files = [(each, read_result(HarnessScores, each.path)) for each in several]
        tasks = dict.fromkeys(each.task for _, scores in files for each in scores.questions)
        lacking: dict[str, str] = {}
        for labelled, scores in files:
            missing = [task for task in tasks if task not in lacking and not scores.asked(task)]
            lacking |= dict.fromkeys(missing, f"not in {labelled.path}")
        found = []
        for task in (task for task in tasks if task not in lacking):
            answers = [self._answers(labelled, scores, task) for labelled, scores in files]
            common = [
                metric
                for metric in answers[0].percent
                if all(metric in own.percent and min(own.percent[metric]) >= 0 for own in answers)
                and all(max(own.percent[metric]) <= 100 for own in answers)
            ]
            if not common:
                lacking[task] = "no metric that lies between 0 and 1 for every question"
                continue
            first = first_metric(common)
            names = {metric: ANSWERS if metric == first else f"{ANSWERS}:{metric}" for metric in common}
            for (labelled, scores), own in zip(files, answers, strict=True):
                percent = {name: own.percent[metric] for metric, name in names.items()}
                named = replace(own, test_set=f"{task} {first}", percent=percent)
                values = {name: float(numpy.mean(each)) for name, each in percent.items()}
                system = labelled.system or scores.system
                found.append(Scored(Path(str(labelled.path)), labelled.group, system, named, values))
        if not found:
            why = "; ".join(f"{task}: {reason}" for task, reason in lacking.items()) or "none has any"
            raise MTScaffoldError(f"compare: the files have no task in common ({why}); run lm-eval again")
        warnings = [ResultWarning("not-asked", task, reason) for task, reason in lacking.items()]
        limits = dict.fromkeys(scores.limit for _, scores in files if scores.limit is not None)
        warnings += [ResultWarning("limited", "", f"{limit:,} questions of each") for limit in limits]
        cut: dict[str, int] = {}
        for labelled, scores in files:
            for asked, count in scores.shortened.items():
                if (task := asked.rpartition(", ")[0]) in lacking or task not in tasks:
                    continue
                name = ", ".join(filter(None, (labelled.group, labelled.system or scores.system, asked)))
                cut[name] = cut.get(name, 0) + count
        return found, warnings + [ResultWarning("shortened", name, f"{count:,}") for name, count in cut.items()]

    def _answers(self, labelled: Labelled, scores: HarnessScores, task: str) -> _Answers:
        import numpy

        asked = {each.num_fewshot: each for each in scores.asked(task)}
        percent: dict[str, list[float]] = {}
        for metric in next(iter(asked.values())).answers:
            if not all(metric in each.answers for each in asked.values()):
                continue
            try:
                values = [numpy.array(each.values(metric), numpy.float64).mean(axis=0) for each in asked.values()]
            except MTScaffoldError as error:
                raise MTScaffoldError(f"{labelled.path}: {error}") from error
            if len({len(each) for each in values}) > 1:
                raise MTScaffoldError(f"{labelled.path}: {task}: not as many questions with each number of solved ones")
            percent[metric] = (100 * numpy.mean(values, axis=0)).tolist()
        shots = " and ".join(f"{number}-shot" for number in sorted(asked))
        limit = "" if scores.limit is None else f"|limit:{scores.limit}"
        signature = (
            f"lm_eval:{scores.versions.get('lm_eval', 'unknown')}|version:{scores.task_versions.get(task, 'unknown')}|"
            f"mean of {shots}|checkpoints:{len(scores.checkpoints)}{limit}"
        )
        digests = {number: each.sha256 for number, each in asked.items()}
        return _Answers(task, scores.seed, scores.synthetic, percent, digests, signature)

    def signatures(self, several: Sequence[Scored]) -> dict[str, str]:
        return {each.test_set: each.scores.signature for each in several}

    def check_alike(self, several: Sequence[Scored]) -> None:
        first, *others = several
        for other in others:
            # The digest covers the prompts, and so the solved questions before each one.
            if other.scores.asked != first.scores.asked:
                raise MTScaffoldError(
                    f"{first.path} and {other.path}: {first.test_set}: different questions, or different numbers of "
                    "solved ones before them; run lm-eval alike for both"
                )
            if other.scores.signature != first.scores.signature:
                raise MTScaffoldError(
                    f"{first.path} and {other.path} were computed differently ({first.scores.signature} and "
                    f"{other.scores.signature}); run lm-eval alike for both"
                )

    def outputs(self, scored: Scored) -> object:
        # Two models may well answer a task alike.
        return scored.path

    def segments(self, scored: Scored, name: str) -> int:
        return len(scored.scores.percent[name])

    def resample(self, name: str, systems: Mapping[str, Runs], samples: int) -> dict[str, list[Resampled]]:
        import numpy

        flat = numpy.array([each.scores.percent[name] for runs in systems.values() for each in runs.values()])
        # A mean is the ratio of a sum to the number of questions.
        resampled = iter(resample_documents(flat, numpy.ones(flat.shape[1]), samples))
        return {system: [next(resampled) for _ in runs] for system, runs in systems.items()}


def measure_of(scores: Iterable[Labelled]) -> Measure:
    """Return the measure of score files, inferred from the first; raise MTScaffoldError if it cannot be read."""
    for labelled in scores:
        keys = keys_of(labelled.path)
        if "task_versions" in keys:
            return TaskAnswers()
        return BitsPerByte() if "bits_per_byte" in keys else TranslationScores()
    return TranslationScores()


def keys_of(path: PathLike) -> list[str]:
    """Return the keys of a JSON object in a file, or none if it holds anything else; MTScaffoldError if unreadable."""
    with open_input(path) as stream:
        try:
            found = json.loads(stream.read())
        except ValueError:
            return []
    return list(found) if isinstance(found, dict) else []
