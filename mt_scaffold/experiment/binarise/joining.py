"""Subwords → words, whatever the method that made them."""

from __future__ import annotations

from mt_scaffold.corpus.text import SEPARATOR, join_subwords


def join(line: str, separator: str = SEPARATOR, word_start: str | None = None) -> str:
    """Join the subwords of a line into words.

    separator: what every subword but a word's last ends in. word_start: what the first subword of each word begins with
    instead, where none ends in a separator (``Segmentation.word_start``).

    >>> join("Schaff@@ ell@@ ös@@ ung .")
    'Schaffellösung .'
    >>> join("▁Schaff ellösung ▁ .", word_start="▁")
    'Schaffellösung .'
    """
    if word_start is None:
        return join_subwords(line, separator)
    return " ".join(word for word in line.replace(" ", "").split(word_start) if word)
