"""Translations → scores: sacreBLEU's metrics, those of other programs, and the tokenised BLEU of older papers."""

from __future__ import annotations

import os
import re
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, get_args

from mt_scaffold.corpus.files import PathLike, read_file, refuse_overwriting, shown, without_compression
from mt_scaffold.corpus.text import check_parallel, lines_in
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import BleuTokeniser, Config, load_config
from mt_scaffold.experiment.configuration import bleu_tokeniser as tokeniser_of_language
from mt_scaffold.experiment.configuration.data import SIDES
from mt_scaffold.experiment.data.preprocessed import refuse_markup
from mt_scaffold.experiment.data.tokenise import UNLIKE_MOSES, detokenise, has_rules, warnings_of
from mt_scaffold.experiment.evaluation.external import read_segments
from mt_scaffold.experiment.evaluation.metrics import (
    DEFAULT_METRICS,
    HIGHER,
    LOWER,
    METRICS,
    REFERENCE_BITS,
    moses_words,
    sacrebleu_metric,
    split_compounds,
)
from mt_scaffold.experiment.evaluation.translation_checks import check_tokeniser, check_translations
from mt_scaffold.experiment.runtime.provenance import digest_of, versions
from mt_scaffold.experiment.runtime.result_warnings import ResultWarning, print_warnings
from mt_scaffold.experiment.runtime.results import write_result
from mt_scaffold.options import refuse_text
from mt_scaffold.options_from_signature import Option, OutputFile
from mt_scaffold.tables import decimal


@dataclass(frozen=True)
class Metric:
    """One score, for most metrics from 0 to 100; comparable: whether it can be compared with scores from elsewhere.

    segments: for a metric in which systems are tested, the sufficient statistics of each segment, numbers separated by
    spaces whose sums give the score: sacreBLEU's, in its order; a figure and 1 if the score is a mean; or bits and
    bytes, both 0 for a reference with ``<unk>`` (docs/scores.md).
    """

    score: float
    text: str
    signature: str
    comparable: bool
    segments: list[str] | None = field(default=None, metadata={"omit_none": True})


@dataclass(frozen=True)
class ScoredFile:
    """A scored file; its path is relative to the score file, so that an experiment's folder can be moved."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Scores:
    """The scores of one system, trained with one seed, on one test set: metrics and files by name."""

    system: str
    test_set: str
    seed: int
    synthetic: bool
    config: dict[str, Any] | None = field(metadata={"omit_none": True})
    lines: int
    metrics: dict[str, Metric]
    files: dict[str, ScoredFile]
    versions: dict[str, str]
    warnings: list[ResultWarning] = field(default_factory=list)

    @property
    def references(self) -> list[str]:
        """The names of the references among the files."""
        return [name for name in self.files if re.fullmatch(r"reference(_\d+)?", name)]

    def as_text(self) -> str:
        """Return a line for each metric."""
        lines = ["synthetic data"] if self.synthetic else []
        for name, metric in self.metrics.items():
            kind = METRICS[name]
            remark = "" if metric.comparable else "  (not comparable with scores from elsewhere)"
            value = decimal(metric.score, kind.digits)
            lines.append(f"{kind.heading.removesuffix(' *')}: {value}  {metric.signature}{remark}")
        return "\n".join(lines)


_NAMED = [name for name, kind in METRICS.items() if kind.named]


@dataclass(frozen=True)
class Texts:
    """The files to score, one sentence per line.

    hypothesis: translations, detokenised
    reference: the untouched reference, or several
    hypothesis_words: translations in words, for tokenised BLEU
    reference_words: each reference in words, for tokenised BLEU
    source: the raw source text, which the scores of --segments depend on
    """

    hypothesis: Annotated[PathLike, Option("FILE")]
    reference: Annotated[Sequence[PathLike], Option("FILE")]
    hypothesis_words: Annotated[PathLike | None, Option("FILE")] = None
    reference_words: Annotated[Sequence[PathLike], Option("FILE")] = ()
    source: Annotated[PathLike | None, Option("FILE")] = None


@dataclass(frozen=True)
class Scoring:
    """The metrics to compute, and their settings.

    language: the target language, for the tokeniser of bleu, and for tokenised_bleu_split and tokenised_bleu_lc
        (default: the suffix of the reference's name, as in test.de)
    segments: files with the score of each translation in a metric of another program: a number a line, or the JSON of
        comet-score --to_json or MetricX
    metric: the name of the metric of each of these files
    signature: the signature of each: the model and the versions that computed it; compare refuses different ones
    higher_is_better: whether more is better in each of them, yes or no (default: yes)
    """

    language: Annotated[str | None, Option("CODE")] = None
    bleu_tokeniser: Annotated[
        str | None,
        Option(
            "NAME",
            help=f"sacreBLEU's tokeniser for bleu: {', '.join(get_args(BleuTokeniser))} (default: the one that "
            "sacreBLEU chooses for the language: zh, ja-mecab or ko-mecab, and 13a for any other)",
            choices=get_args(BleuTokeniser),
        ),
    ] = None
    metrics: Annotated[
        Sequence[str] | None,
        Option(
            "NAME",
            help=f"the metrics to compute: {', '.join(_NAMED)} (default: bleu, chrf, chrf++, and tokenised_bleu and "
            "tokenised_bleu_split if words or language are given)",
        ),
    ] = None
    segments: Annotated[Sequence[PathLike], Option("FILE")] = ()
    metric: Annotated[Sequence[str], Option("NAME")] = ()
    signature: Annotated[Sequence[str], Option("TEXT")] = ()
    higher_is_better: Annotated[Sequence[str], Option(choices=("yes", "no"))] = ()


@dataclass(frozen=True)
class Origin:
    """The system and test set that a translation belongs to.

    system: the system, for compare (default: the hypothesis file's name)
    test_set: the test set (default: the reference file's name)
    seed: the training's random seed
    synthetic: label the scores as those of synthetic data
    """

    system: Annotated[str | None, Option("NAME")] = None
    test_set: Annotated[str | None, Option("NAME")] = None
    seed: int = 1
    synthetic: bool = False


def score(
    texts: Texts,
    output: OutputFile,
    settings: Scoring = Scoring(),
    origin: Origin = Origin(),
    config: Annotated[Config | PathLike | None, Option("FILE")] = None,
) -> Scores:
    """Score a translation, write the scores as JSON to ``output`` and return them.

    output: the scores, as JSON
    config: take target language, tokeniser and metrics from this experiment configuration, and write it into the
        result

    The hypothesis, detokenised text, and the untouched references give sacreBLEU's ``bleu``, ``chrf``, ``chrf++``,
    ``ter`` and ``spbleu``, each with its signature. ``tokenised_bleu`` is BLEU on the experiment's words of both.

    ``tokenised_bleu_split`` is the tokenised BLEU of Vaswani et al. 2017 and Ott et al. 2018: hypothesis and reference
    text in plain Moses words of the language (no ``-a``, nothing normalised, whatever the experiment does), compounds
    split, as in fairseq's ``compound_split_bleu.sh``. ``tokenised_bleu_lc`` is BLEU of those words in lower case,
    without the split, as papers on IWSLT'14 and Multi30k report. Without a language, both use the words given, with
    the splits of ``-a`` undone, which equals the published figure only if nothing was normalised; a warning and
    ``words:joined`` in their signature mark this. These three metrics are marked as not comparable.

    A reference or source that the configuration declares as tokenised already (``tokenise: none``) is first detokenised
    like the hypothesis; the signatures and a warning mark this. There are also warnings about translations that are
    empty, much longer or shorter than the reference, or repetitive.

    The mean of each of ``settings.segments`` is a metric ``higher:NAME`` or ``lower:NAME``, by what is better.

    Raises MTScaffoldError if the files differ in length, are empty, not UTF-8 or missing, or if a metric cannot be
    computed here; UsageError for an unknown metric, or one whose input is not given.
    """
    refuse_text(reference=texts.reference, reference_words=texts.reference_words)
    refuse_text(metrics=settings.metrics, segments=settings.segments, metric=settings.metric)
    if config is not None and not isinstance(config, Config):
        config = load_config(config)
    if (texts.hypothesis_words is None) != (not texts.reference_words):
        raise UsageError("score: give both --hypothesis-words and --reference-words, or neither")
    if config is not None:
        settings = replace(
            settings,
            language=settings.language or config.languages.target,
            bleu_tokeniser=settings.bleu_tokeniser or config.score.bleu_tokeniser,
            metrics=config.score.metrics if settings.metrics is None else settings.metrics,
        )
    if not texts.reference:
        raise UsageError("score: give at least one reference")
    references, words = _named("reference", texts.reference), _named("reference_words", texts.reference_words)
    suffix = _suffix(references["reference"])
    tokeniser = settings.bleu_tokeniser or tokeniser_of_language(settings.language or suffix)
    language = settings.language or (suffix if has_rules(suffix) else None)
    files = {"hypothesis": texts.hypothesis, **references}
    files |= {"hypothesis_words": texts.hypothesis_words, **words} if texts.hypothesis_words is not None else {}
    files |= {"source": texts.source} if settings.segments and texts.source is not None else {}
    refuse_overwriting([output], files.values())
    # Each is read once: a pipe has nothing left the second time.
    content = {name: read_file(path) for name, path in files.items()}
    lines = _lines(files, content)
    named = origin.test_set or _test_set(references["reference"], config)
    if config is None or config.tokenise_for(named, "target").check:
        for name, path in files.items():
            refuse_markup(lines[name], shown(path))
    detokenised = detokenised_sides(config, named)
    for side, names in (("target", [*references]), ("source", ["source"])):
        for name in names if side in detokenised else ():
            if config is not None and name in lines:
                lines[name] = detokenise(lines[name], getattr(config.languages, side))
    inputs = {"text": [lines[name] for name in ("hypothesis", *references)]}
    if words:
        inputs["words"] = [lines[name] for name in ("hypothesis_words", *words)]
    if language is not None or "words" in inputs:
        inputs["moses"] = inputs["words" if language is None else "text"]
    chosen = _chosen(settings.metrics, inputs)
    warnings = []
    if any(METRICS[name].input == "moses" for name in chosen):
        warnings += _warnings_of(language)
        inputs["moses"] = [moses_words(side, language) for side in inputs["moses"]]
    found = {name: _metric(name, inputs[METRICS[name].input], language, tokeniser) for name in chosen}
    warnings += check_translations(lines["hypothesis"], lines["reference"], named)
    warnings += check_tokeniser(lines["reference"], tokeniser, named) if "bleu" in found else []
    if "target" in detokenised:
        warnings.append(ResultWarning("tokenised-reference", named))
        for name in found.keys() - {"tokenised_bleu"}:
            found[name] = replace(found[name], signature=f"{found[name].signature}|reference:detokenised")
    print_warnings(warnings)
    found |= _external(settings, lines["hypothesis"])
    folder = Path(output).resolve().parent
    scores = Scores(
        system=origin.system or Path(texts.hypothesis).name,
        test_set=named,
        seed=origin.seed,
        synthetic=origin.synthetic or (config is not None and config.synthetic),
        config=None if config is None else config.to_dict(),
        lines=len(lines["hypothesis"]),
        metrics={name: found[name] for name in METRICS.in_order(found)},
        files={
            name: ScoredFile(os.path.relpath(Path(path).resolve(), folder), digest_of([content[name]]))
            for name, path in files.items()
        },
        versions=versions(),
        warnings=warnings,
    )
    write_result(output, scores)
    return scores


def _test_set(reference: PathLike, config: Config | None) -> str:
    """Return the name of a reference's test set: the configuration's, or else the file's.

    Raises UsageError if the configuration prepares its test sets differently and none has the name of the file.
    """
    name = Path(reference).name
    if config is None or name in config.test_sets:
        return name
    stem = Path(without_compression(name)).stem
    if stem not in config.test_sets and any(
        test.tokenise is not None for test in (config.data.archives.tests if config.data.archives else {}).values()
    ):
        raise UsageError(f"score: {reference}: which test set is it? give --test-set {'|'.join(config.test_sets)}")
    return stem if stem in config.test_sets else name


def _suffix(reference: PathLike) -> str:
    """Return the suffix of a file name, ``de`` for ``test.de`` or ``test.de.gz``."""
    return Path(without_compression(reference)).suffix.removeprefix(".")


def detokenised_sides(config: Config | None, test_set: str) -> list[str]:
    """Return the sides of a test set that came tokenised and are detokenised for scoring."""
    return [] if config is None else [side for side in SIDES if config.tokenise_for(test_set, side).none]


def _warnings_of(language: str | None) -> list[ResultWarning]:
    if language in UNLIKE_MOSES:
        return [ResultWarning("unlike-moses", language)]
    return [ResultWarning("unknown-target", "give --language")] if language is None else warnings_of(language)


def _named(name: str, paths: Sequence[PathLike]) -> dict[str, PathLike]:
    """Return the paths by name: ``reference``, then ``reference_2`` and so on."""
    return {name if number == 1 else f"{name}_{number}": path for number, path in enumerate(paths, 1)}


def _lines(files: Mapping[str, PathLike], content: Mapping[str, bytes]) -> dict[str, list[str]]:
    texts = {name: lines_in(content[name], shown(path)) for name, path in files.items()}
    hypotheses = texts["hypothesis"]
    for name, path in files.items():
        check_parallel(files["hypothesis"], len(hypotheses), path, len(texts[name]))
    if not hypotheses:
        raise MTScaffoldError(f"{files['hypothesis']}: empty, nothing to score; translate the test set first")
    return texts


def _chosen(metrics: Sequence[str] | None, given: Collection[str]) -> list[str]:
    """Return the metrics to compute; ``given``: the available kinds of input."""
    if metrics is None:
        return [name for name in DEFAULT_METRICS if METRICS[name].input in given]
    for name in metrics:
        if name not in METRICS or not METRICS[name].named:
            hint = {
                "comet": "; run it by itself, and give its scores with --segments",
                REFERENCE_BITS: "; only an experiment computes it",
            }.get(name, "")
            known = ", ".join(known for known, kind in METRICS.items() if kind.named)
            raise UsageError(f"score: unknown metric {name}{hint} (known: {known})")
        if METRICS[name].input not in given:
            needs = "--hypothesis-words and --reference-words"
            needs = f"--language, or {needs}" if METRICS[name].input == "moses" else needs
            raise UsageError(f"score: {name} needs {needs}; give them, or leave this metric out")
    return list(dict.fromkeys(metrics))


def _metric(name: str, sides: Sequence[list[str]], language: str | None, tokeniser: str) -> Metric:
    """Score the first of ``sides``, the hypotheses, against the others, each a reference.

    tokeniser: sacreBLEU's for ``bleu``.
    """
    kind = METRICS[name]
    rules = "sacremoses" if language in UNLIKE_MOSES else "moses"
    added = "" if kind.input != "moses" else f"|words:{rules}.{language}" if language else "|words:joined"
    if name == "tokenised_bleu_split":
        sides = [[split_compounds(line) for line in side] for side in sides]
        added += "|compounds:split"
    hypotheses, *references = sides
    metric = sacrebleu_metric(name, tokeniser)
    rows = metric._extract_corpus_statistics(hypotheses, references)
    found = metric._aggregate_and_compute(rows)
    segments = [" ".join(f"{value:.12g}" for value in row) for row in rows] if kind.tested else None
    return Metric(found.score, str(found), f"{metric.get_signature()}{added}", kind.comparable, segments)


def _external(settings: Scoring, hypotheses: Sequence[str]) -> dict[str, Metric]:
    """Return the metrics that other programs have computed: the mean of each one's scores."""
    several = (settings.segments, settings.metric, settings.signature)
    directions = [*settings.higher_is_better] or ["yes"] * len(settings.metric)
    if len({*map(len, (*several, directions))}) > 1:
        raise UsageError("score: give as many --metric and --signature (and --higher-is-better) as --segments")
    found = {}
    for path, metric, signature, direction in zip(*several, directions, strict=True):
        name = f"{HIGHER if direction == 'yes' else LOWER}:{metric}"
        if ":" in metric or not metric or metric in METRICS or name in found:
            raise UsageError(f"score: --metric {metric}: the name of another metric, or not a name; choose another")
        scores, kind = read_segments(path, hypotheses), METRICS[name]
        mean = statistics.fmean(scores)
        # As for the other metrics: the figure, and what the sum is divided by.
        segments = [f"{score:.10g} 1" for score in scores]
        text = f"{kind.label} = {decimal(mean, kind.digits)}"
        found[name] = Metric(mean, text, signature, kind.comparable, segments)
    return found
