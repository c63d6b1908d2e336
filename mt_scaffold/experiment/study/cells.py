"""One method, learned from one text with one N: what it does to that text, to what was held out, and to other text."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from mt_scaffold.experiment.study.configuration import StudiedMethod
from mt_scaffold.experiment.study.measures import Measures, Stability, measure, stability
from mt_scaffold.experiment.study.methods import learn
from mt_scaffold.experiment.study.texts import EVEN, ODD, TRAIN, UNSEEN, CountedText

OTHER = "other"


@dataclass(frozen=True)
class Cell:
    """What was measured.

    merged: the merged tokens that the vocabulary has. complete: false where the text had too little for N. below: the
    frequency below which tokens were marked. seconds: of CPU time, to learn from counted words and to segment the
    distinct words of the training text. stability: none where half of the text has too little for N, or was
    not learned from.
    on: ``train``, ``unseen`` (held out of the same text) and ``other`` text.
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
) -> Cell:
    """Learn and measure one cell.

    halves: whether to learn from both halves too. texts: what is learned from as ``train``, and perhaps ``other``.
    """
    text = texts[TRAIN]
    start = time.process_time()
    learned = learn(method, text.counts(TRAIN), size, min_frequency)
    seconds_to_learn = time.process_time() - start
    parts = {TRAIN: text.words(TRAIN), UNSEEN: text.words(UNSEEN)}
    if OTHER in texts:
        parts[OTHER] = texts[OTHER].words(UNSEEN)
    on = {}
    seconds = 0.0
    for part, words in parts.items():
        start = time.process_time()
        segmented = learned.segment(list(words.counts))
        if part == TRAIN:
            seconds = time.process_time() - start
        on[part] = measure(learned, words, segmented)
    agreement = None
    if halves:
        even, odd = (learn(method, text.counts(part), size, min_frequency) for part in (EVEN, ODD))
        agreement = stability(even, odd, parts[UNSEEN]) if even.complete and odd.complete else None
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
