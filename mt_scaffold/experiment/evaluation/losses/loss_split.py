"""A model's loss, in bits, summed by the frequency of words and of tokens in the training text.

Chung and Kim (2025, *Exploiting Vocabulary Frequency Imbalance in Language Model Pre-training*, arXiv 2508.15390) sum
the loss of all occurrences of a word, and compare the 2,500 most frequent words with the others. We add: bits divided
by the bytes of the words, which makes a word comparable that one system writes in one token and another in three; the
decades of the count; and words as the pre-tokeniser that the codes were learned with defines them.

All figures are sums of the losses of tokens: a token belongs to the word that holds all of its bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Floats = NDArray[numpy.float64]
    Integers = NDArray[numpy.int64]

# The words that Chung and Kim call frequent.
MOST_FREQUENT = 2500
FREQUENT, OTHER = f"the {MOST_FREQUENT:,} most frequent words", "other words"
# Tokens outside words: the end of each document or sentence, and tokens with bytes of several words.
END, ACROSS = "end", "across words"
_LAST_DECADE = 12


@dataclass(frozen=True)
class Part:
    """The words of one class in a test set: their occurrences, bytes and bits in each document or sentence."""

    words: list[int]
    bytes: list[int]
    bits: list[float]


@dataclass(frozen=True)
class TokenLosses:
    """The tokens of a test set: the ids that occur, and the occurrences and the sum of -log2 p of each."""

    ids: list[int]
    occurrences: list[int]
    bits: list[float]


@dataclass(frozen=True)
class LossSplit:
    """The loss of one training on one test set, split by class of words and by token.

    unit: the unit of resampling, ``document`` or ``sentence``. bits: of all tokens. bytes: that the score is divided
    by. sizes: the bytes of each document or sentence. signature: must be equal in splits that are compared.
    data_sha256: of the text. by_rank, by_count: class → its words; each is a partition of all bits, so that the
    classes' bits add up to ``bits``. tokens: by the ids of the system. unknown: the numbers, from 0, of the references
    that contain ``<unk>``; None for documents. too_long: those of the sentences that are longer than the model takes,
    which have no bits here; None if there are none.
    """

    system: str
    test_set: str
    seed: int
    synthetic: bool
    unit: Literal["document", "sentence"]
    bits: float
    bytes: int
    sizes: list[int]
    signature: str
    data_sha256: str
    by_rank: dict[str, Part] = field(repr=False)
    by_count: dict[str, Part] = field(repr=False)
    tokens: TokenLosses = field(repr=False)
    unknown: list[int] | None = field(default=None, repr=False, metadata={"omit_none": True})
    too_long: list[int] | None = field(default=None, repr=False, metadata={"omit_none": True})

    def bits_of_each(self) -> list[float]:
        """Return the bits of each document or sentence."""
        return [math.fsum(bits) for bits in zip(*(part.bits for part in self.by_rank.values()), strict=True)]


class WordFrequencies:
    """The words of a training text: how often each occurs, and which are the ``MOST_FREQUENT``.

    counts: (word, count) of each. Words with equal counts are ranked in the order of their bytes.
    """

    def __init__(self, counts: Iterable[tuple[bytes, int]]) -> None:
        ordered = sorted(counts, key=lambda entry: (-entry[1], entry[0]))
        self._counts = dict(ordered)
        self._frequent = {word for word, _ in ordered[:MOST_FREQUENT]}

    def rank_class(self, word: bytes) -> str:
        """Return ``FREQUENT`` or ``OTHER``; a word that does not occur is among the others."""
        return FREQUENT if word in self._frequent else OTHER

    def count_class(self, word: bytes) -> str:
        """Return the decade of a word's count."""
        return DECADES[decade(self._counts.get(word, 0))]


def decade(count: int) -> int:
    """Return the number of digits of a count, 0 for 0.

    >>> [decade(count) for count in (0, 1, 9, 10, 12345)]
    [0, 1, 1, 2, 5]
    """
    return min(len(str(count)), _LAST_DECADE) if count else 0


def _decade_label(digits: int) -> str:
    return f"{10 ** (digits - 1):,} to {10**digits - 1:,}" if digits else "0"


# The classes of a count: 0, 1 to 9, 10 to 99, ...
DECADES = [_decade_label(digits) for digits in range(_LAST_DECADE + 1)]


@dataclass(frozen=True)
class Words:
    """The words of one document or sentence, their sizes in bytes, and the word that each token belongs to.

    of_token: the word's index; ``END_OF_TEXT`` (-1) for the end, ``ACROSS_WORDS`` (-2) for a token of several words.
    """

    texts: Sequence[bytes]
    sizes: Sequence[int]
    of_token: Integers


END_OF_TEXT, ACROSS_WORDS = -1, -2


def words_of_tokens(token_sizes: Integers, texts: Sequence[bytes]) -> Words:
    """Return the words of a document with the word of each token.

    token_sizes: the bytes that each token stands for, 0 for the end. texts: the words, which concatenate to the
    document. Raises ValueError if words and tokens differ in their number of bytes.
    """
    import numpy

    sizes = [len(text) for text in texts]
    ends = numpy.cumsum(sizes, dtype=numpy.int64) if sizes else numpy.zeros(0, numpy.int64)
    token_ends = numpy.cumsum(token_sizes)
    if (int(ends[-1]) if sizes else 0) != int(token_ends[-1]):
        raise ValueError("the words and the tokens are of different texts")
    of_token = numpy.searchsorted(ends, token_ends - token_sizes, side="right")
    inside = token_sizes > 0
    of_token[~inside] = END_OF_TEXT
    across = inside.copy()
    across[inside] = ends[of_token[inside]] < token_ends[inside]
    of_token[across] = ACROSS_WORDS
    return Words(texts, sizes, of_token)


def split_by_word(
    bits: Sequence[Floats], words: Iterable[Words], class_of: Callable[[bytes], str], order: Sequence[str]
) -> dict[str, Part]:
    """Return the sums of each class that occurs, in ``order``; then those of the ends and of tokens across words.

    bits: of the tokens of each document or sentence. words: of each of these. class_of: the class of a word, one of
    ``order``.
    """
    import numpy

    names = [*order, END, ACROSS]
    number = {name: place for place, name in enumerate(names)}
    classes: dict[bytes, int] = {}
    occurrences = numpy.zeros((len(names), len(bits)), numpy.int64)
    sizes = numpy.zeros((len(names), len(bits)), numpy.int64)
    sums = numpy.zeros((len(names), len(bits)))
    for place, (own, found) in enumerate(zip(bits, words, strict=True)):
        for text in found.texts:
            if text not in classes:
                classes[text] = number[class_of(text)]
        # The last two entries are for tokens outside words: index -2 (ACROSS_WORDS) and -1 (END_OF_TEXT).
        of_word = numpy.array([*(classes[text] for text in found.texts), number[ACROSS], number[END]], numpy.int64)
        sums[:, place] = numpy.bincount(of_word[found.of_token], weights=own, minlength=len(names))
        occurrences[:, place] = numpy.bincount(of_word[:-2], minlength=len(names))
        sizes[:, place] = numpy.bincount(of_word[:-2], weights=found.sizes, minlength=len(names))
        occurrences[number[END], place] += int((found.of_token == END_OF_TEXT).sum())
        occurrences[number[ACROSS], place] += int((found.of_token == ACROSS_WORDS).sum())
    return {
        name: Part(occurrences[row].tolist(), sizes[row].tolist(), sums[row].tolist())
        for row, name in enumerate(names)
        if occurrences[row].any()
    }


def split_by_token(ids: Any, bits: Floats) -> TokenLosses:
    """Return the occurrences and bits of each id."""
    import numpy

    occurrences = numpy.bincount(ids)
    sums = numpy.bincount(ids, weights=bits)
    found = numpy.flatnonzero(occurrences)
    return TokenLosses(found.tolist(), occurrences[found].tolist(), sums[found].tolist())
