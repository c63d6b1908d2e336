"""A translation model and a binarised subset → the probability of each reference (forced decoding)."""

from __future__ import annotations

import argparse
import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.pairs_as_ids import Binarised, read_binarised, task_arguments
from mt_scaffold.experiment.inference.language_model import device_of
from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint
from mt_scaffold.experiment.runtime.fairseq import user_dir

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Floats = NDArray[numpy.float64]
    Integers = NDArray[numpy.int64]


@dataclass(frozen=True)
class ForcedDecoding:
    """The references of a subset, in its order: the ids of each, ``</s>`` last, and log2 p of each of these tokens."""

    ids: list[Integers]
    log2_probabilities: list[Floats]


def forced_decode(
    checkpoint: PathLike,
    data: PathLike,
    subset: str,
    *,
    max_tokens: int = 2048,
    gpus: int = 0,
) -> ForcedDecoding:
    """Return the probability of each token of each reference, given its source and the reference before it.

    checkpoint: a translation model that fairseq trained. data: a folder of ``binarise`` or ``binarise_words``; words
    are segmented without dropout. max_tokens: of the longer side of a batch, padding included. gpus: as for
    ``load_model`` of language models. fp16 and bf16 weights are converted to fp32.

    These are the ``P`` lines of ``fairseq-generate --score-reference``. Raises MTScaffoldError if a file is missing, if
    the checkpoint could run code or does not fit the data, or if a sentence is longer than the model takes; UsageError
    for a subset that the folder does not have.
    """
    import numpy
    import torch

    binarised = read_binarised(data)
    if subset not in binarised.pairs:
        raise UsageError(f"{data}: no subset called {subset}; choose one of {', '.join(binarised.pairs)}")
    if max_tokens < 1:
        raise UsageError(f"--max-tokens {max_tokens}: must be 1 or more")
    if not Path(checkpoint).is_file():
        raise MTScaffoldError(f"{checkpoint}: no such model; make it with mt-scaffold train or average")
    device = device_of(gpus)
    model, dataset = _load(checkpoint, data, binarised, subset)
    model = model.float().to(device).eval()
    sentences = [dataset[number] for number in range(len(dataset))]
    _check_lengths(sentences, model.max_positions(), data, subset)
    found: list[Floats] = [numpy.zeros(0)] * len(sentences)
    with torch.inference_mode():
        for batch in _batches(sentences, max_tokens):
            collated = dataset.collater([sentences[number] for number in batch])
            inputs = {name: value.to(device) for name, value in collated["net_input"].items()}
            expected = collated["target"].to(device)
            scores = model.get_normalized_probs(model(**inputs), log_probs=True)
            chosen = scores.gather(-1, expected.unsqueeze(-1)).squeeze(-1).double().cpu().numpy() / math.log(2)
            # The collater sorts by length.
            for row, number in enumerate(collated["id"].tolist()):
                found[number] = chosen[row, : len(sentences[number]["target"])]
    return ForcedDecoding([each["target"].numpy().astype(numpy.int64) for each in sentences], found)


def _load(checkpoint: PathLike, data: PathLike, binarised: Binarised, subset: str) -> tuple[Any, Any]:
    """Return the model, and the subset as a dataset of fairseq's."""
    load_checkpoint(checkpoint)
    # Silence fairseq's log, which would precede our output.
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    from fairseq import checkpoint_utils, options, tasks, utils
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    utils.import_user_module(argparse.Namespace(user_dir=str(user_dir())))
    arguments = [str(data), "--path", str(checkpoint), "--gen-subset", subset, *task_arguments(binarised, [])]
    arguments += ["--source-lang", binarised.source, "--target-lang", binarised.target]
    parsed = options.parse_args_and_arch(options.get_generation_parser(), arguments)
    task = tasks.setup_task(convert_namespace_to_omegaconf(parsed).task)
    try:
        models, _ = checkpoint_utils.load_model_ensemble([str(checkpoint)], task=task)
    except RuntimeError as error:
        if "size mismatch" in str(error):
            raise MTScaffoldError(
                f"{checkpoint}: its embeddings do not fit the dictionaries of {data}; give the data of its system"
            ) from error
        raise
    task.load_dataset(subset)
    return models[0], task.dataset(subset)


def _check_lengths(sentences: Sequence[Any], positions: Sequence[int], data: PathLike, subset: str) -> None:
    for number, sentence in enumerate(sentences, 1):
        for side, most in zip(("source", "target"), positions, strict=True):
            if len(sentence[side]) > most:
                raise MTScaffoldError(
                    f"{data}: {subset}: sentence {number}: its {side} has {len(sentence[side])} tokens, and the model "
                    f"takes {most}; leave the sentence out, or train with more positions"
                )


def _batches(sentences: Sequence[Any], max_tokens: int) -> Iterator[list[int]]:
    """Yield the numbers of sentences of similar lengths, at most ``max_tokens`` padded, or a single longer one."""
    lengths = [max(len(sentence["source"]), len(sentence["target"])) for sentence in sentences]
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        if batch and lengths[batch[0]] * (len(batch) + 1) > max_tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
