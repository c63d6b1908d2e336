"""Sentences of the test sets that occur in the training data too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mt_scaffold.experiment.runtime.result_warnings import ResultWarning

Pairs = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True)
class TestOverlap:
    """Lines of a test set, and how many of them the training data has too: as a source, as a target, as a pair.

    Blank lines are no sentences, and in no training data.
    """

    __test__ = False  # pytest would collect the class because of its name

    lines: int
    source_in_train: int
    target_in_train: int
    pair_in_train: int


class Overlap:
    """Counts the test sentences that also occur in the training data, which must be watched after the test sets."""

    def __init__(self) -> None:
        self._tests: dict[str, list[tuple[bytes, bytes]]] = {}
        self._sources: dict[bytes, bool] = {}
        self._targets: dict[bytes, bool] = {}
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
            # What is not here is not found.
            if not _is_blank(source):
                self._sources[source] = False
            if not _is_blank(target):
                self._targets[target] = False
            self._pairs[source, target] = False
            yield pair

    def _look(self, pairs: Pairs) -> Iterator[tuple[bytes, bytes]]:
        for pair in pairs:
            source, target = pair[0].strip(), pair[1].strip()
            in_source, in_target = source in self._sources, target in self._targets
            if in_source:
                self._sources[source] = True
            if in_target:
                self._targets[target] = True
            if in_source and in_target and (source, target) in self._pairs:
                self._pairs[source, target] = True
            yield pair

    def counts(self) -> dict[str, TestOverlap]:
        """Return the overlap of each test set with the training data, once that has been read."""
        return {
            name: TestOverlap(
                lines=len(test),
                source_in_train=sum(self._sources.get(source, False) for source, _ in test),
                target_in_train=sum(self._targets.get(target, False) for _, target in test),
                pair_in_train=sum(self._pairs[pair] for pair in test),
            )
            for name, test in self._tests.items()
        }

    def warnings(self) -> list[ResultWarning]:
        """Return a warning for each test set that shares sentences with the training data."""
        return [
            ResultWarning(
                "test-in-train",
                name,
                f"of {count.lines:,}, {count.source_in_train:,} as a source, {count.target_in_train:,} as a target, "
                f"{count.pair_in_train:,} with the same translation",
            )
            for name, count in self.counts().items()
            if count.source_in_train or count.target_in_train
        ]


def _is_blank(line: bytes) -> bool:
    """Whether a line has nothing but white space, U+3000 and the like included."""
    return not line.decode("utf-8", "replace").strip()
