"""mt-scaffold evaluate: see mt_scaffold.experiment.evaluation.bits_per_byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from mt_scaffold.corpus.documents import DOCUMENT_FORMATS
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.commands.arguments import File, Folder, Gpus, Name, OutputFile
from mt_scaffold.experiment.evaluation.bits_per_byte import evaluate, evaluate_folder
from mt_scaffold.signature import Option

EXAMPLES = """\
mt-scaffold evaluate --checkpoint averaged.pt --data binarised --output scores.json
mt-scaffold evaluate --checkpoint averaged.pt --data binarised --counts words.counts --losses losses.json -o scores.json
mt-scaffold evaluate --model pythia-410m --documents test.jsonl --positions 1024 --output scores.json
"""


def run(
    *,
    checkpoint: File | None = None,
    data: Annotated[str | None, Option("FOLDER", "-d")] = None,
    split: Name | None = None,
    losses: File | None = None,
    counts: File | None = None,
    model: Folder | None = None,
    documents: Sequence[File] | None = None,
    format: Annotated[str | None, Option(choices=DOCUMENT_FORMATS)] = None,
    field: Name | None = None,
    positions: int | None = None,
    trust_remote_code: bool = False,
    output: OutputFile,
    context_window: int | None = None,
    max_tokens: int = 4096,
    gpus: Gpus = 0,
    system: Name | None = None,
    test_set: Name | None = None,
    seed: int = 1,
    synthetic: bool = False,
) -> None:
    """Evaluate a model, and show the scores.

    Score a language model in bits per byte: -log2 p of all tokens, the end of each document included, divided by the
    bytes of the raw documents. Each document is scored by itself, from </s>; one that is longer than the model's
    positions is read in windows that overlap (--context-window). The perplexity per token is not comparable between
    vocabularies.

    checkpoint: a checkpoint of the language model
    data: with --checkpoint: what binarise-documents made
    split: with --data: train, valid or test (default: test)
    losses: how the loss divides by frequency of word and token, as JSON
    counts: with --losses: the counted words of the training text
    model: or a causal model of transformers, with its tokenizer
    documents: with --model: the raw documents to score it on
    format: of --documents (default: by the file's name)
    field: of JSONL and Parquet: where the text is (default: text)
    positions: with --model: read at most N tokens at once (default: all it can)
    trust_remote_code: with --model: let it run the Python files in its folder
    output: the scores, as JSON
    context_window: tokens by which the windows of a long document overlap: each token is predicted with at least N
        tokens before it, where the document has them (default: half of the model's positions; 0: no overlap)
    max_tokens: tokens of a batch
    system: the system (default: the folder of the training)
    test_set: the test set (default: the data folder's name)
    seed: the training's random seed
    synthetic: label the scores as those of synthetic data
    """
    if (model is None) == (checkpoint is None):
        raise UsageError("evaluate: give either --checkpoint and --data, or --model and --documents")
    of_checkpoint = {"data": data, "split": split, "counts": counts, "losses": losses}
    of_folder = {"documents": documents, "format": format, "field": field, "positions": positions}
    of_folder |= {"trust-remote-code": trust_remote_code}
    given, other = ("checkpoint", of_folder) if model is None else ("model", of_checkpoint)
    for name, value in other.items():
        if value:
            raise UsageError(f"evaluate: --{name} does not go with --{given}; leave it out")
    if checkpoint is not None:
        if data is None:
            raise UsageError("evaluate: with --checkpoint, give --data")
        scores = evaluate(
            checkpoint,
            data,
            output,
            split or "test",
            counts=counts,
            losses=losses,
            context_window=context_window,
            max_tokens=max_tokens,
            gpus=gpus,
            system=system,
            test_set=test_set,
            seed=seed,
            synthetic=synthetic,
        )
    else:
        if not documents:
            raise UsageError("evaluate: with --model, give --documents")
        scores = evaluate_folder(
            model or "",
            documents,
            output,
            format=format,
            field=field,
            positions=positions,
            trust_remote_code=trust_remote_code,
            context_window=context_window,
            max_tokens=max_tokens,
            gpus=gpus,
            system=system,
            test_set=test_set,
            seed=seed,
            synthetic=synthetic,
        )
    if scores.synthetic:
        print("synthetic data")
    print(f"bits per byte: {scores.bits_per_byte:.4f}  {scores.signature}")
    counts = f"{scores.bytes:,} bytes, {scores.tokens:,} tokens with each </s>"
    print(f"bytes per token: {scores.bytes_per_token:.4f}  ({counts})")
    print(f"perplexity per token: {scores.perplexity_per_token:.2f}  (not comparable between vocabularies)")
