"""The words of gpt2, cl100k and o200k as patterns of Oniguruma, the regular expressions of tokenizers.

Which characters are letters, numbers and marks depends on the version of Unicode, which in Oniguruma is not the core's.
The patterns therefore spell out the core's classes, so that both cut every text alike.
"""

from __future__ import annotations

import itertools
from functools import cache

from mt_scaffold.corpus.pretokenise import Pretokeniser

# PATTERNS of corpus/pretokenise.py, adapted: in Oniguruma {1,3}+ is not a possessive quantifier, and $ ends a line.
# <L>, <N>, <A>: letters, numbers, both; <U>, <W>: the upper-case and lower-case classes of o200k.
_TEMPLATES = {
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?[<L>]++| ?[<N>]++| ?[^\s<A>]++|\s+(?!\S)|\s",
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n<A>]?+[<L>]++|[<N>]{1,3}| ?[^\s<A>]++[\r\n]*+|\s++\z|\s*[\r\n]"
    r"|\s+(?!\S)|\s",
    "o200k": r"[^\r\n<A>]?[<U>]*[<W>]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n<A>]?[<U>]+[<W>]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[<N>]{1,3}| ?[^\s<A>]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
NAMES = tuple(_TEMPLATES)


def pattern(name: str) -> str:
    """Return the pattern whose matches are the words of a pre-tokeniser: "gpt2", "cl100k" or "o200k"."""
    text = _TEMPLATES[name]
    for class_name, ranges in _classes(cased=name == "o200k").items():
        text = text.replace(f"<{class_name}>", ranges)
    return text


def digit() -> str:
    """Return the pattern of one number character, which is a word with ``--split-digits``."""
    return f"[{_classes(cased=False)['N']}]"


@cache
def _classes(cased: bool) -> dict[str, str]:
    """Return the classes of the templates as ranges, found by which characters the core puts into one word."""
    letters, numbers = _together("gpt2", "a{}"), _together("gpt2", "1{}")
    classes = {"L": letters, "N": numbers, "A": letters | numbers}
    if cased:
        # "a" shares its word with a lower-case or caseless letter or a mark after it, "Ba" with any letter before it
        # that is not lower-case; marks belong to both classes.
        small = _together("o200k", "a{}")
        classes["W"] = small
        classes["U"] = (letters & _together("o200k", "{}Ba")) | (small - letters)
    return {name: _ranges(characters) for name, characters in classes.items()}


@cache
def _together(name: str, probe: str) -> frozenset[str]:
    """Return the characters that form one word of a pre-tokeniser with their surroundings in a probe.

    Every probe is a line of one document; a line end is never in a word with a letter or a number.
    """
    before, after = probe.split("{}")
    characters = (chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    words = Pretokeniser(name).split(before + f"{after}\n{before}".join(characters) + after)
    first, last, shortest = before.encode(), after.encode(), len(probe) - len("{}")
    return frozenset(
        word.decode()[len(before)]
        for word in words
        if len(word) > shortest and word.startswith(first) and word.endswith(last)
    )


def _ranges(characters: frozenset[str]) -> str:
    codes = sorted(map(ord, characters))
    text = ""
    for _, group in itertools.groupby(enumerate(codes), key=lambda numbered: numbered[1] - numbered[0]):
        run = [code for _, code in group]
        text += rf"\x{{{run[0]:X}}}" + (rf"-\x{{{run[-1]:X}}}" if len(run) > 1 else "")
    return text
