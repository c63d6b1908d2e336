"""Translations → scores: sacreBLEU on detokenised text, and beside it the tokenised BLEU of older papers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.provenance import sha256, versions
from mt_scaffold.files import PathLike, open_input, write_text

# The scores that may stand beside those of other papers, and those that may not.
COMPARABLE = {"bleu": "BLEU", "chrf": "chrF"}
NOT_COMPARABLE = {"tokenised_bleu": "tokenised BLEU", "tokenised_bleu_split": "tokenised BLEU, compounds split"}
LABELS = COMPARABLE | NOT_COMPARABLE


def score(
    hypothesis: PathLike,
    reference: PathLike,
    output: PathLike,
    hypothesis_words: PathLike | None = None,
    reference_words: PathLike | None = None,
    about: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Score a translation and write the scores as JSON to ``output``; returns what is written.

    ``hypothesis`` is detokenised text, ``reference`` the untouched reference, a sentence a line: these give ``bleu``
    and ``chrf`` (sacreBLEU, each with its signature; scores from 0 to 100). With ``hypothesis_words`` and
    ``reference_words`` (tokenised, subwords joined) come ``tokenised_bleu`` and ``tokenised_bleu_split`` (the latter
    with the compound split of Vaswani et al. 2017 and Ott et al. 2018), marked as not comparable: they hang on the
    tokeniser. ``about`` (system, seed, test set, configuration ...) is written along, with versions and digests.

    Raises MTScaffoldError where the files differ in length, are empty, not UTF-8 or missing.
    """
    from sacrebleu.metrics import BLEU, CHRF

    hypotheses, references = _read_parallel(hypothesis, reference)
    metrics = {
        "bleu": _result(BLEU(), hypotheses, references),
        "chrf": _result(CHRF(), hypotheses, references),
    }
    files = {"hypothesis": hypothesis, "reference": reference}
    if hypothesis_words is not None and reference_words is not None:
        words, right_words = _read_parallel(hypothesis_words, reference_words)
        # force: sacreBLEU warns of tokenised text, which here is the point.
        metrics["tokenised_bleu"] = _result(BLEU(tokenize="none", force=True), words, right_words)
        words, right_words = [[split_compounds(line) for line in side] for side in (words, right_words)]
        metrics["tokenised_bleu_split"] = _result(BLEU(tokenize="none", force=True), words, right_words)
        files |= {"hypothesis_words": hypothesis_words, "reference_words": reference_words}
    for name, result in metrics.items():
        result["comparable"] = name in COMPARABLE
    folder = Path(output).resolve().parent
    result = {
        **(about or {}),
        "lines": len(hypotheses),
        "metrics": metrics,
        # Relative to this result, so that an experiment's folder can be moved.
        "files": {
            name: {"path": os.path.relpath(Path(path).resolve(), folder), "sha256": sha256(path)}
            for name, path in files.items()
        },
        "versions": versions(),
    }
    write_text(output, json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    return result


def split_compounds(line: str) -> str:
    """The compound split before tokenised BLEU: a hyphen between other characters becomes a word of its own.

    >>> split_compounds("rich-text format")
    'rich ##AT##-##AT## text format'
    """
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", line)


def read_lines(path: PathLike) -> list[str]:
    """The lines of a UTF-8 text; a line ends at LF and nowhere else, and a CR before it is no part of it."""
    with open_input(path) as stream:
        content = stream.read()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise MTScaffoldError(f"{path}:{line}: not UTF-8 (byte {error.start + 1} of the file)") from error
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _read_parallel(hypothesis: PathLike, reference: PathLike) -> tuple[list[str], list[str]]:
    hypotheses, references = read_lines(hypothesis), read_lines(reference)
    if len(hypotheses) != len(references):
        raise MTScaffoldError(
            f"{hypothesis} has {len(hypotheses)} lines, {reference} has {len(references)}: they must be parallel"
        )
    if not hypotheses:
        raise MTScaffoldError(f"{hypothesis}: empty, nothing to score")
    return hypotheses, references


def _result(metric: Any, hypotheses: list[str], references: list[str]) -> dict[str, Any]:
    found = metric.corpus_score(hypotheses, [references])
    return {"score": found.score, "text": str(found), "signature": str(metric.get_signature())}
