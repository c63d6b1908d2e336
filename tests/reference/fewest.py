"""The plain Python reference of inference with the fewest tokens (Schmidt et al. 2024)."""

from __future__ import annotations

from collections.abc import Iterable

from mt_scaffold.analysis.reference import Pair, base_symbols
from mt_scaffold.corpus.text import END_OF_WORD


def segment_into_fewest(
    word: str, merges: Iterable[Pair], scaffold: Iterable[str] = (), end_of_word: bool = True
) -> list[str]:
    """Segment a word into the fewest normal tokens and symbols; ties go to the longest first token, then the next.

    Symbols are as in ``analysis.reference``: only the last one of a word carries ``</w>``, so a token with it ends the
    word and one without it does not.

    >>> segment_into_fewest("abcde", [("a", "b"), ("ab", "c"), ("c", "d"), ("cd", "e</w>"), ("d", "e</w>")])
    ['abc', 'de</w>']
    """
    vocabulary = {left + right for left, right in merges} - set(scaffold)
    symbols = base_symbols(word, end_of_word)
    best: list[list[str]] = [[]]  # the segmentations of what follows each symbol, the end of the word first
    for begin in reversed(range(len(symbols))):
        options = [[symbols[begin], *best[-1]]]
        for end in range(begin + 2, len(symbols) + 1):
            token = "".join(symbols[begin:end])
            # In a text that spells out "</w>", letters inside a word look like the end of one.
            ends_word = end_of_word and token.endswith(END_OF_WORD)
            if token in vocabulary and ends_word == (end_of_word and end == len(symbols)):
                options.append([token, *best[len(symbols) - end]])
        best.append(min(options, key=lambda pieces: (len(pieces), [-len(piece) for piece in pieces])))
    return best[-1]
