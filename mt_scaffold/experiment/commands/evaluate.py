"""mt-scaffold evaluate: see mt_scaffold.experiment.evaluation.bits_per_byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from mt_scaffold.corpus.documents import DOCUMENT_FORMATS
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.evaluation.bits_per_byte import Evaluation, LanguageModelScores, evaluate, evaluate_folder
from mt_scaffold.options_from_signature import File, Folder, Name, Option, OutputFile


def evaluate_model(
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
    settings: Evaluation,
) -> LanguageModelScores:
    """Evaluate a model, and return the scores.

    Score a language model in bits per byte of a text (its tasks: lm-eval; translations: score): -log2 p of all tokens,
    the end of each document included, divided by the bytes of the raw documents. Each document is scored by itself,
    from </s>; one that is longer than the model's positions is read in windows that overlap (--context-window). The
    perplexity per token is not comparable between vocabularies.

    checkpoint: a checkpoint of the language model
    data: with --checkpoint: the data folder that binarise-documents made
    split: with --data: train, valid or test (default: test)
    losses: write the loss by frequency of words and tokens to FILE as JSON
    counts: with --losses: the counted words of the training text
    model: or a causal model of transformers, with its tokenizer
    documents: with --model: the raw documents to score it on
    format: of --documents (default: by the file's name)
    field: the field of JSONL and Parquet with the text (default: text)
    positions: with --model: read at most N tokens at once (default: as many as it supports)
    trust_remote_code: with --model: run the Python files in its folder
    output: the scores, as JSON
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
        return evaluate(checkpoint, data, output, split or "test", settings, counts=counts, losses=losses)
    if not documents:
        raise UsageError("evaluate: with --model, give --documents")
    return evaluate_folder(
        model or "",
        documents,
        output,
        settings,
        format=format,
        field=field,
        positions=positions,
        trust_remote_code=trust_remote_code,
    )
