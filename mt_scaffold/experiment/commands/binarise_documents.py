"""mt-scaffold binarise-documents: see mt_scaffold.experiment.binarise.documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from mt_scaffold.corpus.documents import DOCUMENT_FORMATS
from mt_scaffold.experiment.binarise.documents import binarise_documents
from mt_scaffold.experiment.commands.arguments import File, Name, OutputFolder
from mt_scaffold.options_from_signature import Option

EXAMPLES = """\
mt-scaffold binarise-documents --codes codes --train train.jsonl --valid valid.jsonl --test test.jsonl \\
    --output binarised
"""


def run(
    *,
    codes: Annotated[str, Option("FILE", "-c")],
    train: Sequence[File] = (),
    valid: Sequence[File] = (),
    test: Sequence[File] = (),
    output: OutputFolder,
    format: Annotated[str | None, Option(choices=DOCUMENT_FORMATS)] = None,
    field: Name | None = None,
    padding_factor: int = 8,
    num_workers: int | None = None,
) -> None:
    """Make a fairseq data folder for language models.

    Make a fairseq data folder for language models from raw documents and byte codes: ids of the codes' tokens, each
    document ending in </s>. The dictionary follows from the codes, so that every test set can have a separate folder:
    --test FILE --output FOLDER, with the same --codes and --padding-factor as the training data.

    codes: codes of bytes, bpe or scaffold
    train: documents of the training split
    valid: documents of the validation split
    test: documents of the test split
    output: the fairseq data folder to make
    format: how documents are stored: one per line, one per file, JSON objects or a table (default: by the file's name,
        lines for any other)
    field: the field of JSONL and Parquet (default: text)
    padding_factor: pad the dictionary to a multiple of N symbols
    num_workers: threads, -1: all cores (default: all, up to 16)
    """
    binarise_documents(
        output,
        codes,
        train,
        valid,
        test,
        format=format,
        field=field,
        padding_factor=padding_factor,
        num_workers=num_workers,
    )
