"""Strategies of hypothesis for words that are awkward to segment."""

from __future__ import annotations

from hypothesis import strategies as st

# Few letters, so that ties, overlaps and tokens of several derivations are common; the letters of "</w>", which a word
# may spell out; letters of one to four bytes.
ALPHABETS = ["a", "ab", "abc", "a</w>", "aä日😀"]
LONGEST_SHORT_WORD = 48  # the core handles longer ones differently


def words(alphabet: str, min_size: int = 1, max_size: int = 8) -> st.SearchStrategy[str]:
    letters = st.text(alphabet=alphabet, min_size=min_size, max_size=max_size)
    if "<" not in alphabet:
        return letters
    spelt_out = st.lists(st.sampled_from(["a", "a</w>", "</w>", "</w", "w>", "<"]), min_size=1, max_size=max_size // 2)
    return letters | spelt_out.map("".join).filter(lambda word: len(word) >= min_size)


word_counts = st.sampled_from(ALPHABETS).flatmap(
    lambda alphabet: st.dictionaries(words(alphabet), st.integers(1, 9), min_size=1, max_size=6)
)
