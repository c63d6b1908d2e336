"""The split of the loss by frequency: sums against computations by hand."""

from collections import Counter

import numpy as np
import pytest

from mt_scaffold.experiment.evaluation.losses import loss_split
from mt_scaffold.experiment.evaluation.losses.loss_split import (
    ACROSS,
    END,
    FREQUENT,
    OTHER,
    Part,
    TokenLosses,
    WordFrequencies,
    split_by_token,
    split_by_word,
    words_of_tokens,
)


def test_the_bits_of_a_word_are_those_of_its_tokens() -> None:
    """For any tokens, each bit is in one class, and a token across two words belongs to neither."""
    # "the cat the": the | _c at | _the </s>, and the same with a token across the first two words.
    texts = [b"the", b" cat", b" the"]
    whole = words_of_tokens(np.array([3, 2, 2, 4, 0]), texts)
    crossing = words_of_tokens(np.array([2, 3, 2, 4, 0]), texts)
    assert whole.of_token.tolist() == [0, 1, 1, 2, -1] and crossing.of_token.tolist() == [0, -2, 1, 2, -1]
    bits = [np.array([1.0, 2.0, 4.0, 8.0, 16.0]), np.array([1.0, 2.0, 4.0, 8.0, 16.0])]
    found = split_by_word(bits, [whole, crossing], lambda word: word.decode().strip(), ["cat", "dog", "the"])
    assert list(found) == ["cat", "the", END, ACROSS]
    assert found["cat"] == Part([1, 1], [4, 4], [6.0, 4.0]) and found["the"] == Part([2, 2], [7, 7], [9.0, 9.0])
    assert found[END] == Part([1, 1], [0, 0], [16.0, 16.0]) and found[ACROSS] == Part([0, 1], [0, 0], [0.0, 2.0])
    with pytest.raises(ValueError, match="different texts"):
        words_of_tokens(np.array([3, 2]), [b"the"])


def test_frequent_words_and_decades(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ties are in the order of the bytes; a word that is not in the training text is rare."""
    monkeypatch.setattr(loss_split, "MOST_FREQUENT", 2)
    words = WordFrequencies([(b"rare", 9), (b"b", 10), (b"the", 1234), (b"a", 10)])
    assert [words.rank_class(word) for word in (b"the", b"a", b"b", b"none")] == [FREQUENT, FREQUENT, OTHER, OTHER]
    shown = [words.count_class(word) for word in (b"none", b"rare", b"a", b"the")]
    assert shown == ["0", "1 to 9", "10 to 99", "1,000 to 9,999"]


def test_tokens_by_id() -> None:
    """The occurrences and the bits of each id are summed."""
    tokens = split_by_token(np.array([4, 5, 2, 4], np.uint16), np.array([1.0, 2.0, 4.0, 8.0]))
    assert tokens == TokenLosses([2, 4, 5], [1, 2, 1], [4.0, 9.0, 2.0])


def test_counts_of_the_words_of_a_text() -> None:
    """Classes count every occurrence of every word, as a Counter does."""
    texts = b"a b a c".split()
    found = split_by_word(
        [np.arange(5.0)], [words_of_tokens(np.array([1, 1, 1, 1, 0]), texts)], bytes.decode, ["a", "b", "c"]
    )
    assert {name: sum(part.words) for name, part in found.items() if name != END} == Counter("abac")
