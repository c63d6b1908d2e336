"""The plain Python reference of greedy inference: the longest token from the left (Uzan et al. 2024)."""

from __future__ import annotations

from collections.abc import Iterable

from mt_scaffold.analysis.reference import Pair, base_symbols


def segment_greedily(
    word: str, merges: Iterable[Pair], scaffold: Iterable[str] = (), end_of_word: bool = True
) -> list[str]:
    """Segment a word: repeatedly take the most symbols that spell a normal token, or else one symbol.

    Symbols are as in ``analysis.reference``: only the last one of a word carries ``</w>``, so a token with it ends the
    word and one without it does not.

    >>> segment_greedily("lower", [("l", "o"), ("lo", "w"), ("w", "e"), ("e", "r</w>")])
    ['low', 'er</w>']
    """
    vocabulary = {left + right for left, right in merges} - set(scaffold)
    symbols, pieces = base_symbols(word, end_of_word), []
    while symbols:
        lengths = range(len(symbols), 1, -1)
        longest = next((length for length in lengths if "".join(symbols[:length]) in vocabulary), 1)
        pieces.append("".join(symbols[:longest]))
        symbols = symbols[longest:]
    return pieces
