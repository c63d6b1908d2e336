"""The plain Python reference of uniform sampling (Cognetta, Zouhar and Okazaki 2024), random numbers included.

The core gives exactly the same segmentations: in both, numbers of segmentations are IEEE doubles, and random numbers
come from SplitMix64. Symbols are as in ``mt_scaffold.analysis.reference``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from mt_scaffold.analysis.reference import Pair, base_symbols
from mt_scaffold.corpus.text import END_OF_WORD

_WORD = 2**64 - 1
_SCALE = 2.0**512
_FIRST_LAW = 64  # counts below this are decided by one random number
_DIGITS = 62


class RandomStream:
    """SplitMix64, a separate stream for each (seed, epoch, index of the line)."""

    def __init__(self, seed: int, epoch: int = 0, index: int = 0) -> None:
        self._state = 0
        for part in (seed, epoch, index):
            self._state = self._scramble(self._state + part & _WORD)

    def next(self) -> int:
        """Return a number of 64 random bits."""
        self._state = self._state + 0x9E3779B97F4A7C15 & _WORD
        return self._scramble(self._state)

    @staticmethod
    def _scramble(z: int) -> int:
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _WORD
        z = (z ^ z >> 27) * 0x94D049BB133111EB & _WORD
        return z ^ z >> 31


def untouched(probability: float, random: RandomStream) -> int:
    """Draw how many words are segmented as usual before one is sampled, each with this probability."""
    number = random.next()
    survival = 1.0
    for words in range(_FIRST_LAW):
        survival *= 1.0 - probability
        if number >= _scaled(survival):
            return words
    # The remainder follows the same (geometric) law, whose binary digits are independent.
    words, power = _FIRST_LAW, 1.0 - probability
    for digit in range(_DIGITS):
        if not _scaled(power):
            break
        words += (random.next() < _scaled(power / (1.0 + power))) << digit
        power *= power
    return words


def _scaled(probability: float) -> int:
    return _WORD if probability >= 1.0 else int(probability * 2.0**64)


class UniformSampler:
    """Draws segmentations of words into normal tokens and single symbols, each equally likely.

    merges, scaffold: those of the codes; tokens that PickyBPE has removed count as scaffold, and so do those that a
    vocabulary would split. end_of_word: whether a word's last symbol carries ``</w>``; then only tokens with it can end
    a word, and they occur nowhere else.

    >>> sorted(UniformSampler([("a", "b"), ("b", "a</w>")]).distribution("aba"))
    [('a', 'b', 'a</w>'), ('a', 'ba</w>'), ('ab', 'a</w>')]
    """

    def __init__(
        self,
        merges: Iterable[Pair],
        scaffold: Iterable[str] = (),
        end_of_word: bool = True,
    ) -> None:
        self._vocabulary = {left + right for left, right in merges} - set(scaffold)
        self._longest = max(map(len, self._vocabulary), default=1)
        self._end_of_word = end_of_word

    def _ends(self, symbols: list[str], begin: int) -> list[int]:
        """Return the places where a subword that begins at a symbol can end, the shortest first."""
        ends = [begin + 1]
        for end in range(begin + 2, min(len(symbols), begin + self._longest) + 1):
            token = "".join(symbols[begin:end])
            # In a text that spells out "</w>", letters inside a word look like the end of one.
            ends_word = token.endswith(END_OF_WORD) and self._end_of_word
            if token in self._vocabulary and ends_word == (end == len(symbols) and self._end_of_word):
                ends.append(end)
        return ends

    def count(self, symbols: list[str]) -> list[tuple[float, int]]:
        """Return the number of segmentations from each symbol on, and 1 at the end, as (number, scale).

        It is number * 2^(512 * scale), so that words may have any length. A sum is in the scale of its largest term,
        that after a single symbol; terms two scales below are less than a rounding error, and count as 0.
        """
        counts = [(1.0, 0)] * (len(symbols) + 1)
        for begin in reversed(range(len(symbols))):
            scale = counts[begin + 1][1]
            number = 0.0
            for end in self._ends(symbols, begin):
                number += _in_scale(counts[end], scale)
            counts[begin] = (number / _SCALE, scale + 1) if number >= _SCALE else (number, scale)
        return counts

    def draw(self, word: str, random: RandomStream) -> list[str]:
        """Draw a segmentation, with a random number of 53 bits for each subword that can end in several places."""
        symbols = base_symbols(word, self._end_of_word)
        counts = self.count(symbols)
        begin, pieces = 0, []
        while begin < len(symbols):
            ends = self._ends(symbols, begin)
            end = ends[0]
            if len(ends) > 1:
                scale = counts[begin + 1][1]
                number, own = counts[begin]
                drawn = (random.next() >> 11) * 2.0**-53 * (number * _SCALE if own > scale else number)
                total = 0.0
                for end in ends:
                    total += _in_scale(counts[end], scale)
                    if drawn < total:
                        break
            pieces.append("".join(symbols[begin:end]))
            begin = end
        return pieces

    def distribution(self, word: str) -> dict[tuple[str, ...], Fraction]:
        """Return every segmentation of a (short) word with its probability, the product of those of its draws."""
        symbols = base_symbols(word, self._end_of_word)
        numbers = [Fraction(number) for number, _ in self.count(symbols)]
        found: dict[tuple[str, ...], Fraction] = {}

        def walk(begin: int, pieces: tuple[str, ...], probability: Fraction) -> None:
            if begin == len(symbols):
                found[pieces] = probability
                return
            for end in self._ends(symbols, begin):
                share = numbers[end] / numbers[begin]
                walk(end, (*pieces, "".join(symbols[begin:end])), probability * share)

        walk(0, (), Fraction(1))
        return found

    def sample(
        self,
        words: Iterable[str],
        usual: Callable[[str], list[str]],
        probability: float,
        random: RandomStream,
    ) -> list[list[str]]:
        """Segment the words of a line: each is drawn with this probability, or else segmented by ``usual``.

        random: the stream of the line. Returns the subwords of each word, the last without ``</w>``.
        """
        segmented = []
        left = untouched(probability, random)
        for word in words:
            if left:
                left -= 1
                segmented.append(usual(word))
                continue
            *inner, last = self.draw(word, random)
            segmented.append([*inner, last.removesuffix(END_OF_WORD) if self._end_of_word else last])
            left = untouched(probability, random)
        return segmented


def _in_scale(count: tuple[float, int], scale: int) -> float:
    number, own = count
    return number if own == scale else number / _SCALE if own + 1 == scale else 0.0
