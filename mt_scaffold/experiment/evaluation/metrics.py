"""The metrics: the input of each, and sacreBLEU's implementation.

To add one, write its line in METRICS, a branch of ``sacrebleu_metric`` and, so that an experiment can request it, its
name in ``configuration.MetricName``. Those of other programs are read in ``external.py``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mt_scaffold.experiment.configuration import Score
from mt_scaffold.experiment.configuration.data import Tokenise
from mt_scaffold.experiment.data.moses import Tokeniser
from mt_scaffold.experiment.runtime.bleu import CHOOSE_ANOTHER, bleu_with

# In this order: detokenised text; the experiment's words; plain Moses words of the text; text with its source; the
# probabilities of the references; and, of a language model, the documents, their tokens, and the questions of tasks.
Input = Literal["text", "words", "moses", "source", "losses", "documents", "tokens", "questions"]


@dataclass(frozen=True)
class MetricKind:
    """The properties of a metric that do not depend on a score.

    comparable: whether its scores can be compared with scores from elsewhere. digits: decimal places in a table.
    range: of its scores. limit: if no system is better than this, none translates, and no difference is tested. For
    chrF that is about half of what unrelated sentences have; an empty translation has a TER of 100.
    """

    label: str
    input: Input
    comparable: bool = True
    lower_is_better: bool = False
    digits: int = 2
    range: tuple[float, float] = (0.0, 100.0)
    limit: float | None = None

    @property
    def heading(self) -> str:
        """The label in a table: with ``↓`` if lower is better, ``*`` if not comparable with scores from elsewhere."""
        return self.label + (" ↓" if self.lower_is_better else "") + ("" if self.comparable else " *")

    @property
    def tested(self) -> bool:
        """Whether differences between systems are tested: not in metrics on a model's tokens."""
        return self.input != "tokens"

    def is_hopeless(self, score: float) -> bool:
        """Return whether a system with this mean score does not translate."""
        return self.limit is not None and (score >= self.limit if self.lower_is_better else score < self.limit)

    @property
    def named(self) -> bool:
        """Whether it is requested by name; the others are computed whenever their input is given."""
        return self.input not in ("source", "losses")


_FROM_0, _ANY = (0.0, math.inf), (-math.inf, math.inf)
REFERENCE_BITS = "reference_bits_per_byte"
# Metrics of other programs are called higher:NAME or lower:NAME, by what is better. Earlier versions computed comet or,
# with several models, comet:NAME.
HIGHER, LOWER, _COMET = "higher", "lower", "comet"
# The metric by which a task is compared; its others are called answers:METRIC.
ANSWERS = "answers"


class Metrics(dict[str, MetricKind]):
    """The metrics by name, any metric of another program, and any metric of a task.

    >>> METRICS["lower:metricx-24"].heading, "lower:metricx-24" in METRICS
    ('metricx-24 ↓', True)
    """

    def __missing__(self, name: str) -> MetricKind:
        kind, _, model = name.partition(":")
        if kind not in (HIGHER, LOWER, _COMET, ANSWERS) or not model:
            raise KeyError(name)
        if kind == ANSWERS:
            return MetricKind(f"{model}, %", "questions")
        label, digits = (f"COMET {model}", 2) if kind == _COMET else (model, 4)
        return MetricKind(label, "source", lower_is_better=kind == LOWER, digits=digits, range=_ANY)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and is_external(name) and name[-1] != ":")

    def in_order(self, names: Collection[str]) -> list[str]:
        """Return those of ``names`` that are metrics, in the order of the tables."""
        found = []
        for known in self:
            found += [known] if known in names else []
            found += sorted(name for name in names if name.startswith(f"{known}:"))
        return found + sorted(name for name in names if name.startswith((f"{HIGHER}:", f"{LOWER}:")))


def is_external(name: str) -> bool:
    """Return whether a metric is a mean of scores that another program gave the segments."""
    return name == _COMET or name.startswith((f"{HIGHER}:", f"{LOWER}:", f"{_COMET}:"))


def without_python(signature: str) -> str:
    """Return a signature without the version of Python, which may differ between compared scores.

    >>> without_python("Python3.11.7|Comet2.2.7|fp32|wmt22-comet-da|r1")
    'Comet2.2.7|fp32|wmt22-comet-da|r1'
    """
    return re.sub(r"^Python[\d.]+\|", "", signature)


METRICS = Metrics(
    {
        "bleu": MetricKind("BLEU", "text", limit=1.0),
        "chrf": MetricKind("chrF", "text", limit=10.0),
        "chrf++": MetricKind("chrF++", "text", limit=8.0),
        "ter": MetricKind("TER", "text", lower_is_better=True, range=_FROM_0, limit=100.0),
        "spbleu": MetricKind("spBLEU", "text", limit=1.0),
        "comet": MetricKind("COMET", "source", range=_ANY),
        "tokenised_bleu": MetricKind("tokenised BLEU", "words", comparable=False),
        "tokenised_bleu_split": MetricKind("tokenised BLEU, compounds split", "moses", comparable=False),
        "tokenised_bleu_lc": MetricKind("tokenised BLEU, lowercased", "moses", comparable=False),
        REFERENCE_BITS: MetricKind(
            "bits per byte of the reference", "losses", comparable=False, lower_is_better=True, digits=4, range=_FROM_0
        ),
    }
)
# The metrics of language models.
MODEL_METRICS = Metrics(
    {
        "bits_per_byte": MetricKind("bits per byte", "documents", lower_is_better=True, digits=4, range=_FROM_0),
        "perplexity_per_token": MetricKind("perplexity per token", "tokens", comparable=False, range=_FROM_0),
    }
)
# The metrics of language models' answers to tasks.
TASK_METRICS = Metrics({ANSWERS: MetricKind("percent of the questions", "questions")})
# The metrics of all tasks, the main metric of each task first.
KINDS = Metrics(METRICS | MODEL_METRICS | TASK_METRICS)
# TER takes four times as long as all of these together, and spBLEU downloads a model.
DEFAULT_METRICS = tuple(Score().metrics)


@dataclass(frozen=True)
class SumRatio:
    """A ratio of two sums over the segments (a mean, or bits per byte), with the method that resampling calls."""

    score: float = 0.0

    def _compute_score_from_stats(self, sums: Sequence[float]) -> SumRatio:
        total, size = sums
        return SumRatio(total / size)


def sacrebleu_metric(name: str, tokeniser: str = "13a") -> Any:
    """Return sacreBLEU's metric for ``name``; for means and bits, a ratio of sums over the segments.

    tokeniser: sacreBLEU's name of the one for ``bleu``. Raises MTScaffoldError if its package, or spBLEU's, is not
    installed.
    """
    from sacrebleu.metrics import CHRF, TER

    if name == "bleu":
        return bleu_with(name, tokeniser, CHOOSE_ANOTHER)
    if name == "spbleu":
        return bleu_with(name, "flores200", "or leave this metric out")
    if is_external(name) or name == REFERENCE_BITS:
        return SumRatio()
    makers = {"chrf": CHRF, "ter": TER}
    if name in makers:
        return makers[name]()
    if name == "chrf++":
        return CHRF(word_order=2)
    return bleu_of_words(lowercase=name == "tokenised_bleu_lc")


def bleu_of_words(lowercase: bool = False) -> Any:
    """Return sacreBLEU's BLEU without a tokeniser, for text in words and for sums of any BLEU's statistics."""
    from sacrebleu.metrics import BLEU

    # force: sacreBLEU would warn about tokenised text, which is intended here.
    return BLEU(tokenize="none", force=True, lowercase=lowercase)


def metric_of_sums(name: str) -> Any:
    """Return an object that computes ``name`` from the sums of its segments' statistics, without the tokeniser."""
    return bleu_of_words() if "bleu" in name and not is_external(name) else sacrebleu_metric(name)


def moses_words(lines: Iterable[str], language: str | None) -> list[str]:
    """Return the plain Moses words of each line: no ``-a``, nothing normalised, escaped as Moses does.

    Without a ``language``, the lines must already be Moses words, made with or without ``-a``: what ``-a`` split
    is joined again.

    >>> moses_words(["rich @-@ text format"], None)
    ['rich-text format']
    """
    if language is None:
        return [line.replace(" @-@ ", "-") for line in lines]
    choices = Tokenise(normalise_punctuation=False, remove_nonprinting=False, aggressive_dash_splitting=False)
    tokenise = Tokeniser(language, choices)
    return [tokenise(line) for line in lines]


def split_compounds(line: str) -> str:
    """Return plain Moses words with their compounds split: a hyphen between two characters becomes a word.

    The regular expression is that of fairseq's ``compound_split_bleu.sh``. It must not see words made with ``-a``, as
    it would match inside ``@-@``.

    >>> split_compounds("rich-text format")
    'rich ##AT##-##AT## text format'
    """
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", line)
