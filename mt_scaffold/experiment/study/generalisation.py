"""Where Scaffold-BPE has more and where it has fewer subwords than BPE of the same size.

Per word, subwords(Scaffold-BPE) - subwords(BPE) = gain + cost. The gain, mostly negative, is the difference before
anything is demolished, because Scaffold-BPE has more merges, those of scaffold tokens; the cost is the number of
subwords that demolishing adds: for each remaining scaffold token, its parts minus one. Both are split by the frequency
of the word in the training text, and the cost also by that of the demolished scaffold token.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from mt_scaffold.codes import Codes
from mt_scaffold.experiment.study.configuration import StudiedMethod
from mt_scaffold.experiment.study.measures import token_frequencies
from mt_scaffold.experiment.study.methods import Learned, learn_vocabulary, of_codes, surface
from mt_scaffold.experiment.study.texts import TRAIN, UNSEEN, CountedText, Words, fraction_name
from mt_scaffold.methods import PlainBPE, Scaffold

_BPE, _SCAFFOLD = StudiedMethod(PlainBPE()), StudiedMethod(Scaffold())

# Minimum frequency of each class → its name.
CLASSES = {0: "0", 1: "1", 2: "2-9", 10: "10-99", 100: "100-999", 1000: "1000+"}
_TOP = 15


@dataclass(frozen=True)
class Share:
    """A class of words in a text: distinct words, words, BPE's subwords, and Scaffold-BPE's gain and cost in these."""

    types: int
    words: int
    bpe: int
    gain: int
    cost: int


@dataclass(frozen=True)
class Demolished:
    """A scaffold token that is demolished in a text: how often, its parts, and its frequency in the training text."""

    token: str
    frequency: int
    parts: int
    train_frequency: int


@dataclass(frozen=True)
class Comparison:
    """Both segmentations of one text.

    bpe, scaffold: subwords. by_word: frequency class of the word in the training text → its share. by_token: frequency
    class of the undemolished scaffold token in the training text → the subwords that demolishing adds; they add up to
    the cost of all words. top: the scaffold tokens that add most.
    """

    words: int
    bpe: int
    scaffold: int
    by_word: dict[str, Share]
    by_token: dict[str, int]
    top: list[Demolished]


@dataclass(frozen=True)
class TokenClass:
    """Tokens of a class in the training text: their number in the vocabularies, share of all tokens, and part of H."""

    tokens: int
    share_bpe: float
    share_scaffold: float
    bits_bpe: float
    bits_scaffold: float


@dataclass(frozen=True)
class GeneralisationCell:
    """BPE and Scaffold-BPE, learned from one part of a text.

    complete: false if the text was too small for N; then nothing is compared. scaffold_tokens: their number. on: text →
    comparison of the two on it. entropy: token class → its part in the entropy of the training text.
    """

    text: str
    size: int
    fraction: int
    min_frequency: int
    complete: bool
    scaffold_tokens: int
    on: dict[str, Comparison] = field(default_factory=dict)
    entropy: dict[str, TokenClass] = field(default_factory=dict)


def measure_generalisation(
    name: str, size: int, fraction: int, min_frequency: int, texts: Mapping[str, CountedText]
) -> GeneralisationCell:
    """Learn both algorithms and compare them. texts: the text to learn from as ``train``, the others by name."""
    part = fraction_name(fraction)
    files = texts[TRAIN].counts(part)
    bpe, scaffold = (learn_vocabulary(each, files, size, min_frequency) for each in (_BPE, _SCAFFOLD))
    complete = bpe.complete and scaffold.complete
    assert scaffold.codes is not None
    cell = GeneralisationCell(name, size, fraction, min_frequency, complete, len(scaffold.codes.scaffold))
    if not complete:
        return cell
    train = texts[TRAIN].words(part)
    undemolished = of_codes(scaffold.codes.with_scaffold(()))
    frequencies = token_frequencies(train.counts, undemolished.segment(list(train.counts)))
    for other, text in {TRAIN: train, UNSEEN: texts[TRAIN].words(UNSEEN)}.items():
        cell.on[other] = compare(bpe, scaffold, undemolished, text, train.counts, frequencies)
    for other, counted in texts.items():
        if other != TRAIN:
            words = counted.words(UNSEEN)
            cell.on[other] = compare(bpe, scaffold, undemolished, words, train.counts, frequencies)
    cell.entropy.update(entropy_by_class(bpe, scaffold, train))
    return cell


def compare(
    bpe: Learned,
    scaffold: Learned,
    undemolished: Learned,
    text: Words,
    train: Mapping[str, int],
    frequencies: Mapping[str, int],
) -> Comparison:
    """Compare both segmentations of a text.

    undemolished: the merges of ``scaffold`` without its marks. train: the words that were learned from. frequencies: of
    their tokens, as ``undemolished`` segments them.
    """
    assert scaffold.codes is not None
    parts = parts_of(scaffold.codes)
    words = list(text.counts)
    by_word = {label: [0, 0, 0, 0, 0] for label in CLASSES.values()}
    demolished: Counter[str] = Counter()
    for word, one, raw, other in zip(
        words, bpe.segment(words), undemolished.segment(words), scaffold.segment(words), strict=True
    ):
        count = text.counts[word]
        share = by_word[class_of(train.get(word, 0))]
        added = (1, count, len(one) * count, (len(raw) - len(one)) * count, (len(other) - len(raw)) * count)
        for place, value in enumerate(added):
            share[place] += value
        for subword in raw:
            if subword in parts:
                demolished[subword] += count
    by_token = dict.fromkeys(CLASSES.values(), 0)
    costs = {token: count * (parts[token] - 1) for token, count in demolished.items()}
    for token, cost in costs.items():
        by_token[class_of(frequencies.get(token, 0))] += cost
    top = sorted(costs, key=lambda token: (-costs[token], token))[:_TOP]
    shares = {label: Share(*values) for label, values in by_word.items()}
    subwords = sum(share.bpe for share in shares.values())
    return Comparison(
        words=text.total,
        bpe=subwords,
        scaffold=subwords + sum(share.gain + share.cost for share in shares.values()),
        by_word=shares,
        by_token=by_token,
        top=[Demolished(token, demolished[token], parts[token], frequencies.get(token, 0)) for token in top],
    )


def parts_of(codes: Codes) -> dict[str, int]:
    """Return the number of subwords that each scaffold token is demolished into, by its form in segmented text."""
    scaffold = codes.scaffold
    counts: dict[str, int] = {}
    # If several merges make a token, the shortest result wins. Parts come before the longer tokens they are in.
    for left, right, _ in sorted(codes.merges, key=lambda merge: len(merge.token)):
        if left + right in scaffold:
            total = counts.get(left, 1) + counts.get(right, 1)
            counts[left + right] = min(total, counts.get(left + right, total))
    return {surface(token): count for token, count in counts.items()}


def class_of(frequency: int) -> str:
    """Return the name of a frequency's class."""
    return CLASSES[max(least for least in CLASSES if least <= frequency)]


def entropy_by_class(bpe: Learned, scaffold: Learned, train: Words) -> dict[str, TokenClass]:
    """Split the entropy of both segmentations, H = -Σ p log2 p, by how Scaffold-BPE changes a token.

    Classes: ``removed`` (only BPE has it), ``new`` (only Scaffold-BPE), and of those that both have ``as_frequent``,
    ``rarer`` and ``more_frequent`` with Scaffold-BPE.
    """
    words = list(train.counts)
    one, other = (token_frequencies(train.counts, each.segment(words)) for each in (bpe, scaffold))
    totals = one.total(), other.total()
    removed, new = bpe.merged - scaffold.merged, scaffold.merged - bpe.merged
    classes: dict[str, list[float]] = {}
    # Sorted, because sums of floating-point numbers depend on their order.
    for token in sorted(one.keys() | other.keys() | bpe.merged | scaffold.merged):
        change = other[token] - one[token]
        kept = "more_frequent" if change > 0 else "rarer" if change < 0 else "as_frequent"
        name = "removed" if token in removed else "new" if token in new else kept
        figures = classes.setdefault(name, [0, 0.0, 0.0, 0.0, 0.0])
        figures[0] += 1
        for place, (frequencies, total) in enumerate(zip((one, other), totals, strict=True)):
            if frequencies[token]:
                share = frequencies[token] / total
                figures[1 + place] += share
                figures[3 + place] -= share * math.log2(share)
    return {name: TokenClass(int(figures[0]), *figures[1:]) for name, figures in sorted(classes.items())}
