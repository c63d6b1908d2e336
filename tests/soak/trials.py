"""Random corpora: the native core must learn and segment as the plain Python reference does."""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction

from learning import learn_with
from reference.fewest import segment_into_fewest
from reference.greedy import segment_greedily
from reference.longest_merge import LongestMergeBPE
from reference.parity import learn_parity
from reference.remerge import RemergeBPE
from reference.uniform import RandomStream, UniformSampler
from segmenting import (
    BYTES,
    CHARACTERS,
    MODES,
    PRETOKENISED,
    Mode,
    hard_text,
    learn_picky_with_reference,
    learn_with_reference,
    lines_at_lf,
    parity_codes,
    picky_reference_of,
    reference_of,
    reference_subwords,
)

from mt_scaffold import BPE
from mt_scaffold.analysis.reference import Learned, ReferenceBPE, Survives, always, pretokenise
from mt_scaffold.analysis.reference_picky import LearnedPicky
from mt_scaffold.corpus.pretokenise import PATTERNS
from mt_scaffold.corpus.text import END_OF_WORD, bytes_to_notation, words_of
from mt_scaffold.methods.parity import DEFAULT_ALPHA

# Few letters make ties, overlaps and ambiguous strings common; some spell out "</w>"; some have up to four bytes.
ALPHABETS = [list("a"), list("ab"), list("abcd"), ["a", "</w>", "<", "w>"], ["a", "ä", "日", "😀"], list("abcdefghij")]
SEPARATORS = ["@@", "@@", "~", "￭"]
# The kinds of inference that depend on merges, not just on a vocabulary, with their references.
_MERGING = {"longest-merge": LongestMergeBPE, "remerge": RemergeBPE}


class Difference(Exception):
    """The core and the reference disagree; the message shows both results."""


class OfVocabulary(ReferenceBPE):
    """A reference with a kind of inference that segments into the tokens of a vocabulary."""

    def __init__(self, reference: ReferenceBPE, segment: Callable[..., list[str]]) -> None:
        super().__init__(reference.rank, reference.scaffold, reference.separator, end_of_word=reference.end_of_word)
        self._segment = segment

    def segment_word(self, word: str, survives: Survives = always) -> list[str]:
        *inner, last = self._segment(word, self.rank, self.scaffold, self.end_of_word)
        return [*inner, self._without_mark(last)]


def _reference_with(kind: str, reference: ReferenceBPE) -> ReferenceBPE:
    if kind in _MERGING:
        return _MERGING[kind](
            reference.rank, reference.scaffold, reference.separator, end_of_word=reference.end_of_word
        )
    return OfVocabulary(reference, segment_greedily if kind == "greedy" else segment_into_fewest)


def trial(seed: int) -> int:
    """Make two corpora, learn from the first, segment both, and return the number of words compared.

    Raises Difference if the core and the reference disagree on anything.
    """
    draw = random.Random(seed)
    mode = draw.choice(MODES)
    alphabet = draw.choice(ALPHABETS) if draw.random() < 0.7 else None
    text, other = (hard_text(draw.randrange(1 << 30), draw.randint(5, 400), alphabet) for _ in range(2))
    algorithm = draw.choice(["scaffold", "bpe", "picky", "parity"])
    learn = _learn_parity if algorithm == "parity" else _learn
    codes = learn(text, algorithm, mode, draw.randint(1, 80), draw.randint(1, 4), draw)
    picky = algorithm == "picky"
    merges = draw.choice([-1, -1, draw.randint(0, 80)])
    separator = draw.choice(SEPARATORS) if mode == CHARACTERS else "@@"
    reference_with = picky_reference_of if picky else reference_of
    reference, bpe = reference_with(codes, merges, separator), BPE(codes, merges, separator)
    if mode == CHARACTERS and draw.random() < 0.4:
        forms = sorted(bpe.surface_forms())
        vocabulary = set(draw.sample(forms, draw.randint(0, len(forms))))
        reference, bpe = reference_with(codes, merges, separator, vocabulary), BPE(codes, merges, separator, vocabulary)
    elif draw.random() < 0.4:
        kind = draw.choice(["greedy", "fewest"] if picky else ["greedy", "fewest", *_MERGING])
        reference, bpe = _reference_with(kind, reference), BPE(codes, merges, separator, inference=kind)
    compared = 0
    for whole in (text, other):
        output = io.BytesIO()
        bpe.process_file(io.BytesIO(whole.encode("utf-8")), output, num_workers=draw.randint(1, 3))
        expected = b"".join(_segmented(line, reference, mode) for line in lines_at_lf(whole))
        _same("subwords", output.getvalue(), expected)
        compared += sum(len(_words(line, mode)) for line in lines_at_lf(whole))
    compared += _sampled(
        bpe, reference, mode, [word for line in lines_at_lf(other) for word in _words(line, mode)], draw
    )
    return compared


def _learn(text: str, algorithm: str, mode: Mode, symbols: int, min_frequency: int, draw: random.Random) -> bytes:
    """Learn from a text with the core and the reference, compare, and return the codes."""
    counts = _counts(lines_at_lf(text), mode)
    threshold = draw.choice([0.3, 0.6, 0.9, 1.0])
    picky = algorithm == "picky"
    learned: Learned | LearnedPicky
    if picky:
        learned, codes = learn_picky_with_reference(counts, symbols, threshold, min_frequency, mode)
    else:
        learned, codes = learn_with_reference(counts, symbols, min_frequency, algorithm, mode)
    native = learn_with(
        io.BytesIO(text.encode("utf-8")),
        None,
        symbols,
        min_frequency,
        algorithm=algorithm,
        threshold=threshold if picky else None,
        num_workers=draw.randint(1, 3),
        **mode.options,
    )
    _same("codes", native.text, codes)
    _same("returns", native.restored, learned.restored)
    return codes


def _learn_parity(
    text: str, algorithm: str, mode: Mode, symbols: int, min_frequency: int, draw: random.Random
) -> bytes:
    """Learn with both from the lines of a text, dealt out to several languages; return the codes."""
    number = draw.randint(2, 4)
    lines = [line.rstrip("\n") + "\n" for line in lines_at_lf(text)]
    lines += ["\n"] * (-len(lines) % number)
    dealt = [_with_words(lines[first::number], mode) for first in range(number)]
    # Parity is measured on shortened texts, assigned to other languages.
    shorter = [_with_words([line[: len(line) // 2] + "\n" for line in each], mode) for each in dealt]
    dev = draw.sample(shorter, number) if draw.random() < 0.5 else None
    global_merges, window = draw.choice([0, 0, draw.randint(0, 40)]), draw.choice([None, draw.randint(1, 9)])
    alpha = draw.choice([1, 1.1, 1.5, 2]) if window else None
    learned = learn_parity(
        [_counts(lines, mode) for lines in dealt],
        symbols,
        None if dev is None else [_counts(lines, mode) for lines in dev],
        min_frequency,
        global_merges,
        window,
        Fraction(str(alpha or DEFAULT_ALPHA)),
        mode.end_of_word,
    )
    native = learn_with(
        paths=[io.BytesIO("".join(lines).encode("utf-8")) for lines in dealt],
        num_symbols=symbols,
        min_frequency=min_frequency,
        algorithm=algorithm,
        dev=None if dev is None else [io.BytesIO("".join(lines).encode("utf-8")) for lines in dev],
        global_merges=global_merges,
        window=window,
        alpha=alpha,
        num_workers=draw.randint(1, 3),
        **mode.options,
    )
    _same("codes", native.text, parity_codes(learned, mode))
    _same("early ends", native.exhausted, learned.exhausted)
    return native.text


def _with_words(lines: list[str], mode: Mode) -> list[str]:
    """Return the lines, with a word in the last one if they have none: parity-aware BPE needs one per language."""
    return lines if _counts(lines, mode) else [*lines[:-1], "word\n"]


def _counts(lines: Iterable[str], mode: Mode) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(_words(line, mode))
    return dict(counts)


def _sampled(bpe: BPE, reference: ReferenceBPE, mode: Mode, words: list[str], draw: random.Random) -> int:
    """Compare uniform samples of words, and return the number of words."""
    split = {
        left + right
        for left, right in reference.rank
        if reference.vocabulary
        and [*reference._split(left + right, (left + right).endswith(END_OF_WORD))] != [left + right]
    }
    sampler = UniformSampler(reference.rank, reference.scaffold | split, mode.end_of_word)
    probability, seed = draw.choice([0.1, 0.5, 1.0, draw.random()]), draw.randrange(1 << 64)
    drawn = sampler.sample(words, reference.segment_word, probability, RandomStream(seed))
    expected = [
        mode.word(piece) + reference.separator.encode() * (number + 1 < len(pieces))
        if mode.end_of_word
        else bytes_to_notation(piece.encode("latin-1")).encode()
        for pieces in drawn
        for number, piece in enumerate(pieces)
    ]
    given = [mode.word(word) for word in words]
    _same("sampled subwords", bpe.segment_tokens(given, seed=seed, uniform_sampling=probability), expected)
    return len(words)


def _words(line: str, mode: Mode) -> list[str]:
    """Return the words of a line with its LF, in the form of the reference."""
    if mode == PRETOKENISED:
        return [word.decode("latin-1") for word in _pretokenised(line)]
    words = words_of(line)
    return [word.encode("utf-8").decode("latin-1") for word in words] if mode == BYTES else words


def _segmented(line: str, reference: ReferenceBPE, mode: Mode) -> bytes:
    if mode == CHARACTERS:
        return reference.process_line(line).encode("utf-8")
    if mode == BYTES:
        return reference.process_line(line.encode("utf-8").decode("latin-1")).encode("latin-1")
    return (reference_subwords(reference, _pretokenised(line)) + "\n" * line.endswith("\n")).encode("utf-8")


def _pretokenised(line: str) -> list[bytes]:
    return pretokenise(line.removesuffix("\n").encode("utf-8"), PATTERNS["gpt2"])


def _same(what: str, native: object, reference: object) -> None:
    if native != reference:
        raise Difference(f"{what} differ: the core gives {native!r:.500}, the reference {reference!r:.500}")
