"""A criterion beyond the training text: a scaffold token remains one only if it is rare in held-out text as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mt_scaffold.codes import Codes
from mt_scaffold.experiment.study.configuration import StudiedMethod
from mt_scaffold.experiment.study.measures import token_frequencies
from mt_scaffold.experiment.study.methods import Learned, learn_vocabulary, of_codes, surface
from mt_scaffold.experiment.study.texts import EVEN, ODD, UNSEEN, CountedText, Words
from mt_scaffold.methods import PlainBPE, Scaffold

_BPE, _SCAFFOLD = StudiedMethod(PlainBPE()), StudiedMethod(Scaffold())

# The text that the criterion counts in: the other half of the training text, or the very text to segment.
SAME_KIND, ORACLE = "other half", "same text"


@dataclass(frozen=True)
class Criterion:
    """Effect of the criterion: the scaffold tokens that become normal, and the subwords of the text afterwards."""

    returned: int
    subwords: int


@dataclass(frozen=True)
class Applied:
    """The subwords of a text with BPE and with Scaffold-BPE, and the effect of each criterion."""

    bpe: int
    scaffold: int
    criteria: dict[str, Criterion] = field(default_factory=dict)


@dataclass(frozen=True)
class HeldOutCell:
    """Codes learned from the even lines of a text. least: the frequency at and above which a token is not rare."""

    text: str
    size: int
    complete: bool
    scaffold_tokens: int
    least: int
    on: dict[str, Applied] = field(default_factory=dict)


def measure_held_out(
    name: str, size: int, min_frequency: int, text: CountedText, others: Mapping[str, CountedText]
) -> HeldOutCell:
    """Learn from the even lines of ``text``, and try the criterion on its held-out part and on ``others``.

    A scaffold token is rare if it occurs less often than the last token that was merged, in proportion to the sizes of
    the two texts, before anything is demolished.
    """
    bpe, scaffold = (learn_vocabulary(each, text.counts(EVEN), size, min_frequency) for each in (_BPE, _SCAFFOLD))
    assert scaffold.codes is not None
    if not (bpe.complete and scaffold.complete):
        return HeldOutCell(name, size, False, len(scaffold.codes.scaffold), 0)
    even = text.words(EVEN)
    undemolished = of_codes(scaffold.codes.with_scaffold(()))
    least = _frequencies(undemolished, even)[surface(scaffold.codes.merges[-1].token)]
    marked = scaffold.codes.scaffold
    cell = HeldOutCell(name, size, True, len(marked), least)
    half = text.words(ODD)
    for place, words in {UNSEEN: text.words(UNSEEN), **{each: others[each].words(UNSEEN) for each in others}}.items():
        applied = cell.on.setdefault(place, Applied(_subwords(bpe, words), _subwords(scaffold, words)))
        for where, seen in ((SAME_KIND, half), (ORACLE, words)):
            found = _frequencies(undemolished, seen)
            needed = max(1.0, least * seen.total / even.total)
            frequent = {token for token in marked if found.get(surface(token), 0) >= needed}
            codes = first_normal(scaffold.codes.with_scaffold(marked - frequent), size)
            applied.criteria[where] = Criterion(len(frequent), _subwords(of_codes(codes), words))
    return cell


def first_normal(codes: Codes, size: int) -> Codes:
    """Return the first merges of codes, up to ``size`` normal tokens."""
    normal = codes.normal
    met: set[str] = set()
    for number, merge in enumerate(codes.merges, 1):
        if merge.token in normal:
            met.add(merge.token)
            if len(met) == size:
                return Codes(b"\n".join(codes.text.split(b"\n")[: number + 1]) + b"\n", codes.name)
    return codes


def _frequencies(learned: Learned, words: Words) -> Mapping[str, int]:
    return token_frequencies(words.counts, learned.segment(list(words.counts)))


def _subwords(learned: Learned, words: Words) -> int:
    segmented = learned.segment(list(words.counts))
    return sum(len(each) * count for each, count in zip(segmented, words.counts.values(), strict=True))
