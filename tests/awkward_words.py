"""Strategies of hypothesis for words that are awkward to segment, and how many examples of them are tried."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from segmenting import CHARACTERS, Mode

# Few letters, so that ties, overlaps and tokens of several derivations are common; the letters of "</w>", which a word
# may spell out; letters of one to four bytes.
ALPHABETS = ["a", "ab", "abc", "a</w>", "aä日😀"]
# The same for characters that stand for bytes: those that are not UTF-8, and "ä" and "日" in UTF-8.
BYTE_ALPHABETS = ["a", "ab", "a</w>", "\x00\x80\xff", "a\xc3\xa4", "\xe6\x97\xa5\xe6"]
LONGEST_SHORT_WORD = 48  # the core handles longer ones differently
# Further parts of words with these letters: the marker's text, whole characters and parts of them.
PARTS = {
    "<": ["a", "a</w>", "</w>", "</w", "w>", "<"],
    "\xa4": ["a", "\xc3\xa4", "\xc3\xa4\xc3\xa4", "\xa4", "\xc3"],
    "\x97": ["\xe6\x97\xa5", "\xe6\x97\xa5\xe6\x97\xa5", "\xe6\x97", "\x97\xa5\xe6", "\xa5"],
}


def examples(number: int) -> settings:
    """Return settings for this many examples, the same in each run; under the profile "soak", new ones, many more."""
    default, usual = settings().max_examples, settings.get_profile("default").max_examples
    return settings(max_examples=number * default // usual, derandomize=default == usual, deadline=None, database=None)


def alphabets(mode: Mode) -> list[str]:
    return BYTE_ALPHABETS if mode.byte_level else ALPHABETS


def words(alphabet: str, min_size: int = 1, max_size: int = 8) -> st.SearchStrategy[str]:
    letters = st.text(alphabet=alphabet, min_size=min_size, max_size=max_size)
    for letter, parts in PARTS.items():
        if letter in alphabet:
            of_parts = st.lists(st.sampled_from(parts), min_size=1, max_size=max(max_size // 2, 1)).map("".join)
            letters |= of_parts.filter(lambda word: len(word) >= min_size)
    return letters


def counts_in(mode: Mode) -> st.SearchStrategy[dict[str, int]]:
    return st.sampled_from(alphabets(mode)).flatmap(
        lambda alphabet: st.dictionaries(words(alphabet), st.integers(1, 9), min_size=1, max_size=6)
    )


word_counts = counts_in(CHARACTERS)
