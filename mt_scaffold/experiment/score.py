"""Translations → scores: sacreBLEU on detokenised text, and the tokenised BLEU of older papers."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import Config
from mt_scaffold.experiment.provenance import sha256, versions
from mt_scaffold.experiment.results import write_result
from mt_scaffold.files import PathLike
from mt_scaffold.text import check_parallel, read_lines

# The scores that can be compared with those of other papers, and those that cannot.
COMPARABLE = {"bleu": "BLEU", "chrf": "chrF"}
NOT_COMPARABLE = {"tokenised_bleu": "tokenised BLEU", "tokenised_bleu_split": "tokenised BLEU, compounds split"}
LABELS = COMPARABLE | NOT_COMPARABLE


@dataclass(frozen=True)
class Metric:
    """One score, from 0 to 100; comparable: whether it can be compared with scores from elsewhere."""

    score: float
    text: str
    signature: str
    comparable: bool


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


def score(
    hypothesis: PathLike,
    reference: PathLike,
    output: PathLike,
    hypothesis_words: PathLike | None = None,
    reference_words: PathLike | None = None,
    *,
    system: str | None = None,
    test_set: str | None = None,
    seed: int = 1,
    synthetic: bool = False,
    config: Config | None = None,
) -> Scores:
    """Score a translation, write the scores as JSON to ``output`` and return them.

    ``hypothesis`` is detokenised text, ``reference`` the untouched reference, one sentence per line: these give
    ``bleu`` and ``chrf`` (sacreBLEU, each with its signature). ``hypothesis_words`` and ``reference_words`` (tokenised,
    subwords joined) add ``tokenised_bleu`` and ``tokenised_bleu_split`` (the latter with the compound split of Vaswani
    et al. 2017 and Ott et al. 2018), marked as not comparable: they depend on the tokeniser.
    ``system``, ``test_set`` (default: the file names of hypothesis and reference), ``seed`` and ``config`` are written
    too, with versions and digests.

    Raises MTScaffoldError where the files differ in length, are empty, not UTF-8 or missing; UsageError where only one
    side is given in words.
    """
    from sacrebleu.metrics import BLEU, CHRF

    if (hypothesis_words is None) != (reference_words is None):
        raise UsageError("score: give both --hypothesis-words and --reference-words, or neither")
    hypotheses, references = _read_parallel(hypothesis, reference)
    metrics = {
        "bleu": _metric("bleu", BLEU(), hypotheses, references),
        "chrf": _metric("chrf", CHRF(), hypotheses, references),
    }
    files = {"hypothesis": hypothesis, "reference": reference}
    if hypothesis_words is not None and reference_words is not None:
        words, right_words = _read_parallel(hypothesis_words, reference_words)
        # force: sacreBLEU would warn of tokenised text, which is intended here.
        bleu = BLEU(tokenize="none", force=True)
        metrics["tokenised_bleu"] = _metric("tokenised_bleu", bleu, words, right_words)
        words, right_words = [[split_compounds(line) for line in side] for side in (words, right_words)]
        bleu = BLEU(tokenize="none", force=True)
        metrics["tokenised_bleu_split"] = _metric("tokenised_bleu_split", bleu, words, right_words)
        files |= {"hypothesis_words": hypothesis_words, "reference_words": reference_words}
    folder = Path(output).resolve().parent
    scores = Scores(
        system=system or Path(hypothesis).name,
        test_set=test_set or Path(reference).name,
        seed=seed,
        synthetic=synthetic or (config is not None and config.synthetic),
        config=None if config is None else config.to_dict(),
        lines=len(hypotheses),
        metrics=metrics,
        files={
            name: ScoredFile(os.path.relpath(Path(path).resolve(), folder), sha256(path))
            for name, path in files.items()
        },
        versions=versions(),
    )
    write_result(output, scores)
    return scores


def split_compounds(line: str) -> str:
    """Return a line with its compounds split for tokenised BLEU: a hyphen between other characters becomes a word.

    >>> split_compounds("rich-text format")
    'rich ##AT##-##AT## text format'
    """
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", line)


def _read_parallel(hypothesis: PathLike, reference: PathLike) -> tuple[list[str], list[str]]:
    hypotheses, references = read_lines(hypothesis), read_lines(reference)
    check_parallel(hypothesis, len(hypotheses), reference, len(references))
    if not hypotheses:
        raise MTScaffoldError(f"{hypothesis}: empty, nothing to score; translate the test set first")
    return hypotheses, references


def _metric(name: str, metric: Any, hypotheses: list[str], references: list[str]) -> Metric:
    found = metric.corpus_score(hypotheses, [references])
    return Metric(found.score, str(found), str(metric.get_signature()), name in COMPARABLE)
