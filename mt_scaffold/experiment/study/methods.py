"""Methods: counted words → a vocabulary, and how it segments words. A new algorithm is a function in ``_LEARNERS``."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mt_scaffold.apply import BPE
from mt_scaffold.codes import Codes
from mt_scaffold.corpus.count import load_counts
from mt_scaffold.corpus.text import END_OF_WORD, is_base_symbol
from mt_scaffold.experiment.study.configuration import Method
from mt_scaffold.frequencies import use_of_vocabulary
from mt_scaffold.methods.learn import LearnedCodes, learn_bpe, learn_from_languages
from mt_scaffold.methods.parity import Languages, Parity
from mt_scaffold.methods.trimming import trim
from mt_scaffold.methods.unigram import TooFewPieces, unigram_model
from mt_scaffold.methods.unigram_segmenter import UnigramSegmenter

# What it learns needs texts in several languages, and depends on their order: ties go to the first.
OF_LANGUAGES = {"parity"}
# Ends every subword but a word's last, so that "er" inside a word and at its end are two tokens. No word holds it.
INSIDE = "\n"

Subwords = tuple[str, ...]


@dataclass(frozen=True)
class Learned:
    """What a method made of a text.

    merged: the subwords of more than one symbol that it can give: the N that was asked for. base: those of one symbol.
    segment: words → the subwords of each; with codes, those that do not end the word followed by INSIDE.
    codes: where it has them. below: the frequency below which it marked tokens.
    complete: false where the text had too little for N.
    """

    merged: frozenset[str]
    base: frozenset[str]
    segment: Callable[[Sequence[str]], list[Subwords]]
    complete: bool
    codes: Codes | None = None
    below: int | None = None

    def vocabulary(self, words: Iterable[str]) -> frozenset[str]:
        """The subwords of the vocabulary V on these words: with codes, every symbol of theirs is one."""
        if self.codes is None:
            return self.merged | self.base
        words = list(words)
        inside = {symbol + INSIDE for symbol in set().union(*(word[:-1] for word in words))}
        return self.merged | self.base | inside | {word[-1] for word in words}


def applies(method: Method, text: str, languages: Iterable[str]) -> bool:
    """Return whether a method is to learn from a text, and can, in these languages."""
    wanted = method.texts is None or text in method.texts
    return wanted and (method.algorithm not in OF_LANGUAGES or len(set(languages)) > 1)


def learn(method: Method, counts: Mapping[str, Path], size: int, min_frequency: int) -> Learned:
    """Learn a vocabulary of ``size`` merged tokens from the count files of each language; raises as ``learn_bpe``."""
    return _LEARNERS[method.algorithm](method, counts, size, min_frequency)


def of_codes(codes: Codes, inference: str = "merges", complete: bool = True, below: int | None = None) -> Learned:
    """Return what codes make of words, with order of rank or greedily."""
    bpe = BPE(codes, separator=INSIDE, inference=inference)
    symbols = {symbol for merge in codes.merges for symbol in (merge.left, merge.right) if is_base_symbol(symbol)}
    return Learned(
        merged=frozenset(map(surface, codes.normal)),
        base=frozenset(map(surface, symbols)),
        segment=lambda words: split_words(bpe.segment_tokens(words)),
        complete=complete,
        codes=codes,
        below=below,
    )


def surface(token: str) -> str:
    """Return a token of a codes file as ``Learned.segment`` gives it."""
    return token.removesuffix(END_OF_WORD) if token.endswith(END_OF_WORD) else token + INSIDE


def split_words(subwords: Iterable[str]) -> list[Subwords]:
    """Return the subwords of each word, of those of many words in a row."""
    words: list[Subwords] = []
    word: list[str] = []
    for subword in subwords:
        word.append(subword)
        if subword[-1] != INSIDE:
            words.append(tuple(word))
            word = []
    return words


def _bpe(method: Method, counts: Mapping[str, Path], size: int, min_frequency: int) -> Learned:
    learned = _learn_bpe(method, counts, size, min_frequency)
    return of_codes(learned.codes, method.inference, not learned.exhausted)


def _learn_bpe(method: Method, counts: Mapping[str, Path], size: int, min_frequency: int) -> LearnedCodes:
    algorithm = "bpe" if method.algorithm == "trimmed" else method.algorithm
    return learn_bpe(
        counts=list(counts.values()),
        num_symbols=size,
        min_frequency=min_frequency,
        algorithm=algorithm,
        threshold=method.threshold,
    )


def _trimmed(method: Method, counts: Mapping[str, Path], size: int, min_frequency: int) -> Learned:
    learned = _learn_bpe(method, counts, size, min_frequency)
    if not learned.codes.merges:
        return of_codes(learned.codes, method.inference, complete=False)
    files = list(counts.values())
    # Nothing was merged after the last merge, so that all it made still stands.
    last = use_of_vocabulary(learned.codes, load_counts(files)[0]).frequencies[learned.codes.merges[-1].token]
    below = max(1, math.ceil(last * (method.below or 0)))
    marked = trim(
        learned.codes,
        counts=files,
        below=below,
        refill="same" if method.refill else None,
        min_frequency=min_frequency,
    )
    return of_codes(marked.codes, method.inference, not (learned.exhausted or marked.exhausted), below)


def _parity(method: Method, counts: Mapping[str, Path], size: int, min_frequency: int) -> Learned:
    # Lines are held out by their numbers, so that all parts of a parallel text are parallel, and say what parity is.
    words = [load_counts([path])[0] for path in counts.values()]
    learned = learn_from_languages(Languages(list(counts), words, [], []), Parity(), size, min_frequency)
    return of_codes(learned.codes, method.inference, not learned.exhausted)


def _unigram(method: Method, counts: Mapping[str, Path], size: int, min_frequency: int) -> Learned:
    words = dict(load_counts(list(counts.values()))[0].items())
    complete = True
    try:
        learned = unigram_model(words, size)
    except TooFewPieces as error:
        if not error.most:
            raise
        complete = False
        learned = unigram_model(words, error.most)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "unigram.model"
        model.write_bytes(learned)
        segmenter = UnigramSegmenter(model)
    pieces = segmenter.surface_forms()
    return Learned(
        merged=frozenset(piece for piece in pieces if len(piece) > 1),
        base=frozenset(piece for piece in pieces if len(piece) == 1),
        segment=lambda words: [tuple(line.split(" ")) for line in segmenter.segment_lines(words)],
        complete=complete,
    )


_LEARNERS: dict[str, Callable[[Method, Mapping[str, Path], int, int], Learned]] = {
    "bpe": _bpe,
    "scaffold": _bpe,
    "picky": _bpe,
    "trimmed": _trimmed,
    "unigram": _unigram,
    "parity": _parity,
}
