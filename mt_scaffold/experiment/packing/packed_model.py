"""A packed model: its folder, checked and loaded; raw text → raw text by fairseq's own beam search."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import logging
import math
import multiprocessing
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, BinaryIO, Self

from mt_scaffold import manifest as manifests
from mt_scaffold.corpus.files import PathLike, open_input, without_mark
from mt_scaffold.corpus.symbols import join_symbols
from mt_scaffold.corpus.text import not_utf8
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.dictionary import END_ID, UNKNOWN_ID, read_ids
from mt_scaffold.experiment.binarise.segmentation import STORED, stored_segmentation
from mt_scaffold.experiment.configuration.data import Tokenise
from mt_scaffold.experiment.data.moses import tokeniser_of
from mt_scaffold.experiment.data.tokenise import detokenise
from mt_scaffold.experiment.inference.beam_search import BATCH_TOKENS, BeamSearch
from mt_scaffold.experiment.runtime.child_processes import begin_child
from mt_scaffold.experiment.runtime.fairseq import no_gpu_message, sees_gpu, user_dir
from mt_scaffold.experiment.runtime.results import to_plain
from mt_scaffold.experiment.runtime.schema import WrongValue, build
from mt_scaffold.manifest import MANIFEST
from mt_scaffold.options import worker_count
from mt_scaffold.tables import decimal

WEIGHTS, OPTIONS, EXPERIMENT, CARD = "model.safetensors", "config.json", "experiment.yaml", "README.md"
# The new card of a model that is packed again after its card was edited.
NEW_CARD = "README.new.md"
# The kind of its manifest.
KIND = "packed model"
_REMEDY = "copy or pack the model again"
# Options with paths of the training machine; a model contains the weights that were read from them.
PATH_OPTIONS = ("_path", "_dir", "_file", "_checkpoint")
_PLAIN = (bool, int, float, str, type(None))
# More than the lines of a test set, so that its batches are those of fairseq-generate.
BLOCK_LINES = 10_000
_BLOCK_BYTES = 1 << 24


@dataclass(frozen=True)
class PackedScore:
    """A score with sacreBLEU's signature (``Metric`` of score.py, without its segments)."""

    score: float
    text: str
    signature: str
    comparable: bool


@dataclass(frozen=True)
class PackedTestSet:
    """The scores of a test set by metric, and the facts to reproduce them.

    sha256: of the raw source, the references and the translation. tokenise: of the test set, if it differs from that
    of other text.
    """

    lines: int
    scores: dict[str, PackedScore]
    sha256: dict[str, str]
    tokenise: Tokenise | None = field(default=None, metadata={"omit_none": True})


@dataclass(frozen=True)
class Origin:
    """The origin of a model.

    checkpoint: the SHA-256 digest of the file that was packed, the mean of ``averaged`` checkpoints. engine: that
    translated the test sets, fairseq or ctranslate2. trained_with, packed_with: versions of the packages.
    """

    experiment: str
    description: str
    system: str
    seed: int
    synthetic: bool
    checkpoint: str
    averaged: int
    parameters: int
    updates: int
    epochs: int
    engine: str
    trained_with: dict[str, str]
    packed_with: dict[str, str]


@dataclass(frozen=True)
class Manifest:
    """The contents of a packed folder, as ``manifest.json`` states them.

    tokenise: how raw source text becomes words. tied: the parameters that are stored under the name of another. files:
    the SHA-256 digest of each file except the manifest and the cards, which people may edit. card: that of README.md as
    ``pack`` wrote it, to recognise an edited one.
    """

    source: str
    target: str
    tokenise: Tokenise
    translate: BeamSearch
    tied: dict[str, str]
    test_sets: dict[str, PackedTestSet]
    origin: Origin
    files: dict[str, str]
    card: str

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target language."""
        return self.source, self.target


def dictionary_name(language: str) -> str:
    """Return the name of the dictionary of a language."""
    return f"dict.{language}.txt"


def read_manifest(folder: PathLike) -> Manifest:
    """Return the manifest of a packed model, after a check of every file that it names.

    Raises MTScaffoldError if the folder is not a packed model, is incomplete or has been changed.
    """
    path = Path(folder) / MANIFEST
    if not Path(folder).is_dir():
        raise MTScaffoldError(f"{folder}: no such folder; give one that mt-scaffold pack made")
    if not path.is_file():
        raise MTScaffoldError(f"{folder}: not a packed model (no {MANIFEST} in it); make one with mt-scaffold pack")
    stored = read_stored(path)
    try:
        manifest: Manifest = build(Manifest, {**stored.content, "files": stored.files})
    except WrongValue as error:
        raise MTScaffoldError(f"{path}: {error}; pack the model again") from None
    needed = {WEIGHTS, OPTIONS, STORED, *(dictionary_name(language) for language in manifest.languages)}
    if missing := sorted(needed - manifest.files.keys()):
        raise MTScaffoldError(f"{path}: names no {missing[0]}; pack the model again")
    manifests.check_files(folder, manifest.files, path, _REMEDY)
    return manifest


def read_stored(path: Path) -> manifests.Manifest:
    """Return the manifest of a packed model as it is stored; raise MTScaffoldError if it is malformed."""
    return manifests.read_manifest(path, KIND, _REMEDY)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a packed model into its folder."""
    content = to_plain(manifest)
    files = content.pop("files")
    manifests.write_manifest(folder / MANIFEST, manifests.Manifest(KIND, files, content))


def _read_json(path: Path) -> Any:
    """Read a JSON file of a packed model. Raises MTScaffoldError if it is not valid JSON."""
    with open_input(path) as stream:
        content = stream.read()
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise MTScaffoldError(f"{path}: not JSON ({error}); {_REMEDY}") from None


@dataclass(frozen=True)
class Hypothesis:
    """A translation of one line, as text, with fairseq's score.

    score: the log-probability, to base 2, divided by (tokens ** lenpen), as fairseq-generate prints it.
    """

    text: str
    score: float


@dataclass(frozen=True)
class _Part:
    """A sentence, or a part of one that is too long: its line, counted from 0, and its ids with ``</s>``."""

    line: int
    ids: Any


class PackedModel:
    """A model packed by ``mt-scaffold pack``, ready to translate.

    folder: made by ``pack``. device: ``cpu``, ``cuda`` or ``cuda:N``; None takes a GPU if PyTorch sees one. beam,
    lenpen: instead of those that the experiment translated with. batch_tokens: the most subwords, padding included,
    that are translated at once. num_workers: processes on a CPU, each with one thread; the output is the same for any
    number. test_set: tokenise as this test set of the experiment was, if that differs from other text.

    Raises MTScaffoldError if the folder is not a packed model, is incomplete or has been changed, or if a GPU is
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
        self._tokenise = tokeniser_of(self.manifest.source, choices)
        self.device = _device_of(device)
        self._search = _Search(Path(folder), self.manifest, self.device, beam, lenpen)
        search = self.manifest.translate
        self.beam = self._search.beam
        self._batch_sentences = search.batch_size if batch_tokens is None else None
        self._batch_tokens = batch_tokens or search.max_tokens
        if self._batch_tokens is None and self._batch_sentences is None:
            self._batch_tokens = BATCH_TOKENS
        self._workers = _Workers(self._search, workers if self.device.type == "cpu" else 1)
        self._lines_before = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close(kill=error is not None)

    def close(self, kill: bool = False) -> None:
        """End the worker processes; kill: without waiting for their translations."""
        self._workers.close(kill)

    def translate(self, lines: Iterable[str]) -> list[str]:
        """Return the translation of each line; an empty one has an empty translation."""
        return [best[0].text for best in self.hypotheses(lines)]

    def hypotheses(
        self, lines: Iterable[str], n_best: int = 1, show: Callable[[int], None] | None = None
    ) -> list[list[Hypothesis]]:
        """Return the ``n_best`` translations of each line, the best first; an empty line has one, which is empty.

        All lines are batched together, by length, so that a call is fastest per line with some hundreds of them. A
        sentence of more subwords than the model has positions is translated in parts, cut between words; a warning
        names its line, counted from 1 over all calls. ``show`` is called with the number of sentences that are done.

        Raises UsageError if the beam is smaller than ``n_best``, or if a line is not a string or contains a lone
        surrogate, which is not a character.
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
                    f"mt-scaffold: warning: line {self._lines_before + number + 1}: {len(ids)} subwords, but the model "
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
        # The last take the longest; started first, they do not keep one worker busy alone at the end.
        batches.reverse()
        work = [([sentences[place] for place in batch], n_best) for batch in batches]
        found: dict[int, list[tuple[str, float]]] = {}
        for batch, translations in zip(batches, self._workers.run(work), strict=True):
            found.update(zip(batch, translations, strict=True))
            if show is not None:
                show(len(found))
        return [found[place] for place in range(len(parts))]


def _checked(line: object) -> str:
    """Return a line unchanged. Raises UsageError if it is not text."""
    if not isinstance(line, str):
        raise UsageError(f"a line is a string, not a {type(line).__name__}; decode bytes first")
    if found := re.search("[\ud800-\udfff]", line):
        raise UsageError(f"a line holds {found[0]!r}, a lone surrogate and not a character; remove it")
    return line


def _cut(words: Sequence[Any], most: int) -> list[Any]:
    """Return the ids of words in parts of about equal size, at most ``most`` ids; only a longer word is itself cut."""
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
    """Return the translations of a line from those of its parts, joined by rank; a score is the mean of the parts'."""
    if not parts:
        return [("", 0.0)]
    return [
        (" ".join(text for text, _ in each), sum(score for _, score in each) / len(each))
        for each in zip(*parts, strict=False)
    ]


def translate_text(
    model: PackedModel,
    source: BinaryIO,
    target: BinaryIO,
    *,
    n_best: int | None = None,
    scores: bool = False,
    block_lines: int = BLOCK_LINES,
    name: str = "standard input",
    show: Callable[[int], None] | None = None,
) -> int:
    """Translate the lines of ``source``, UTF-8, into as many lines of ``target``, and return their number.

    A line ends at LF only. An empty line, or one without any word, gives an empty line. ``block_lines``: the most that
    are translated together (fewer if they are long); ``target`` is flushed after each block.

    scores: each line is the score, a tab and the translation. n_best: that many translations of each line (an empty one
    has one), one per line, as Moses writes them: ``LINE ||| TRANSLATION ||| SCORE``, lines counted from 0.
    See ``Hypothesis`` for scores. ``show`` is called with the sentences that are done. name: of the source, in errors.

    Raises MTScaffoldError, with the line, for bytes that are not UTF-8; earlier blocks are still translated.
    """
    if block_lines < 1:
        raise UsageError(f"--block {block_lines}: must be 1 or more")
    done = 0
    for lines in _blocks(source, block_lines, name):
        shown = None if show is None else lambda sentences, before=done: show(before + sentences)
        for number, found in enumerate(model.hypotheses(lines, n_best or 1, shown), done):
            if n_best:
                written = [f"{number} ||| {each.text} ||| {decimal(each.score, 4)}" for each in found]
            else:
                written = [f"{decimal(found[0].score, 4)}\t{found[0].text}" if scores else found[0].text]
            target.write("".join(f"{line}\n" for line in written).encode("utf-8"))
        target.flush()
        done += len(lines)
    return done


def _blocks(stream: BinaryIO, most: int, name: str) -> Iterator[list[str]]:
    """Yield the lines of a text, without line ends, up to ``most`` at a time."""
    lines: list[str] = []
    number = offset = size = 0
    # Not readlines, which reads ahead: a line must not wait for later ones.
    while content := stream.readline():
        number += 1
        try:
            text = content if offset else without_mark(content, name)
            lines.append(text.decode("utf-8").removesuffix("\n"))
        except UnicodeDecodeError as error:
            raise not_utf8(name, number, offset + error.start, content[error.start]) from None
        offset += len(content)
        size += len(content)
        if len(lines) >= most or size >= _BLOCK_BYTES:
            yield lines
            lines, size = [], 0
    if lines:
        yield lines


class _Search:
    """fairseq's model and beam search.

    folder: a packed model, already checked. beam, lenpen: None for those in its manifest. positions: the most ids that
    a sentence may have, ``</s>`` included.
    """

    def __init__(self, folder: Path, manifest: Manifest, device: Any, beam: int | None, lenpen: float | None) -> None:
        load_plugin()
        from fairseq import utils
        from fairseq.data import Dictionary
        from fairseq.dataclass.configs import GenerationConfig
        from fairseq.tasks.translation import TranslationConfig, TranslationTask

        chosen: BeamSearch = manifest.translate
        segmentation = stored_segmentation(folder)
        packed = {str(folder / name) for name in manifest.files}
        if not packed.issuperset({*segmentation.codes, *(segmentation.vocabularies or ())}):
            raise MTScaffoldError(f"{folder}: its segmentation names a file that was not packed; pack the model again")
        self._separator = segmentation.separator
        paths = [folder / dictionary_name(language) for language in manifest.languages]
        # Read here before fairseq does, for clear errors.
        ids, _ = map(read_ids, paths)
        self._encoder = segmentation.segmenters()[0].encoder(ids, UNKNOWN_ID)
        source, target = (Dictionary.load(str(path)) for path in paths)
        configuration = TranslationConfig(
            source_lang=manifest.source,
            target_lang=manifest.target,
            max_source_positions=chosen.max_source_positions,
        )
        self._task = TranslationTask(configuration, source, target)
        weights = _read_weights(folder / WEIGHTS, manifest.tied)
        self._model = _build_model(_read_json(folder / OPTIONS), weights, self._task, folder / OPTIONS)
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
        try:
            self._generator = self._task.build_generator([self._model], generation)
        except AssertionError as error:
            raise MTScaffoldError(f"{folder}: invalid beam-search settings: {error}; pack the model again") from None
        self.beam = int(self._generator.beam_size)
        positions = utils.resolve_max_positions(self._task.max_positions(), self._model.max_positions())
        self.positions = int(positions[0])

    def encode(self, lines: Sequence[str]) -> list[Any]:
        """Return the ids of the subwords of each line of words."""
        import numpy

        ids, offsets = (numpy.asarray(buffer) for buffer in self._encoder.ids_of(lines))
        return [ids[start:end] for start, end in itertools.pairwise(offsets.tolist())]

    def batches(self, sentences: Sequence[Any], tokens: int | None, most: int | None) -> list[list[int]]:
        """Return the indices of the sentences of each batch, in the same batches as fairseq-generate's.

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
        """Return the best translations of each sentence, in words, and their scores; work: a batch, and n_best."""
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
        return join_symbols(subwords, self._separator), float(hypothesis["score"] / math.log(2))

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
    """Have PyTorch compute on one thread of a CPU: the order of its sums depends on the number of threads."""
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


def _device_of(name: str | None) -> Any:
    """Return the PyTorch device of a name; None for a GPU if there is one, or else the CPU."""
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


def load_plugin() -> None:
    """Load the plug-in that keeps fairseq from evaluating code in options, and let fairseq log warnings only."""
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    from fairseq import utils

    utils.import_user_module(argparse.Namespace(user_dir=str(user_dir())))


def _read_weights(path: PathLike, shared: Mapping[str, str]) -> dict[str, Any]:
    """Read the file that ``write_weights`` wrote; ``shared``: the tied parameters that it returned.

    Raises MTScaffoldError if the file is not safetensors, or does not hold a parameter that ``shared`` names.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        model: dict[str, Any] = load_file(path)
    except SafetensorError as error:
        raise MTScaffoldError(f"{path}: not a safetensors file ({error}); copy or pack the model again") from None
    for name, first in shared.items():
        if first not in model:
            raise MTScaffoldError(f"{path}: holds no parameter {first}; pack the model again")
        model[name] = model[first]
    return model


def _build_model(options: Mapping[str, Any], weights: dict[str, Any], task: Any, path: Path) -> Any:
    """Return fairseq's model with these options and weights, for the dictionaries of ``task``.

    path: the file of the options, for errors. Raises MTScaffoldError if fairseq cannot build it.
    """
    from omegaconf import OmegaConf

    if not isinstance(options, dict):
        raise MTScaffoldError(f"{path}: expected the options of a model; pack the model again")
    if wrong := next((name for name in options if name.endswith(PATH_OPTIONS) or not is_plain(options[name])), None):
        raise MTScaffoldError(f"{path}: {wrong}: not an option of a packed model; pack the model again")
    try:
        chosen = OmegaConf.create(dict(options)) if "_name" in options else argparse.Namespace(**options)
        model = task.build_model(chosen)
        model.load_state_dict(weights, strict=True)
    # fairseq raises all kinds of errors for options that do not fit each other or the weights.
    except Exception as error:
        problem = str(error).strip().partition("\n")[0] or type(error).__name__
        raise MTScaffoldError(f"{path}: fairseq cannot build this model ({problem}); pack the model again") from error
    return model


def is_plain(value: Any) -> bool:
    # OmegaConf would evaluate ${...}: another option, or a variable of the environment.
    if isinstance(value, str) and "${" in value:
        return False
    if isinstance(value, list | tuple):
        return all(map(is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(name, str) and is_plain(entry) for name, entry in value.items())
    return isinstance(value, _PLAIN)


class _Workers:
    """Calls ``work`` on arguments in ``number`` processes, or in this one if there is nothing to share."""

    def __init__(self, work: Callable[[Any], Any], number: int) -> None:
        self._work = work
        self._number = number
        self._executor: ProcessPoolExecutor | None = None
        # The children of the executor, and those that this process had before.
        self._processes: list[Any] = []
        self._others: list[Any] = []

    def run(self, arguments: Sequence[Any]) -> Iterator[Any]:
        """Yield the results in the order of ``arguments``. Raises MTScaffoldError if a process dies."""
        if self._number == 1 or len(arguments) < 2:
            yield from map(self._work, arguments)
            return
        try:
            executor = self._executor or self._start()
            futures = [executor.submit(_call, each) for each in arguments]
            if not self._processes:
                self._processes = [each for each in multiprocessing.active_children() if each not in self._others]
            for future in futures:
                yield future.result()
        except BrokenProcessPool as error:
            raise MTScaffoldError(
                "a process that translates died (out of memory?); use fewer workers or smaller batches"
            ) from error

    def _start(self) -> ProcessPoolExecutor:
        self._others = multiprocessing.active_children()
        self._executor = ProcessPoolExecutor(
            self._number, multiprocessing.get_context("fork"), initializer=_begin, initargs=(self._work,)
        )
        return self._executor

    def close(self, kill: bool = False) -> None:
        """End the processes; kill: without waiting for their results."""
        if self._executor is None:
            return
        for process in self._processes if kill else ():
            process.kill()
        self._executor.shutdown(cancel_futures=True)
        self._executor, self._processes = None, []


_work: Callable[[Any], Any] | None = None


def _begin(work: Callable[[Any], Any]) -> None:
    global _work
    import torch

    begin_child()
    torch.set_num_threads(1)
    _work = work


def _call(argument: Any) -> Any:
    assert _work is not None
    return _work(argument)
