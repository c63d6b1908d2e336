"""fairseq's beam search of a packed model: ids of sentences → translations in words, batch by batch."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mt_scaffold.corpus.text import join_subwords
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.dictionary import UNKNOWN_ID, read_ids
from mt_scaffold.experiment.binarise.segmentation import stored_segmentation
from mt_scaffold.experiment.inference.packed_folder import (
    OPTIONS,
    WEIGHTS,
    BeamSearch,
    Manifest,
    dictionary_name,
    read_json,
)
from mt_scaffold.experiment.inference.packed_weights import build_model, load_plugin, read_weights
from mt_scaffold.experiment.runtime.fairseq import no_gpu_message, sees_gpu


class Search:
    """fairseq's model and beam search.

    folder: a packed model, which has been checked. beam, lenpen: None for those in its manifest. positions: the most
    ids that a sentence may have, ``</s>`` included.
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
        # Read here first, for errors that say what is wrong.
        ids, _ = map(read_ids, paths)
        self._encoder = segmentation.segmenters()[0].encoder(ids, UNKNOWN_ID)
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
        try:
            self._generator = self._task.build_generator([self._model], generation)
        except AssertionError as error:
            raise MTScaffoldError(f"{folder}: its beam search cannot be: {error}") from None
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


def device_of(name: str | None) -> Any:
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
