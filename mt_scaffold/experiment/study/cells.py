"""One method, learned from one text with one N, and measured on that text, its held-out part and other text."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mt_scaffold.analysis.words import read_morphemes, with_typos
from mt_scaffold.codes import Codes
from mt_scaffold.experiment.study.configuration import StudiedMethod
from mt_scaffold.experiment.study.measures import Measures, Stability, measure, stability
from mt_scaffold.experiment.study.methods import Learned, learn_vocabulary, of_imported
from mt_scaffold.experiment.study.texts import EVEN, ODD, TRAIN, UNSEEN, CountedText

OTHER = "other"
_TYPO_SEED = 1


@dataclass(frozen=True)
class Cell:
    """The measurements of one method at one size on one text.

    merged: the number of merged tokens in the vocabulary. complete: false if the text was too small for N. below: the
    frequency below which tokens were marked. seconds_to_learn, seconds_to_apply: CPU time, to learn from counted words
    and to segment the distinct words of the training text. stability: None if a half of the text is too small for N, or
    halves were not asked for. on: ``train``, ``unseen`` (held out of the same text) and ``other`` text.
    """

    text: str
    method: str
    size: int
    merged: int
    complete: bool
    below: int | None
    seconds_to_learn: float
    seconds_to_apply: float
    stability: Stability | None
    on: dict[str, Measures]


def measure_cell(
    name: str,
    method_name: str,
    method: StudiedMethod,
    size: int,
    min_frequency: int,
    halves: bool,
    texts: Mapping[str, CountedText],
    morphemes: Path | None = None,
) -> Cell:
    """Learn and measure one cell.

    halves: whether to learn from each half as well, for ``stability``. texts: the text to learn from as ``train``, and
    optionally ``other``. morphemes: a file with words of the text, divided into morphemes.
    """
    text = texts[TRAIN]
    start = time.process_time()
    learned = learn_vocabulary(method, text.counts(TRAIN), size, min_frequency)
    seconds_to_learn = time.process_time() - start
    on, seconds = _measured(learned, texts, morphemes)
    agreement = None
    if halves:
        even, odd = (learn_vocabulary(method, text.counts(part), size, min_frequency) for part in (EVEN, ODD))
        agreement = stability(even, odd, text.words(UNSEEN)) if even.complete and odd.complete else None
    return Cell(
        text=name,
        method=method_name,
        size=size,
        merged=len(learned.merged),
        complete=learned.complete,
        below=learned.below,
        seconds_to_learn=seconds_to_learn,
        seconds_to_apply=seconds,
        stability=agreement,
        on=on,
    )


def measure_imported(
    name: str, imported: str, codes: Path, texts: Mapping[str, CountedText], morphemes: Path | None = None
) -> Cell:
    """Measure imported codes, as a cell at their N."""
    learned = of_imported(Codes.read(codes))
    on, seconds = _measured(learned, texts, morphemes)
    return Cell(name, imported, len(learned.merged), len(learned.merged), True, None, 0.0, seconds, None, on)


def _measured(
    learned: Learned, texts: Mapping[str, CountedText], morphemes: Path | None
) -> tuple[dict[str, Measures], float]:
    """Return the measures on each part, and the CPU seconds spent segmenting the training text."""
    gold = () if morphemes is None else read_morphemes(morphemes)
    text = texts[TRAIN]
    places = {TRAIN: (text, TRAIN), UNSEEN: (text, UNSEEN)}
    if OTHER in texts:
        places[OTHER] = texts[OTHER], UNSEEN
    on = {}
    seconds = 0.0
    for part, (counted, counted_part) in places.items():
        words = counted.words(counted_part)
        start = time.process_time()
        segmented = learned.segment(list(words.counts))
        if part == TRAIN:
            seconds = time.process_time() - start
        languages = counted.languages(counted_part) if counted.parallel else ()
        typos = None if part == TRAIN else with_typos(words.counts, _TYPO_SEED)
        on[part] = measure(learned, words, segmented, languages, gold if part != OTHER else (), typos)
    return on, seconds
