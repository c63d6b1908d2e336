"""Divide source packages among training, validation and test, and choose the segments to test on."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .cleaning import key, words
from .segments import KINDS, Document, Pair, family

# Shorter segments are too ambiguous to test on.
LEAST_WORDS = 4
# A test set and a validation set need at most this share of a kind's pairs each.
MOST_SHARE = 0.05
# A source package with a larger share of a kind always trains: held out, it would dominate the set or be a large loss.
DOMINATES = 0.2
# The same for its share of all text, counted as at least MUCH_TEXT: a package of manual pages has few pairs.
DOMINATES_TEXT = 0.05
MUCH_TEXT = 1_000_000
# A segment of COPY_WORDS or more is a near copy if a training segment has COPY_SHARE of its runs of RUN words.
COPY_WORDS = 8
COPY_SHARE = 0.75
RUN = 4
_SEVERAL = "\n"


@dataclass(frozen=True)
class Split:
    """Pairs of the parts: ``train``, and ``valid`` and ``test`` by kind."""

    part: dict[str, str]  # family: valid or test
    train: list[Pair]
    valid: dict[str, list[Pair]]
    test: dict[str, list[Pair]]
    near_copies: Counter[str]  # by part: held-out segments left out as near copies


def _order(text: str) -> bytes:
    return hashlib.sha256(f"1 {text}".encode("utf-8", "replace")).digest()


def choose_families(pairs: Sequence[Pair], texts: Sequence[Document], most: int) -> dict[str, str]:
    """Return the held-out families of source packages, each with its part, ``test`` or ``valid``.

    For each kind, the smallest first, families are taken in the order of the digests of their names until the set has
    ``most`` pairs (or MOST_SHARE of the kind) with no side in another family. Families with much of a kind's pairs
    (DOMINATES) or of ``texts`` (DOMINATES_TEXT) are passed over. The choice depends only on the arguments.
    """
    owner: dict[bytes, str] = {}
    keyed = []
    for pair in pairs:
        own = family(pair.package)
        keys = key(pair.source), key(pair.target)
        keyed.append((own, pair.kind, keys, words(pair.source) >= LEAST_WORDS))
        for each in keys:
            owner[each] = own if owner.get(each, own) == own else _SEVERAL
    size = Counter(kind for _, kind, _, _ in keyed)
    by_family: dict[str, Counter[str]] = defaultdict(Counter)
    alone: dict[str, Counter[str]] = defaultdict(Counter)
    for own, kind, keys, long_enough in keyed:
        by_family[own][kind] += 1
        if long_enough and all(owner[each] == own for each in keys):
            alone[own][kind] += 1
    text: Counter[str] = Counter()
    for document in texts:
        text[family(document.package)] += sum(map(len, document.paragraphs))
    most_text = DOMINATES_TEXT * max(text.total(), MUCH_TEXT)
    candidates = [
        own
        for own in sorted(by_family, key=_order)
        if text[own] <= most_text
        and all(count <= DOMINATES * size[kind] for kind, count in by_family[own].items() if size[kind] >= 1000)
    ]
    part: dict[str, str] = {}
    for kind in sorted(size, key=lambda kind: (size[kind], KINDS.index(kind))):
        for name in ("test", "valid"):
            wanted = min(most, int(MOST_SHARE * size[kind]))
            have = sum(alone[own][kind] for own, taken in part.items() if taken == name)
            for own in candidates:
                if have >= wanted:
                    break
                if own not in part and alone[own][kind]:
                    part[own] = name
                    have += alone[own][kind]
    return part


def near_copies(held_out: Sequence[str], training: Iterable[str]) -> set[int]:
    """Return the indices of the held-out segments of which a training segment has COPY_SHARE of the runs of RUN words.

    Segments of fewer than COPY_WORDS words are never near copies.
    """

    def runs(text: str) -> set[tuple[str, ...]]:
        tokens = text.casefold().split()
        return {tuple(tokens[start : start + RUN]) for start in range(len(tokens) - RUN + 1)}

    where: dict[tuple[str, ...], list[int]] = defaultdict(list)
    total = {}
    for index, text in enumerate(held_out):
        if len(text.split()) >= COPY_WORDS:
            own = runs(text)
            total[index] = len(own)
            for run in own:
                where[run].append(index)
    found: set[int] = set()
    for text in training:
        common = Counter(index for run in runs(text) for index in where.get(run, ()))
        found.update(index for index, count in common.items() if count >= COPY_SHARE * total[index])
    return found


def split(pairs: Sequence[Pair], texts: Sequence[Document], most: int) -> Split:
    """Split ``pairs`` by source package into train, and a validation and a test set of up to ``most`` pairs per kind.

    A held-out pair is used only if neither side has the same letters as a segment of the training pairs or a paragraph
    of ``texts`` in a training package, and if its source is not a near copy of a training one. The test set is filled
    before the validation set. Other pairs of held-out packages are in no part.
    """
    part = choose_families(pairs, texts, most)
    train = [pair for pair in pairs if family(pair.package) not in part]
    taken = {each for pair in train for each in (key(pair.source), key(pair.target))}
    for document in texts:
        if family(document.package) not in part:
            taken.update(map(key, document.paragraphs))
    sets: dict[str, dict[str, list[Pair]]] = {}
    copies: Counter[str] = Counter()
    for name in ("test", "valid"):
        eligible: list[Pair] = []
        for pair in pairs:
            keys = {key(pair.source), key(pair.target)}
            enough = words(pair.source) >= LEAST_WORDS and words(pair.target) >= LEAST_WORDS - 1
            if part.get(family(pair.package)) == name and enough and not keys & taken:
                eligible.append(pair)
                taken |= keys
        near = near_copies([pair.source for pair in eligible], (pair.source for pair in train))
        copies[name] = len(near)
        sets[name] = {}
        for kind in KINDS:
            own = [pair for index, pair in enumerate(eligible) if pair.kind == kind and index not in near]
            chosen = set(sorted(own, key=lambda pair: _order(f"{pair.source}\t{pair.target}"))[:most])
            sets[name][kind] = [pair for pair in own if pair in chosen]
    # In an order in which the first N pairs are a sample of all pairs.
    train.sort(key=lambda pair: _order(f"{pair.source}\t{pair.target}"))
    return Split(part, train, sets["valid"], sets["test"], copies)


def split_documents(
    texts: Sequence[Document], part: dict[str, str], most_bytes: int
) -> dict[str, dict[str, list[Document]]]:
    """Return the documents of train, valid and test by kind.

    In valid and test, documents are added until there are ``most_bytes`` of a kind; paragraphs with the same letters as
    a training one are removed.
    """
    sets: dict[str, dict[str, list[Document]]] = {name: {} for name in ("train", "valid", "test")}
    for document in texts:
        name = part.get(family(document.package), "train")
        sets[name].setdefault(document.kind, []).append(document)
    taken = {key(text) for own in sets["train"].values() for document in own for text in document.paragraphs}
    for name in ("test", "valid"):
        for kind, own in sets[name].items():
            kept, size = [], 0
            for document in sorted(own, key=lambda document: _order(document.name)):
                left = tuple(text for text in document.paragraphs if key(text) not in taken)
                if left and size < most_bytes:
                    kept.append(Document(document.kind, document.package, document.name, left))
                    size += sum(len(text.encode()) + 1 for text in left)
                    taken.update(map(key, left))
            sets[name][kind] = kept
    return sets
