"""A packed model, loaded: raw text → raw text, by fairseq's own beam search."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.binarise.dictionary import END_ID
from mt_scaffold.experiment.data.moses import Tokeniser
from mt_scaffold.experiment.data.tokenise import detokenise
from mt_scaffold.experiment.inference.packed_folder import (
    read_manifest,
)
from mt_scaffold.experiment.inference.packed_search import Search, device_of
from mt_scaffold.experiment.inference.packed_workers import Workers
from mt_scaffold.options import worker_count

# What fairseq-generate takes where neither --max-tokens nor --batch-size is given.
_BATCH_TOKENS = 12000


@dataclass(frozen=True)
class Hypothesis:
    """A translation of one line, as text, with fairseq's score.

    score: the log-probability, to base 2, divided by (tokens ** lenpen), as fairseq-generate prints it.
    """

    text: str
    score: float


@dataclass(frozen=True)
class _Part:
    """A sentence, or a part of one that is too long: the line it is from (from 0), and its ids with ``</s>``."""

    line: int
    ids: Any


class PackedModel:
    """A model that ``mt-scaffold pack`` has packed, ready to translate.

    folder: what ``pack`` made. device: ``cpu``, ``cuda`` or ``cuda:N``; None takes a GPU where PyTorch sees one.
    beam, lenpen: instead of those that the experiment translated with. batch_tokens: the most subwords, padding
    included, that are translated at once. num_workers: processes on a CPU, each of one thread; the output is the same
    for any number. test_set: tokenise as this test set of the experiment was, where that differs from other text.

    Raises MTScaffoldError where the folder is not a packed model, is incomplete or has been changed, and where a GPU is
    requested but there is none; UsageError for options out of range.

    >>> with PackedModel("packed") as model:  # doctest: +SKIP
    ...     model.translate(["A dog runs."])
    ['Ein Hund rennt.']
    """

    def __init__(
        self,
        folder: PathLike,
        *,
        device: str | None = None,
        beam: int | None = None,
        lenpen: float | None = None,
        batch_tokens: int | None = None,
        num_workers: int = 1,
        test_set: str | None = None,
    ) -> None:
        for name, value in (("--beam", beam), ("--batch-tokens", batch_tokens)):
            if value is not None and value < 1:
                raise UsageError(f"{name} {value}: must be 1 or more")
        if lenpen is not None and not math.isfinite(lenpen):
            raise UsageError(f"--lenpen {lenpen}: must be a number")
        workers = worker_count(num_workers)
        self.manifest = read_manifest(folder)
        choices = self.manifest.tokenise
        if test_set is not None:
            if test_set not in (sets := self.manifest.test_sets):
                known = ", ".join(sets) or "none"
                raise UsageError(f"--test-set {test_set}: {folder} knows no such test set (known: {known})")
            choices = sets[test_set].tokenise or choices
        self._tokenise = Tokeniser(self.manifest.source, choices)
        self.device = device_of(device)
        self._search = Search(Path(folder), self.manifest, self.device, beam, lenpen)
        search = self.manifest.translate
        self.beam = self._search.beam
        self._batch_sentences = search.batch_size if batch_tokens is None else None
        self._batch_tokens = batch_tokens or search.max_tokens
        if self._batch_tokens is None and self._batch_sentences is None:
            self._batch_tokens = _BATCH_TOKENS
        self._workers = Workers(self._search, workers if self.device.type == "cpu" else 1)
        self._lines_before = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close(kill=error is not None)

    def close(self, kill: bool = False) -> None:
        """End the worker processes; kill: without waiting for what they translate."""
        self._workers.close(kill)

    def translate(self, lines: Iterable[str]) -> list[str]:
        """Return the translation of each line; an empty one has an empty translation."""
        return [best[0].text for best in self.hypotheses(lines)]

    def hypotheses(
        self, lines: Iterable[str], n_best: int = 1, show: Callable[[int], None] | None = None
    ) -> list[list[Hypothesis]]:
        """Return the ``n_best`` translations of each line, the best first; an empty line has one, which is empty.

        All lines are batched together, by length, so that some hundred at a time take the least time per line. A
        sentence of more subwords than the model has positions is translated in parts, cut between words; a warning
        names its line, counted from 1 over all calls. ``show`` is called with the number of sentences that are done.

        Raises UsageError where the beam is smaller than ``n_best``, and where a line is no string, or one with a lone
        surrogate, which is no character.
        """
        if not 1 <= n_best <= self.beam:
            raise UsageError(f"--n-best {n_best}: must be 1 to the size of the beam, {self.beam}")
        if isinstance(lines, str | bytes):
            raise UsageError(f"lines are a list of strings, not a {type(lines).__name__}; pass a single line as [line]")
        words = [self._tokenise(f"{_checked(line)}\n") for line in lines]
        parts = list(self._parts(words))
        self._lines_before += len(words)
        found: list[list[list[tuple[str, float]]]] = [[] for _ in words]
        for part, translations in zip(parts, self._translated(parts, n_best, show), strict=True):
            found[part.line].append(translations)
        joined = [_joined(each) for each in found]
        texts = iter(detokenise([text for each in joined for text, _ in each], self.manifest.target))
        return [[Hypothesis(next(texts), score) for _, score in each] for each in joined]

    def _parts(self, lines: Sequence[str]) -> Iterator[_Part]:
        """Yield the ids of the lines that are not empty."""
        import numpy

        most = self._search.positions - 1
        encoded = self._search.encode(lines)
        for number, (line, ids) in enumerate(zip(lines, encoded, strict=True)):
            pieces = [ids] if len(ids) <= most else _cut(self._search.encode(line.split(" ")), most)
            if len(pieces) > 1:
                print(
                    f"mt-scaffold: warning: line {self._lines_before + number + 1}: {len(ids)} subwords, and the model "
                    f"takes {most}; translated in {len(pieces)} parts",
                    file=sys.stderr,
                )
            if line:
                yield from (_Part(number, numpy.append(piece, END_ID)) for piece in pieces)

    def _translated(
        self, parts: Sequence[_Part], n_best: int, show: Callable[[int], None] | None
    ) -> list[list[tuple[str, float]]]:
        """Return the translations of each part, in words, with their scores."""
        sentences = [part.ids for part in parts]
        batches = self._search.batches(sentences, self._batch_tokens, self._batch_sentences)
        # The last take the longest; begun first, they leave no worker alone at the end.
        batches.reverse()
        work = [([sentences[place] for place in batch], n_best) for batch in batches]
        found: dict[int, list[tuple[str, float]]] = {}
        for batch, translations in zip(batches, self._workers.run(work), strict=True):
            found.update(zip(batch, translations, strict=True))
            if show is not None:
                show(len(found))
        return [found[place] for place in range(len(parts))]


def _checked(line: object) -> str:
    """Return a line as it is. Raises UsageError where it is no text."""
    if not isinstance(line, str):
        raise UsageError(f"a line is a string, not a {type(line).__name__}; decode bytes first")
    if found := re.search("[\ud800-\udfff]", line):
        raise UsageError(f"a line holds {found[0]!r}, a lone surrogate and not a character; remove it")
    return line


def _cut(words: Sequence[Any], most: int) -> list[Any]:
    """Return the ids of words as about equal parts of at most ``most`` ids; only a longer word is cut itself."""
    import numpy

    pieces = [word[start : start + most] for word in words for start in range(0, len(word), most)]
    total = sum(map(len, pieces))
    goal = math.ceil(total / math.ceil(total / most))
    parts: list[list[Any]] = [[]]
    length = 0
    for piece in pieces:
        if parts[-1] and length + len(piece) > goal:
            parts.append([])
            length = 0
        parts[-1].append(piece)
        length += len(piece)
    return [numpy.concatenate(part) for part in parts]


def _joined(parts: Sequence[Sequence[tuple[str, float]]]) -> list[tuple[str, float]]:
    """Return the translations of a line from those of its parts, best with best; scores are the mean of theirs."""
    if not parts:
        return [("", 0.0)]
    return [
        (" ".join(text for text, _ in each), sum(score for _, score in each) / len(each))
        for each in zip(*parts, strict=False)
    ]
