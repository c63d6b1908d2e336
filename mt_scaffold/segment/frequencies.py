"""Counted words + codes → the frequency of each token of the vocabulary."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from mt_scaffold import _core
from mt_scaffold.codes import Codes, CodesSource
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.corpus.text import END_OF_WORD, bytes_to_notation, is_base_symbol
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.segment.apply import BPE
from mt_scaffold.segment.numbering import Numbering, numbering_of, ordinary_tokens

# A separator that no word can hold: it tells a subword inside a word from one at its end.
INSIDE = "\n"


@dataclass(frozen=True)
class Vocabulary:
    """The vocabulary of a model, as it segments a text.

    Tokens are written as in the codes file: ``zona`` inside a word, ``zona</w>`` at its end; bytes in GPT-2's notation,
    such as ``Ġzona``.

    codes: those measured.
    frequencies: token of the vocabulary V → its frequency in the segmented text, 0 included. V holds the normal merged
        tokens, and the base symbols that occur in the merges or in the text; with a pre-tokeniser, all 256 bytes. Of
        imported codes it holds only bytes with an id, and possibly one token for unknown bytes.
    normal, scaffold: the merged tokens that are normal (part of V) and scaffold (not part of it); with PickyBPE, those
        that are kept and those that are removed.
    words, lines: words, and lines with words, in the text.
    text_bytes: the bytes of the text with one space between words; with a pre-tokeniser, all bytes of its documents,
        without spaces that imported codes add.
    has_merges: whether the model has merges to count; ``codes`` are empty for one that has none.
    """

    codes: Codes
    frequencies: dict[str, int]
    normal: frozenset[str]
    scaffold: frozenset[str]
    words: int
    lines: int
    text_bytes: int
    has_merges: bool = True

    @property
    def sorted_frequencies(self) -> list[int]:
        """The frequencies of the whole vocabulary, the highest first."""
        return sorted(self.frequencies.values(), reverse=True)


def use_of_vocabulary(codes: CodesSource, counts: _core.WordCounts, added_spaces: int = 0) -> Vocabulary:
    """Measure how often counted words (``count_words``) use each token of ``codes``.

    added_spaces: bytes of the words that are not in the text (``Spaces``).

    Raises MTScaffoldError if the codes are malformed, or no words were counted.
    """
    if len(counts) == 0:
        raise MTScaffoldError("there are no words in the input, so there is nothing to measure")
    codes = Codes.of(codes)
    merges, header = codes.merges, codes.header
    marked = header.end_of_word
    bpe = BPE(codes, separator=INSIDE) if marked else BPE(codes)
    base = {symbol for merge in merges for symbol in (merge.left, merge.right) if is_base_symbol(symbol, marked)}
    if not marked:
        base.update(map(bytes_to_notation, map(bytes, ([byte] for byte in range(256)))))
    frequencies: Counter[str] = Counter()
    for surface, count in bpe.count_subwords(counts).items():
        symbols, final = symbols_of(surface, header)
        # If the text spells out ``</w>``, a token inside a word and one at its end can be the same string.
        frequencies[symbols + END_OF_WORD if final else symbols] += count
        base.update(symbols[:-1] if final else symbols)
        if final:
            base.add(symbols[-1] + END_OF_WORD)
    scaffold = frozenset(merge.token for merge in merges if not merge.normal)
    normal = frozenset(merge.token for merge in merges) - scaffold - base
    numbering = None if marked else numbering_of(codes)
    if numbering is not None:
        without = {token for token, number in zip(ordinary_tokens(codes), numbering.ids, strict=True) if number == -1}
        base -= without
        if numbering.unknown is not None:
            found = sum(frequencies.pop(token, 0) for token in without)
            frequencies[numbering.unknown_token] = _unknown_runs(codes, numbering, counts) if found else 0
    for token in base | normal:
        frequencies.setdefault(token, 0)
    words, lines = counts.total(), counts.lines()
    return Vocabulary(
        codes=codes,
        frequencies=dict(frequencies),
        normal=normal,
        scaffold=scaffold,
        words=words,
        lines=lines,
        # A pre-tokeniser's words hold the spaces.
        text_bytes=counts.word_bytes() - added_spaces + (words - lines if marked else 0),
    )


def _unknown_runs(codes: Codes, numbering: Numbering, counts: _core.WordCounts) -> int:
    """Return the number of runs of unknown bytes in the words."""
    bpe = BPE(Codes(codes.text, codes.name))
    total = 0
    for word, count in counts.byte_items():
        unknown = [numbering.ids[number] == -1 for number in bpe.encode(word)]
        if True in unknown:
            total += count * sum(each and not before for before, each in pairwise([False, *unknown]))
    return total


def symbols_of(surface: str, header: CodesHeader) -> tuple[str, bool]:
    """Return the base symbols of a subword, one character each, and whether the last one carries the end of a word.

    surface: the subword as ``BPE`` with the separator INSIDE writes it, in codes of words between spaces.
    """
    if not header.end_of_word:
        return surface, False
    final = not surface.endswith(INSIDE)
    text = surface if final else surface[:-1]
    return bytes_to_notation(text.encode("utf-8", "surrogateescape")) if header.bytes else text, final
