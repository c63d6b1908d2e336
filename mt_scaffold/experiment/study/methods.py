"""Counted words → the vocabulary of a method, which segments words."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_scaffold.analysis.words import WordSegmenter
from mt_scaffold.codes import Codes
from mt_scaffold.corpus.count import load_counts
from mt_scaffold.corpus.text import END_OF_WORD, is_base_symbol
from mt_scaffold.experiment.study.configuration import StudiedMethod
from mt_scaffold.methods import Method
from mt_scaffold.methods.base import TooManySymbols, Words
from mt_scaffold.methods.bpe import LearnedCodes
from mt_scaffold.segment.inference import MERGES
from mt_scaffold.segment.numbering import numbering_of, ordinary_tokens

# Ends every subword but a word's last, so that "er" inside a word and at its end are two tokens. No word holds it.
INSIDE = "\n"

Subwords = tuple[str, ...]


@dataclass(frozen=True)
class Learned:
    """The vocabulary that a method learned from a text.

    merged: the subwords of more than one symbol; N of them if ``complete``. base: those of one symbol. segment: words →
    the subwords of each; with ``codes``, all but the last of a word end in INSIDE. complete: false if the text was too
    small for N. codes: None for a method without codes, and for imported codes without ``</w>``. below: the frequency
    below which tokens were marked. segmenter: None for a method without codes. bytes: whether subwords are bytes in
    GPT-2's notation.
    """

    merged: frozenset[str]
    base: frozenset[str]
    segment: Callable[[Sequence[str]], list[Subwords]]
    complete: bool
    codes: Codes | None = None
    below: int | None = None
    segmenter: WordSegmenter | None = None
    bytes: bool = False

    def vocabulary(self, words: Iterable[str]) -> frozenset[str]:
        """Return the vocabulary V on these words; with ``codes``, it has every symbol of theirs."""
        if self.codes is None:
            return self.merged | self.base
        words = list(words)
        inside = {symbol + INSIDE for symbol in set().union(*(word[:-1] for word in words))}
        return self.merged | self.base | inside | {word[-1] for word in words}


def applies(method: StudiedMethod, text: str, languages: Iterable[str]) -> bool:
    """Return whether a method is configured to learn from a text, and can do so in these languages."""
    wanted = method.texts is None or text in method.texts
    return wanted and (not method.method.by_language or len(set(languages)) > 1)


def learn_vocabulary(method: StudiedMethod, counts: Mapping[str, Path], size: int, min_frequency: int) -> Learned:
    """Learn a vocabulary of ``size`` merged tokens from the count files of each language; raises as ``learn_bpe``."""
    wanted = method.method.with_settings(symbols=size, min_frequency=min_frequency)
    try:
        learned, complete = wanted.learn(_words(wanted, counts)), True
    except TooManySymbols as error:
        if not error.most:
            raise
        wanted, complete = wanted.with_settings(symbols=error.most), False
        learned = wanted.learn(_words(wanted, counts))
    complete = complete and not learned.exhausted
    if isinstance(learned, LearnedCodes):
        return of_codes(learned.codes, method.inference, complete, learned.marked_below)
    return _of_pieces(wanted, learned.text, complete)


def _words(method: Method[Any], counts: Mapping[str, Path]) -> Words:
    if method.by_language:
        # Lines are held out by their numbers, so that all parts of a parallel text are parallel.
        return Words(list(counts), [load_counts([path])[0] for path in counts.values()])
    return Words.of(load_counts(list(counts.values()))[0])


def _of_pieces(method: Method[Any], model: bytes, complete: bool) -> Learned:
    """Return the vocabulary of a model that marks the first subword of each word."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model{method.suffix}"
        path.write_bytes(model)
        segmenter = method.segmenter(path)
    pieces, start = segmenter.surface_forms(), str(method.word_start)

    def segment(words: Sequence[str]) -> list[Subwords]:
        found: list[list[str]] = []
        for piece in segmenter.segment(" ".join(words)).split(" ") if words else []:
            if piece.startswith(start):
                found.append([])
            found[-1].append(piece)
        return [*map(tuple, found)]

    return Learned(
        merged=frozenset(piece for piece in pieces if len(piece) > 1),
        base=frozenset(piece for piece in pieces if len(piece) == 1),
        segment=segment,
        complete=complete,
    )


def of_codes(codes: Codes, inference: str = MERGES, complete: bool = True, below: int | None = None) -> Learned:
    """Return the vocabulary of codes, applied with a kind of inference."""
    segmenter = WordSegmenter(codes, inference)
    symbols = {symbol for merge in codes.merges for symbol in (merge.left, merge.right) if is_base_symbol(symbol)}
    return Learned(
        merged=frozenset(map(surface, codes.normal)),
        base=frozenset(map(surface, symbols)),
        segment=segmenter,
        complete=complete,
        codes=codes,
        below=below,
        segmenter=segmenter,
    )


def of_imported(codes: Codes) -> Learned:
    """Return the vocabulary of imported codes, with the ids of their program if they have a manifest.

    With a pre-tokeniser, each word follows a space. A run of bytes without an id becomes one unknown token, if there is
    such a token.
    """
    if codes.header.end_of_word:
        return of_codes(codes)
    numbering, tokens = numbering_of(codes), ordinary_tokens(codes)
    ids = range(len(tokens)) if numbering is None else numbering.ids
    known = {token for token, number in zip(tokens, ids, strict=True) if number != -1}
    unknown = set() if numbering is None or numbering.unknown is None else {numbering.unknown_token}
    segmenter = WordSegmenter(codes)

    def segment(words: Sequence[str]) -> list[Subwords]:
        found = segmenter(words)
        if not unknown:
            return found
        return [tuple(each if each in known else str(*unknown) for each in subwords) for subwords in found]

    return Learned(
        merged=frozenset(token for token in known if len(token) > 1),
        base=frozenset(token for token in known if len(token) == 1) | unknown,
        segment=segment,
        complete=True,
        segmenter=segmenter,
        bytes=True,
    )


def surface(token: str) -> str:
    """Return a token of a codes file in the form of ``Learned.segment``."""
    return token.removesuffix(END_OF_WORD) if token.endswith(END_OF_WORD) else token + INSIDE
