"""Single words between spaces → how codes segment them: agreement with morphemes, and the cost of typos."""

from __future__ import annotations

import random
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike, shown
from mt_scaffold.corpus.text import bytes_to_notation, read_lines
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.segment.apply import BPE
from mt_scaffold.segment.numbering import numbering_of, ordinary_tokens

# The separator: no word contains it.
_INSIDE = "\n"
_SPACE = bytes_to_notation(b" ")
# One word in this many gets a typo.
TYPO_EVERY = 10


class WordSegmenter:
    """Segments words as they occur within a text: with codes that have a pre-tokeniser, after a space.

    Called with words, it returns the subwords of each. With codes for words between spaces, each ends in a line end
    unless it ends the word; with other codes, the first begins with the space and all are in GPT-2's notation of bytes.
    A run of bytes without an id, of imported codes, is one subword.
    """

    def __init__(self, codes: Codes, inference: str = "merges") -> None:
        self._header = codes.header
        if self._header.end_of_word:
            self._bpe = BPE(codes, separator=_INSIDE, inference=inference)
            return
        numbering = numbering_of(codes)
        # Without the manifest of imported codes, which would have the text prepared.
        self._bpe = BPE(Codes(codes.text, codes.name), inference=inference)
        self._tokens = ordinary_tokens(codes)
        ids = () if numbering is None or numbering.unknown is None else numbering.ids
        self._unknown = {number for number, other in enumerate(ids) if other == -1}

    def __call__(self, words: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the subwords of each word."""
        if self._header.end_of_word:
            return split_words(self._bpe.segment_tokens(words))
        return [self._subwords(word) for word in words]

    def _subwords(self, word: str) -> tuple[str, ...]:
        found: list[str] = []
        before = False
        for number in self._bpe.encode(" " + word, disallowed_special=()):
            unknown = number in self._unknown
            if unknown and before:
                found[-1] += self._tokens[number]
            else:
                found.append(self._tokens[number])
            before = unknown
        return tuple(found)

    def ends(self, subwords: Sequence[str]) -> set[int]:
        """Return the byte offsets within a word at which its subwords end, except the word's own beginning and end."""
        sizes = [self._size(subword) for subword in subwords]
        if sizes and not self._header.end_of_word:
            sizes[0] -= 1
        return set(accumulate(sizes)) - {0, sum(sizes)}

    def _size(self, subword: str) -> int:
        if self._header.end_of_word:
            return len(subword.removesuffix(_INSIDE).encode("utf-8", "surrogateescape"))
        return len(subword)


def split_words(subwords: Iterable[str]) -> list[tuple[str, ...]]:
    """Split the subwords of many words into those of each word; all but a word's last end in a line end."""
    words: list[tuple[str, ...]] = []
    word: list[str] = []
    for subword in subwords:
        word.append(subword)
        if subword[-1] != _INSIDE:
            words.append(tuple(word))
            word = []
    return words


@dataclass(frozen=True)
class Boundaries:
    """The agreement of subword and morpheme boundaries within words.

    precision: the share of subword boundaries that are morpheme boundaries. recall: the reverse. f1: their harmonic
    mean. Each is 0 if it would divide by 0. whole: the share of words that stay whole.
    """

    words: int
    precision: float
    recall: float
    f1: float
    whole: float

    @property
    def figures(self) -> dict[str, float]:
        """The figures of a table, by name."""
        return {"F1": self.f1, "precision": self.precision, "recall": self.recall}


def read_morphemes(path: PathLike) -> list[tuple[str, ...]]:
    """Read a file with a word per line, its morphemes separated by spaces: ``Häus er``.

    Raises MTScaffoldError if it cannot be read or has no words.
    """
    words = [tuple(line.split()) for line in read_lines(path) if line.split()]
    if not words:
        raise MTScaffoldError(f"{shown(path)}: no words; give one per line, its morphemes separated by spaces")
    return words


def boundaries(morphemes: Sequence[Sequence[str]], segmenter: WordSegmenter) -> Boundaries:
    """Compare subwords with the morphemes of words, pooling the boundaries of all words, each word once.

    Source: the recall and precision of MorphScore (Arnett and Bergen 2025, "Why do language models perform worse for
    morphologically complex languages?"; Arnett et al. 2025, "Evaluating Morphological Alignment of Tokenizers in 70
    Languages"), whose first version leaves out words that stay whole; here they count.
    """
    segmented = segmenter(["".join(word) for word in morphemes])
    right = ours = gold = whole = 0
    for word, subwords in zip(morphemes, segmented, strict=True):
        wanted = set(accumulate(len(part.encode()) for part in word[:-1]))
        found = segmenter.ends(subwords)
        right += len(found & wanted)
        ours += len(found)
        gold += len(wanted)
        whole += not found
    precision, recall = right / ours if ours else 0.0, right / gold if gold else 0.0
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return Boundaries(len(morphemes), precision, recall, f1, whole / len(morphemes))


def with_typos(words: Mapping[str, int], seed: int) -> Counter[tuple[str, str]]:
    """Return (word, misspelt word) → how often: one letter is replaced in every tenth word that has letters.

    words: with their counts; equal words and counts get the same typos. The new letter is one of a to z, in the case of
    the old one.
    """
    generator = random.Random(seed)
    changed: Counter[tuple[str, str]] = Counter()
    seen = 0
    for word in sorted(words):
        places = [place for place, character in enumerate(word) if character.isalpha()]
        before, seen = seen, seen + (words[word] if places else 0)
        for _ in range(seen // TYPO_EVERY - before // TYPO_EVERY):
            place = generator.choice(places)
            old = word[place]
            new = generator.choice([letter for letter in string.ascii_lowercase if letter != old.lower()])
            changed[word, word[:place] + (new.upper() if old.isupper() else new) + word[place + 1 :]] += 1
    return changed


def typo_cost(
    words: Mapping[str, int],
    typos: Mapping[tuple[str, str], int],
    segmenter: Callable[[Sequence[str]], list[tuple[str, ...]]],
) -> float:
    """Return the relative growth in subwords per word due to typos: 0.05 for 5 % more.

    words: with their counts. typos: as ``with_typos`` returns them. segmenter: words → the subwords of each.

    Chai et al. 2024, "Tokenization Falling Short: On Subword Robustness in Large Language Models", examine how typos
    break words into more subwords; this figure is ours.
    """
    listed = list(words)
    sizes = dict(zip(listed, map(len, segmenter(listed)), strict=True))
    misspelt = list({new for _, new in typos})
    new_sizes = dict(zip(misspelt, map(len, segmenter(misspelt)), strict=True))
    added = sum(count * (new_sizes[new] - sizes[old]) for (old, new), count in typos.items())
    return added / sum(count * sizes[word] for word, count in words.items())
