"""Checks for obvious faults of translations: their total length, empty ones, and repeated words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mt_scaffold.experiment.runtime.result_warnings import ResultWarning

# The limits beyond which a warning is due: the length of all translations by that of their references, in characters,
# and the share of translations with repetitions.
_SHORTEST, _LONGEST = 0.8, 1.25
_REPEATING = 0.01
# Words, or a part of a word, four or more times in a row; the limits on characters keep the search linear.
_REPETITION = re.compile(r"(?<!\S)(\S[^\n]{0,39}? )\1{3,}|(\S{1,20}?)\2{3,}")
_LETTER = re.compile(r"[^\W\d_]")
# Letters of scripts without spaces between words: Thai, Lao, Tibetan, Myanmar, Khmer, kana and Chinese characters.
_UNSPACED = re.compile(r"[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]")
# The fewest repetitions of a single letter that count: "sooo" is ordinary text.
_DRAWN_OUT = 8


def check_translations(hypotheses: Sequence[str], references: Sequence[str], about: str) -> list[ResultWarning]:
    """Return warnings about translations that are much longer or shorter than their references, empty, or repetitive.

    hypotheses, references: detokenised, one sentence each. about: the test set.

    >>> [str(each) for each in check_translations(["s to to to to"], ["the sea"], "test")]
    ['test (1.86 times as long)', "test (1 of 1, such as 'to to to to')"]
    >>> [str(each) for each in check_translations(["the sea", ""], ["the sea", "I"], "test")]
    ['test (1 of 2, line 2)']
    """
    warnings = []
    length, expected = (sum(map(len, side)) for side in (hypotheses, references))
    if expected and not _SHORTEST <= length / expected <= _LONGEST:
        warnings.append(ResultWarning("length", about, f"{length / expected:.2f} times as long"))
    empty = [
        number
        for number, (hypothesis, reference) in enumerate(zip(hypotheses, references, strict=True), 1)
        if not hypothesis.strip() and reference.strip()
    ]
    if empty:
        first = f"line {empty[0]:,}" if len(empty) == 1 else f"the first is line {empty[0]:,}"
        warnings.append(ResultWarning("empty", about, f"{len(empty):,} of {len(hypotheses):,}, {first}"))
    repeating = [
        found
        for hypothesis, reference in zip(hypotheses, references, strict=True)
        if (found := repetition(hypothesis)) and not repetition(reference)
    ]
    if repeating and len(repeating) >= _REPEATING * len(hypotheses):
        example = min(repeating, key=len)
        example = example if len(example) <= 40 else f"{example[:40]}…"
        figure = f"{len(repeating):,} of {len(hypotheses):,}, such as '{example}'"
        warnings.append(ResultWarning("repetition", about, figure))
    return warnings


def check_tokeniser(references: Sequence[str], tokeniser: str, about: str) -> list[ResultWarning]:
    """Return a warning if sacreBLEU's tokeniser would leave whole phrases of the references as single words.

    >>> [str(each) for each in check_tokeniser(["ฉันรักเธอ"], "13a", "test")], check_tokeniser(["我爱你"], "zh", "test")
    (['test (13a)'], [])
    """
    text = "".join(references)
    unspaced = 2 * len(_UNSPACED.findall(text)) > len(_LETTER.findall(text))
    return [ResultWarning("unspaced", about, tokeniser)] if unspaced and tokeniser in ("13a", "intl") else []


def repetition(sentence: str) -> str | None:
    """Return the part of a sentence that repeats something four or more times in a row, or None.

    >>> repetition("he wants to to to to go"), repetition("10000000 ..... sooo"), repetition("hahahaha")
    ('to to to to', None, 'hahahaha')
    """
    for found in _REPETITION.finditer(f"{sentence} "):
        if _LETTER.search(found[0]) and (found[1] or len(found[2]) > 1 or len(found[0]) >= _DRAWN_OUT):
            return found[0].strip()
    return None
