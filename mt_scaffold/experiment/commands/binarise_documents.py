"""mt-scaffold binarise-documents: see mt_scaffold.experiment.binarise.documents."""

from __future__ import annotations

import argparse

from mt_scaffold.corpus.documents import DOCUMENT_FORMATS
from mt_scaffold.experiment.binarise.documents import binarise_documents

EXAMPLES = """\
mt-scaffold binarise-documents --codes codes --train train.jsonl --valid valid.jsonl --test test.jsonl \\
    --output binarised
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = (
        "Make a fairseq data folder for language models from raw documents and byte codes: ids of the codes' tokens, "
        "each document ending in </s>. The dictionary follows from the codes, so that every test set can have a folder "
        "of its own: --test FILE --output FOLDER, with the same --codes and --padding-factor as the training data."
    )
    parser.add_argument("--codes", "-c", required=True, metavar="FILE", help="codes of bytes, bpe or scaffold")
    for split, what in (("train", "training"), ("valid", "validation"), ("test", "test")):
        parser.add_argument(f"--{split}", nargs="+", default=[], metavar="FILE", help=f"documents of the {what} split")
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="the fairseq data folder to make")
    parser.add_argument(
        "--format",
        choices=DOCUMENT_FORMATS,
        help="how documents are stored: one per line, one per file, JSON objects or a table (default: by the file's "
        "name, lines for any other)",
    )
    parser.add_argument("--field", metavar="NAME", help="the field of JSONL and Parquet (default: text)")
    parser.add_argument(
        "--padding-factor",
        type=int,
        default=8,
        metavar="N",
        help="pad the dictionary to a multiple of N symbols (default: 8)",
    )
    parser.add_argument("--num-workers", type=int, metavar="N", help="threads, -1: all cores (default: all, up to 16)")


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    binarise_documents(
        options.output,
        options.codes,
        options.train,
        options.valid,
        options.test,
        format=options.format,
        field=options.field,
        padding_factor=options.padding_factor,
        num_workers=options.num_workers,
    )
