"""Segmenting a word in Python, draw by draw and merge by merge as subword-nmt does, in text or in bytes."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import AnyStr

from mt_scaffold.corpus.glossaries import around
from mt_scaffold.corpus.text import END_OF_WORD, LINE_MARGIN, like

# Words and symbols are bytes in byte-level BPE, text otherwise.
Pair = tuple[AnyStr, AnyStr]


def encode(
    orig: AnyStr,
    bpe_codes: Mapping[Pair[AnyStr], int],
    bpe_codes_reverse: Mapping[AnyStr, Pair[AnyStr]],
    vocab: Collection[AnyStr] | None,
    separator: AnyStr,
    version: tuple[int, ...],
    cache: MutableMapping[AnyStr, Sequence[AnyStr]],
    glossaries_regex: re.Pattern[AnyStr] | None = None,
    is_bytes: bool = False,
    dropout: float = 0,
) -> Sequence[AnyStr]:
    """Return the subwords of a word, without separators, as the codes in ``bpe_codes`` (pair → rank) segment it.

    bpe_codes_reverse: merged symbol → pair, for splitting subwords that are not in ``vocab``. version: of the codes,
    (0, 1) or (0, 2). cache: words already segmented; words segmented with dropout are not added to it.
    is_bytes: the word, the codes and the result are bytes.
    """
    if not dropout and orig in cache:
        return cache[orig]
    if len(orig) == 1 or (glossaries_regex and glossaries_regex.match(orig)):
        return (orig,)
    end_of_word = like(orig, END_OF_WORD)
    symbols: list[AnyStr] = [orig[place : place + 1] for place in range(len(orig))]
    if version == (0, 1) and not is_bytes:
        symbols.append(end_of_word)
    else:
        symbols[-1] += end_of_word
    while True:
        # One draw for each pair of neighbours at each step, whether it can be merged or not: subword-nmt's order.
        found = [
            (bpe_codes[pair], place)
            for place, pair in enumerate(itertools.pairwise(symbols))
            if (not dropout or random.random() > dropout) and pair in bpe_codes
        ]
        if not found:
            break
        best, _ = min(found)
        symbols = _merged(symbols, [place for rank, place in found if rank == best])
    if symbols[-1] == end_of_word:
        symbols.pop()
    else:
        symbols[-1] = symbols[-1].removesuffix(end_of_word)
    if vocab:
        symbols = check_vocab_and_split(symbols, bpe_codes_reverse, vocab, separator)
    if not dropout:
        cache[orig] = tuple(symbols)
    return tuple(symbols)


def _merged(symbols: Sequence[AnyStr], places: Iterable[int]) -> list[AnyStr]:
    """Merge the pairs of symbols at these places, from the left and without overlap."""
    merged: list[AnyStr] = []
    end = 0
    for place in places:
        if place >= end:
            merged.extend(symbols[end:place])
            merged.append(symbols[place] + symbols[place + 1])
            end = place + 2
    merged.extend(symbols[end:])
    return merged


def check_vocab_and_split(
    orig: Sequence[AnyStr], bpe_codes: Mapping[AnyStr, Pair[AnyStr]], vocab: Collection[AnyStr], separator: AnyStr
) -> list[AnyStr]:
    """Return the subwords of a word, with those that are not in ``vocab`` split as by ``recursive_split``."""
    finals = [False] * (len(orig) - 1) + [True]
    return [
        part
        for subword, final in zip(orig, finals, strict=True)
        for part in _known(subword, bpe_codes, vocab, separator, final)
    ]


def recursive_split(
    segment: AnyStr,
    bpe_codes: Mapping[AnyStr, Pair[AnyStr]],
    vocab: Collection[AnyStr],
    separator: AnyStr,
    final: bool = False,
) -> Iterator[AnyStr]:
    """Yield the two parts of a subword, split further until they are in ``vocab`` or no pair makes them.

    bpe_codes: merged symbol → pair (``bpe_codes_reverse``). final: whether the subword ends a word.
    """
    end_of_word = like(segment, END_OF_WORD)
    pair = bpe_codes.get(segment + end_of_word if final else segment)
    if pair is None:
        yield segment
        return
    left, right = pair
    yield from _known(left, bpe_codes, vocab, separator, False)
    yield from _known(right.removesuffix(end_of_word) if final else right, bpe_codes, vocab, separator, final)


def _known(
    subword: AnyStr,
    bpe_codes: Mapping[AnyStr, Pair[AnyStr]],
    vocab: Collection[AnyStr],
    separator: AnyStr,
    final: bool,
) -> Iterator[AnyStr]:
    if (subword if final else subword + separator) in vocab:
        yield subword
    else:
        yield from recursive_split(subword, bpe_codes, vocab, separator, final)


def isolate_glossary(word: AnyStr, glossary: AnyStr, is_bytes: bool = False) -> list[AnyStr]:
    """Return the parts of a word in order, with those that match a glossary entry, a regular expression, on their own.

    is_bytes: both are bytes.

    >>> isolate_glossary("1934USABUSA", "USA")
    ['1934', 'USA', 'B', 'USA']
    """
    if re.match(around(glossary, "^", "$"), word) or not re.search(glossary, word):
        return [word]
    *parts, last = re.split(around(glossary, "(", ")"), word)
    return [part for part in parts if part] + ([last.strip(like(word, LINE_MARGIN))] if last else [])
