"""Warnings: limits of a result.

A step writes them into its report, as ``warnings``; ``compare`` collects them from all reports and shows them below its
first table. A new kind needs a line in KINDS, and a ResultWarning in the report of the step that detects it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mt_scaffold.corpus.files import PathLike, open_input
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.runtime.schema import Pattern, WrongValue, bounds, build

FEW_SEEDS, NOT_CONVERGED = "few-seeds", "not-converged"
FEW_SEGMENTS = "few-segments"
UNEQUAL_ROWS, UNEQUAL_RESAMPLING = "unequal-rows", "unequal-resampling"
# The kinds of warnings with their text, the gravest first, as they are shown.
KINDS = {
    "length": "Translations are much longer or shorter than the reference",
    "repetition": "Translations repeat themselves",
    "unspaced": "The tokeniser of BLEU takes phrases of a text without spaces for single words; choose char or "
    "flores200 (--bleu-tokeniser, score.bleu_tokeniser), or read chrF",
    "empty": "Translations are empty where the reference is not",
    "preprocessed": "Text looks tokenised or segmented already, and was tokenised again",
    "preprocessed-documents": "Documents look tokenised or segmented already, and bits per byte are of that text",
    "test-in-train": "Test sentences occur in the training text",
    NOT_CONVERGED: "The last validation is the best, so more updates would have given better models",
    FEW_SEEDS: "Fewer than three seeds, which cannot show how far trainings differ by chance",
    FEW_SEGMENTS: "A test rests on fewer than 30 segments, and is rough; with fewer than 6, there is none",
    "tokenised-reference": "References were tokenised already; scores are of their detokenised form, and not "
    "comparable with scores from elsewhere",
    "unknown-target": "The target language is not known, so tokenised BLEU with compounds split or in lower case is of "
    "the words given: not the published figure where they were normalised",
    UNEQUAL_ROWS: "Models have more rows of embeddings than their baseline's, or fewer, by over 1 %",
    UNEQUAL_RESAMPLING: "A model with dropout or sampling spreads its probability over many segmentations, of which "
    "bits per byte of the reference count one; do not compare them between systems whose resampling differs",
    "left-out": "References with <unk> in the dictionary of any system are left out of their bits per byte, for all "
    "systems",
    "too-long": "Sentences that are longer than a model takes are left out of bits per byte of the reference, for all "
    "systems",
    "unknown": "A test set has symbols that are not in the dictionary, and become <unk>",
    "few-tokens": "Fewer tokens were learned than asked for, as no other pair in the text is frequent enough",
    "unlike-moses": "sacremoses lacks rules that Moses' tokeniser has for a language, so that BLEU of its words is not "
    "the published figure",
    "not-asked": "Tasks are not compared",
    "limited": "Not all questions of the tasks were asked: a try, no result",
    "shortened": "Prompts did not fit into a model, and were read without their beginning",
    "language": "The tokeniser has no rules for a language and uses those of English",
    "markup": "Lines with a tag that the markup does not name are kept as sentences",
}
# Those that put a result in doubt, because the text scored is hardly a translation, or not ordinary text.
GRAVE = frozenset({"length", "repetition", "unspaced", "preprocessed", "preprocessed-documents"})
# Those that limit conclusions about a language, which a comparison on generated text does not draw.
_OF_REAL_TEXT = frozenset(
    {
        *(NOT_CONVERGED, FEW_SEEDS, FEW_SEGMENTS, UNEQUAL_ROWS, UNEQUAL_RESAMPLING),
        *("test-in-train", "language", "unknown-target", "unlike-moses"),
    }
)
# The most items that a line of warnings lists.
_SHOWN = 6


@dataclass(frozen=True)
class ResultWarning:
    """One limit of a result.

    kind: one of KINDS. about: its subject, such as a test set, codes, or a system with its seed; in the report of a
    training or of its scores, without the training itself. figure: its extent, such as ``31 of 1,000``.
    """

    kind: str = field(metadata=bounds(pattern=Pattern("|".join(KINDS), "a kind of warning")))
    about: str
    figure: str = ""

    def __str__(self) -> str:
        return f"{self.about} ({self.figure})" if self.about and self.figure else self.about or self.figure


def lines_of(warnings: Iterable[ResultWarning]) -> list[str]:
    """Return warnings as sentences, one for each kind, with all that it is about.

    >>> lines_of([ResultWarning("unknown", "test.en", "3 of 90 subwords"), ResultWarning("unknown", "test.de")])
    ['A test set has symbols that are not in the dictionary, and become <unk>: test.en (3 of 90 subwords); test.de.']
    """
    by_kind: dict[str, dict[str, None]] = {kind: {} for kind in KINDS}
    for warning in warnings:
        by_kind[warning.kind][str(warning)] = None
    return [f"{KINDS[kind]}: {_listed([*about])}." for kind, about in by_kind.items() if about]


def of_generated_text(warnings: Iterable[ResultWarning]) -> list[ResultWarning]:
    """Return the warnings that also apply to generated text."""
    return [warning for warning in warnings if warning.kind not in _OF_REAL_TEXT]


def limits(lines: Sequence[str]) -> str:
    """Return the heading of the limits of a result.

    >>> limits(["a", "b"]), limits(["a"])
    ('2 things limit this result', '1 thing limits this result')
    """
    return "1 thing limits this result" if len(lines) == 1 else f"{len(lines)} things limit this result"


def _listed(about: Sequence[str]) -> str:
    more = f"; and {len(about) - _SHOWN} more" if len(about) > _SHOWN else ""
    return "; ".join(about[:_SHOWN]) + more


def print_warnings(warnings: Iterable[ResultWarning]) -> None:
    """Print the warnings of a step to stderr."""
    for line in lines_of(warnings):
        print(f"mt-scaffold: warning: {line}", file=sys.stderr)


def read_warnings(path: PathLike, about: str = "") -> list[ResultWarning]:
    """Return the warnings in the report of any step.

    about: prefix of the ``about`` of each warning. Raises MTScaffoldError if the file is not a step report.
    """
    with open_input(path) as stream:
        content = stream.read()
    try:
        report = json.loads(content)
        entries = report.get("warnings", []) if isinstance(report, dict) else None
        warnings: list[ResultWarning] = build(list[ResultWarning], entries, "warnings")
    except (ValueError, RecursionError, WrongValue) as error:
        problem = str(error) if isinstance(error, WrongValue) else f"not JSON: {error}"
        raise MTScaffoldError(f"{Path(path)}: {problem}; run the step that writes this file again") from error
    return [ResultWarning(each.kind, ", ".join(filter(None, [about, each.about])), each.figure) for each in warnings]
