"""A packed model, loaded: raw text → raw text, by fairseq's own beam search."""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, Self

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.dictionary import END_ID, UNKNOWN_ID, read_ids
from mt_scaffold.experiment.fairseq_tools import no_gpu_message, sees_gpu
from mt_scaffold.experiment.moses import Tokeniser
from mt_scaffold.experiment.packed_folder import (
    OPTIONS,
    WEIGHTS,
    BeamSearch,
    dictionary_name,
    read_json,
    read_manifest,
)
from mt_scaffold.experiment.packed_weights import build_model, load_plugin, read_weights
from mt_scaffold.experiment.packed_workers import Workers
from mt_scaffold.experiment.segmentation import stored_segmentation
from mt_scaffold.experiment.tokenise import detokenise
from mt_scaffold.files import PathLike
from mt_scaffold.options import worker_count
from mt_scaffold.text import join_subwords

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
        workers = worker_count(num_workers)
        self.manifest = read_manifest(folder)
        choices = self.manifest.tokenise
        if test_set is not None:
            if test_set not in (sets := self.manifest.test_sets):
                known = ", ".join(sets) or "none"
                raise UsageError(f"--test-set {test_set}: {folder} knows no such test set (known: {known})")
            choices = sets[test_set].tokenise or choices
        self._tokenise = Tokeniser(self.manifest.source, choices)
        self.device = _device(device)
        self._search = _Search(Path(folder), self.manifest, self.device, beam, lenpen)
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

        Raises UsageError where the beam is smaller than ``n_best``.
        """
        if not 1 <= n_best <= self.beam:
            raise UsageError(f"--n-best {n_best}: must be 1 to the size of the beam, {self.beam}")
        words = [self._tokenise(f"{line}\n") for line in lines]
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


class _Search:
    """fairseq's model and beam search: ids of sentences → translations in words."""

    def __init__(self, folder: Path, manifest: Any, device: Any, beam: int | None, lenpen: float | None) -> None:
        load_plugin()
        from fairseq import utils
        from fairseq.data import Dictionary
        from fairseq.dataclass.configs import GenerationConfig
        from fairseq.tasks.translation import TranslationConfig, TranslationTask

        chosen: BeamSearch = manifest.translate
        segmentation = stored_segmentation(folder)
        if any(
            Path(path).name not in manifest.files for path in {*segmentation.codes, *(segmentation.vocabularies or ())}
        ):
            raise MTScaffoldError(f"{folder}: its segmentation names a file that was not packed; pack the model again")
        self._separator = segmentation.separator
        paths = [folder / dictionary_name(language) for language in manifest.languages]
        self._encoder = segmentation.segmenters()[0].encoder(read_ids(paths[0]), UNKNOWN_ID)
        source, target = (Dictionary.load(str(path)) for path in paths)
        configuration = TranslationConfig(
            source_lang=manifest.source,
            target_lang=manifest.target,
            max_source_positions=chosen.max_source_positions,
        )
        self._task = TranslationTask(configuration, source, target)
        weights = read_weights(folder / WEIGHTS, manifest.tied)
        self._model = build_model(read_json(folder / OPTIONS), weights, self._task, folder / OPTIONS)
        self._device = device
        if device.type != "cpu":
            self._model = (self._model.half() if chosen.fp16 else self._model).to(device)
        generation = GenerationConfig(
            beam=beam or chosen.beam,
            lenpen=chosen.lenpen if lenpen is None else lenpen,
            unkpen=chosen.unkpen,
            max_len_a=chosen.max_len_a,
            max_len_b=chosen.max_len_b,
            min_len=chosen.min_len,
            unnormalized=chosen.unnormalized,
            temperature=chosen.temperature,
            no_repeat_ngram_size=chosen.no_repeat_ngram_size,
        )
        self._model.prepare_for_inference_(SimpleNamespace(generation=generation))
        self._model.eval()
        self._generator = self._task.build_generator([self._model], generation)
        self.beam = int(self._generator.beam_size)
        positions = utils.resolve_max_positions(self._task.max_positions(), self._model.max_positions())
        self.positions = int(positions[0])

    def encode(self, lines: Sequence[str]) -> list[Any]:
        """Return the ids of the subwords of each line of words."""
        import numpy

        ids, offsets = (numpy.asarray(buffer) for buffer in self._encoder.encode(lines))
        return [ids[start:end] for start, end in itertools.pairwise(offsets.tolist())]

    def batches(self, sentences: Sequence[Any], tokens: int | None, most: int | None) -> list[list[int]]:
        """Return the places of the sentences of each batch, which are those of fairseq-generate.

        A sentence of more than ``tokens``, for which fairseq-generate would fail, is a batch by itself.
        """
        if not sentences:
            return []
        dataset = self._dataset(sentences)
        order = dataset.ordered_indices()
        longer = dataset.src_sizes[order] > (tokens or math.inf)
        found = dataset.batch_by_size(order[~longer], max_tokens=tokens, max_sentences=most)
        return [*([int(place) for place in batch] for batch in found), *([int(place)] for place in order[longer])]

    def __call__(self, work: tuple[Sequence[Any], int]) -> list[list[tuple[str, float]]]:
        """Return the best translations of each sentence of a batch, in words, and their scores; work: it, how many."""
        from fairseq import utils

        sentences, n_best = work
        dataset = self._dataset(sentences)
        sample = dataset.collater([dataset[place] for place in range(len(sentences))])
        if self._device.type != "cpu":
            sample = utils.move_to_cuda(sample, self._device)
        with _one_thread(self._device):
            hypotheses = self._task.inference_step(self._generator, [self._model], sample)
        found: list[list[tuple[str, float]]] = [[] for _ in sentences]
        for place, best in zip(sample["id"].tolist(), hypotheses, strict=True):
            found[place] = [self._words(hypothesis) for hypothesis in best[:n_best]]
        return found

    def _words(self, hypothesis: dict[str, Any]) -> tuple[str, float]:
        ignored = self._generator.symbols_to_strip_from_output
        tokens = hypothesis["tokens"].int().cpu()
        subwords = self._task.target_dictionary.string(tokens, None, extra_symbols_to_ignore=ignored)
        return join_subwords(subwords, self._separator), float(hypothesis["score"] / math.log(2))

    def _dataset(self, sentences: Sequence[Any]) -> Any:
        import torch
        from fairseq.data import LanguagePairDataset

        return LanguagePairDataset(
            [torch.as_tensor(ids, dtype=torch.int64) for ids in sentences],
            [len(ids) for ids in sentences],
            self._task.source_dictionary,
            tgt_dict=self._task.target_dictionary,
            shuffle=False,
        )


@contextlib.contextmanager
def _one_thread(device: Any) -> Iterator[None]:
    """Have PyTorch compute on one thread of a CPU: the order of its sums depends on their number."""
    import torch

    before = torch.get_num_threads()
    if device.type != "cpu" or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _device(name: str | None) -> Any:
    """Return the device of PyTorch that a name means."""
    import torch

    if name is None:
        return torch.device("cuda" if sees_gpu() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise UsageError(f"--device {name}: give cpu, cuda, or cuda:N for one of several GPUs")
    if device.type == "cuda":
        if not sees_gpu():
            raise MTScaffoldError(f"--device {name}: PyTorch finds no GPU on this machine: {no_gpu_message()}")
        if (device.index or 0) >= torch.cuda.device_count():
            raise UsageError(f"--device {name}: this machine has {torch.cuda.device_count()} GPUs, counted from 0")
    return device


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
