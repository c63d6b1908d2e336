"""A language model, loaded from a checkpoint without running code, and its log-probabilities."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.data_folder import BinarisedDocuments
from mt_scaffold.experiment.binarise.dictionary import END_ID
from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint
from mt_scaffold.experiment.runtime.fairseq import no_gpu_message, sees_gpu, user_dir
from mt_scaffold.manifest import raw_digest

_LOGITS_AT_ONCE = 1 << 25
Item = TypeVar("Item")


@dataclass(frozen=True)
class LanguageModel:
    """A model on a device, ready for inference.

    positions: the most tokens it takes at once. symbols: the rows of its output. sha256: of its file.
    """

    model: Any
    device: Any
    positions: int
    symbols: int
    sha256: str


def device_of(gpus: int) -> Any:
    """Return the GPU if PyTorch sees one, else the CPU; with ``gpus`` = 1, MTScaffoldError if there is no GPU."""
    import torch

    if gpus not in (0, 1):
        raise UsageError(f"--gpus {gpus}: one GPU is used; give 1, or 0 for one if there is one")
    on_gpu = sees_gpu()
    if gpus and not on_gpu:
        raise MTScaffoldError(f"--gpus {gpus}: PyTorch finds no GPU on this machine: {no_gpu_message()}")
    return torch.device("cuda" if on_gpu else "cpu")


def load_model(checkpoint: PathLike, data: PathLike, binarised: BinarisedDocuments, gpus: int = 0) -> LanguageModel:
    """Load the model of a fairseq checkpoint, for the dictionary of the folder ``data``.

    gpus: 1 requires a GPU; with 0, one is used if PyTorch sees it, or else the CPU. fp16 and bf16 weights are converted
    to fp32.

    Raises MTScaffoldError if the checkpoint is missing, damaged or could run code, if it is not of a language model, or
    of another vocabulary than that of ``data``, or if a GPU is requested but there is none.
    """
    device = device_of(gpus)
    if not Path(checkpoint).is_file():
        raise MTScaffoldError(f"{checkpoint}: no such model; make it with mt-scaffold train or average")
    state = load_checkpoint(checkpoint)
    _check_vocabulary(checkpoint, state, data, binarised)
    model = _build(checkpoint, state, data)
    model = model.float().to(device).eval()
    return LanguageModel(model, device, int(model.max_positions()), binarised.symbols, raw_digest(checkpoint))


def _check_vocabulary(
    checkpoint: PathLike, state: dict[str, Any], data: PathLike, binarised: BinarisedDocuments
) -> None:
    trained = (state.get("task_state") or {}).get("vocabulary")
    if trained is not None and trained != binarised.vocabulary:
        raise MTScaffoldError(
            f"{checkpoint}: was trained with another vocabulary than that of {data}; binarise the text with the codes "
            "that the model was trained with"
        )


def _build(checkpoint: PathLike, state: dict[str, Any], data: PathLike) -> Any:
    """Return the model that a checkpoint describes, with its parameters."""
    # Silence fairseq's log, which would precede our output.
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    from fairseq import checkpoint_utils, utils
    from fairseq.models.transformer_lm import TransformerLanguageModel

    utils.import_user_module(argparse.Namespace(user_dir=str(user_dir())))
    from mt_scaffold.experiment.fairseq_plugin.architectures import ARCHITECTURES, CausalModel

    task = _task_of(state)
    if not task.startswith("language_modeling"):
        raise MTScaffoldError(f"{checkpoint}: a model of the task {task}; give one of a language model")
    try:
        models, _, _ = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], {"data": str(data)})
    except RuntimeError as error:
        if "size mismatch" in str(error):
            raise MTScaffoldError(
                f"{checkpoint}: its embeddings do not fit the dictionary of {data}; binarise the text with the codes "
                "and the --padding-factor of the training data"
            ) from error
        raise
    if not isinstance(models[0], TransformerLanguageModel | CausalModel):
        known = ", ".join(("transformer_lm", *ARCHITECTURES))
        raise MTScaffoldError(f"{checkpoint}: a {type(models[0]).__name__}; only models of {known} are evaluated")
    return models[0]


def _task_of(state: dict[str, Any]) -> str:
    """Return the name of the task that a checkpoint was trained for."""
    if state.get("cfg"):
        return str(state["cfg"]["task"]["_name"])
    return str(getattr(state.get("args"), "task", "of an unknown name"))


def batches(items: Iterable[Item], length: Callable[[Item], int], max_tokens: int) -> Iterator[list[Item]]:
    """Yield items of similar lengths, at most ``max_tokens`` with their padding, or a single longer one."""
    batch: list[Item] = []
    for item in sorted(items, key=length, reverse=True):
        if batch and length(batch[0]) * (len(batch) + 1) > max_tokens:
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch


def log_probabilities(model: LanguageModel, batch: Sequence[tuple[Any, Any]]) -> Iterator[Any]:
    """Yield, for each pair of inputs and targets (ids of equal length), the log-probability of each target.

    They are natural logarithms, computed in fp32 (NumPy, float32). A batch is computed at once, padded on the right;
    the softmax in parts, so that memory does not grow with the vocabulary.
    """
    import torch

    longest = max(len(inputs) for inputs, _ in batch)
    # No position sees a later one, so that padding on the right needs no mask.
    sources = torch.full((len(batch), longest), END_ID)
    targets = torch.full((len(batch), longest), END_ID)
    for row, (inputs, wanted) in enumerate(batch):
        sources[row, : len(inputs)] = torch.as_tensor(inputs)
        targets[row, : len(wanted)] = torch.as_tensor(wanted)
    sources, targets = sources.to(model.device), targets.to(model.device)
    with torch.inference_mode():
        found = _of_targets(model, sources, targets).cpu().numpy()
    for row, (inputs, _) in enumerate(batch):
        yield found[row, : len(inputs)]


def _of_targets(model: LanguageModel, sources: Any, targets: Any) -> Any:
    """Return the log-probability of each target (batch × positions)."""
    import torch

    decoder = model.model.decoder
    if getattr(decoder, "adaptive_softmax", None) is not None:
        output = model.model(sources)
        scores = model.model.get_normalized_probs(output, log_probs=True, sample={"target": targets})
        return scores.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    features = decoder(sources, features_only=True)[0].flatten(0, 1)
    wanted = targets.flatten()
    rows = max(1, _LOGITS_AT_ONCE // model.symbols)
    parts = []
    for begin in range(0, len(wanted), rows):
        logits = decoder.output_layer(features[begin : begin + rows]).float()
        chosen = logits.gather(1, wanted[begin : begin + rows, None]).squeeze(1)
        parts.append(chosen - logits.logsumexp(1))
    return torch.cat(parts).view(targets.shape)


def inputs_of(document: Any) -> Any:
    """Return the inputs from which a model predicts a document (ids): ``</s>``, then all but the last token."""
    import numpy

    return numpy.concatenate([[END_ID], document[:-1]]).astype(numpy.int64)
