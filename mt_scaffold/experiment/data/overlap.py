"""Count the sentences of the test sets that also occur in the training data, exactly or nearly."""

from __future__ import annotations

import functools
import itertools
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mt_scaffold.experiment.runtime.result_warnings import ResultWarning

Pairs = Iterable[tuple[bytes, bytes]]
Words = tuple[str, ...]
# Shorter sentences one word apart may have nothing to do with each other.
_FEWEST_WORDS = 4
# The same for scripts without spaces, where every character is a word.
_FEWEST_CHARACTERS = 8
_UNSPACED = "".join(
    rf"\p{{{script}}}" for script in ("Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan")
)


@dataclass(frozen=True)
class TestOverlap:
    """Lines of a test set, and how many of them the training data also has: as a source, as a target, as a pair.

    near_source, near_target: how many it has exactly or nearly: the same words except for case and numbers, or one word
    more, less or different, of four or more (in scripts without spaces, one character of eight or more). Blank lines
    never count. near: the numbers, from 0, of the lines of which it has a side, at least nearly; None in records of
    earlier versions, and of generated text, whose sentences are all alike.
    """

    __test__ = False  # pytest would collect the class because of its name

    lines: int
    source_in_train: int
    target_in_train: int
    pair_in_train: int
    near_source: int = 0
    near_target: int = 0
    near: list[int] | None = field(default=None, repr=False, metadata={"omit_none": True})


class Overlap:
    """Counts the test sentences that also occur in the training data; watch the test sets first."""

    def __init__(self) -> None:
        self._tests: dict[str, list[tuple[bytes, bytes]]] = {}
        self._further: dict[str, list[list[bytes]]] = {}
        self._sides = (_Side(), _Side())
        self._pairs: dict[tuple[bytes, bytes], bool] = {}

    def watch(self, corpus: str, parts: Iterable[tuple[str, Pairs]]) -> Iterator[tuple[str, Pairs]]:
        """Yield the same parts, noting or looking up each pair on the way."""
        for origin, pairs in parts:
            if corpus == "train":
                yield origin, self._look(pairs)
            elif corpus == "valid":
                yield origin, pairs
            else:
                yield origin, self._note(self._tests.setdefault(corpus, []), pairs)

    def _note(self, test: list[tuple[bytes, bytes]], pairs: Pairs) -> Iterator[tuple[bytes, bytes]]:
        for pair in pairs:
            source, target = pair[0].strip(), pair[1].strip()
            test.append((source, target))
            for side, line in zip(self._sides, (source, target), strict=True):
                side.note(line)
            self._pairs[source, target] = False
            yield pair

    def _look(self, pairs: Pairs) -> Iterator[tuple[bytes, bytes]]:
        for pair in pairs:
            source, target = pair[0].strip(), pair[1].strip()
            in_source, in_target = self._sides[0].look(source), self._sides[1].look(target)
            if in_source and in_target and (source, target) in self._pairs:
                self._pairs[source, target] = True
            yield pair

    def note_reference(self, test: str, lines: Iterable[bytes]) -> None:
        """Note a further reference of a test set that has been watched."""
        stripped = [line.strip() for line in lines]
        self._further.setdefault(test, []).append(stripped)
        for line in stripped:
            self._sides[1].note(line)

    def _near_targets(self, test: str) -> list[bool]:
        several = [[lines[1] for lines in self._tests[test]], *self._further.get(test, [])]
        return [any(map(self._sides[1].is_near, references)) for references in zip(*several, strict=True)]

    def near(self, test: str) -> list[bool]:
        """Return, for each line of a test set, whether the training data has its source or target, at least nearly."""
        sources = (self._sides[0].is_near(lines[0]) for lines in self._tests[test])
        return [source or target for source, target in zip(sources, self._near_targets(test), strict=True)]

    def counts(self) -> dict[str, TestOverlap]:
        """Return the overlap of each test set with the training data that has been read."""
        source, target = self._sides
        return {
            name: TestOverlap(
                lines=len(test),
                source_in_train=sum(source.is_there(lines[0]) for lines in test),
                target_in_train=sum(target.is_there(lines[1]) for lines in test),
                pair_in_train=sum(self._pairs[pair] for pair in test),
                near_source=sum(source.is_near(lines[0]) for lines in test),
                near_target=sum(self._near_targets(name)),
                near=[number for number, near in enumerate(self.near(name)) if near],
            )
            for name, test in self._tests.items()
        }

    def warnings(self, near: bool = True) -> list[ResultWarning]:
        """Return a warning for each test set with sentences in the training data, exactly or (``near``) nearly."""
        return [
            ResultWarning(
                "test-in-train",
                name,
                f"of {count.lines:,}, {count.source_in_train:,} as a source, {count.target_in_train:,} as a target, "
                f"{count.pair_in_train:,} with the same translation; at least nearly, {count.near_source:,} as a "
                f"source, {count.near_target:,} as a target",
            )
            for name, count in self.counts().items()
            if count.source_in_train or count.target_in_train or (near and (count.near_source or count.near_target))
        ]


class _Side:
    """The sentences of one side of the test sets, and which of them the training data has."""

    def __init__(self) -> None:
        self._there: dict[bytes, bool] = {}
        self._near: dict[Words, bool] = {}
        # A key → the test sentences that have it; without those of keys that the training data has.
        self._by_key: defaultdict[int, list[Words]] = defaultdict(list)

    def note(self, line: bytes) -> None:
        """Note a sentence of a test set; ignore a blank line."""
        if _is_blank(line):
            return
        self._there[line] = False
        words = _words(line)
        if words not in self._near:
            self._near[words] = False
            unspaced = _expressions()[2].match(words[0])
            if len(words) >= (_FEWEST_CHARACTERS if unspaced else _FEWEST_WORDS):
                for key in _keys(words):
                    self._by_key[key].append(words)

    def look(self, line: bytes) -> bool:
        """Look up a sentence of the training data; return whether a test set has exactly this."""
        found = line in self._there
        if found:
            self._there[line] = True
        words = _words(line)
        if words in self._near:
            self._near[words] = True
        if len(words) >= _FEWEST_WORDS - 1:
            # Each list is read once, so that the cost does not grow with the number of alike sentences.
            for key in _keys(words) & self._by_key.keys():
                self._near.update(dict.fromkeys(self._by_key.pop(key), True))
        return found

    def is_there(self, line: bytes) -> bool:
        return self._there.get(line, False)

    def is_near(self, line: bytes) -> bool:
        return self.is_there(line) or (not _is_blank(line) and self._near.get(_words(line), False))


@functools.cache
def _expressions() -> tuple[Any, Any, Any, Any]:
    """Return expressions for words, a number in a word, a character of a script without spaces, and invisible ones."""
    import regex

    words = regex.compile(rf"[{_UNSPACED}]\p{{M}}*|[\p{{L}}\p{{M}}\p{{N}}--[{_UNSPACED}]]+", regex.V1)
    return words, regex.compile(r"\p{N}+"), regex.compile(f"[{_UNSPACED}]"), regex.compile(r"\p{Cf}+")


def _words(line: bytes) -> Words:
    """Return the words of a sentence, in lower case and without punctuation, with 0 for every number.

    Canonically equivalent words are equal, and invisible characters, such as soft hyphens, are left out.
    """
    words, number, _, invisible = _expressions()
    text = line.decode("utf-8", "replace")
    if not text.isascii():
        text = invisible.sub("", unicodedata.normalize("NFD", text))
    found = words.findall(unicodedata.normalize("NFC", text.casefold()))
    # A sentence without words, such as "..." or "10:30", is compared as it is.
    if not any(map(str.isalpha, "".join(found))):
        return (text,)
    return tuple(number.sub("0", word) for word in found)


def _keys(words: Words) -> set[int]:
    """Return the keys of a sentence, of which another shares one if it is equal or one word apart, and else none.

    A key is a hash of the words before a place and of those after it, with or without the word there.
    """
    begins = [*itertools.accumulate(words, lambda before, word: hash((before, word)), initial=0)]
    ends = [*itertools.accumulate(reversed(words), lambda after, word: hash((after, word)), initial=1)][::-1]
    return {*map(hash, zip(begins, ends, strict=True)), *map(hash, zip(begins[:-1], ends[1:], strict=True))}


def _is_blank(line: bytes) -> bool:
    """Return whether a line is only white space, Unicode's (such as U+3000) included."""
    return not line.decode("utf-8", "replace").strip()
