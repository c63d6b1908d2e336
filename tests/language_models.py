"""Helpers for tests of language models: a small text of documents, byte codes, options of a tiny model."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from mt_scaffold import learn_bpe
from mt_scaffold.experiment.binarise.documents import binarise_documents
from mt_scaffold.experiment.data.synthetic import sentence_pairs

POSITIONS = 32
_TRAINED = (
    "--decoder-layers 1 --decoder-embed-dim 16 --decoder-ffn-embed-dim 16 --decoder-attention-heads 2 --dropout 0.1 "
    f"--optimizer adam --lr 0.005 --criterion cross_entropy --max-tokens 512 --tokens-per-sample {POSITIONS}"
)
TINY_LM = (
    "--arch transformer_lm --decoder-input-dim 16 --decoder-output-dim 16 --share-decoder-input-output-embed "
    + _TRAINED
).split()
TINY_LLAMA = ["--arch", "llama", *_TRAINED.split()]


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread: models this small take several times longer with two."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def write_documents(folder: Path) -> None:
    """Write train, valid and test, one document per line: most are longer than a model's positions, one is short.

    They include an empty line, bytes that are not UTF-8, and fairseq's symbols spelt out.
    """
    pairs, lengths = sentence_pairs(1), random.Random(2)
    for name, number in {"train": 42, "valid": 8, "test": 9}.items():
        lines = [" ".join(next(pairs)[1] for _ in range(lengths.randint(1, 4))).encode() for _ in range(number)]
        lines[0] = lines[0][:20]
        lines[3] += b" </s> <s>\xff</s> "
        lines.insert(5, b"")
        (folder / name).write_bytes(b"".join(line + b"\n" for line in lines))


def documents_of(path: Path) -> list[bytes]:
    """Return the documents of a file that are binarised."""
    return [line for line in path.read_bytes().split(b"\n") if line]


def learn_codes(folder: Path, name: str, symbols: int = 61, **options: object) -> Path:
    """Learn codes of bytes from the training text."""
    path = folder / name
    learn_bpe(folder / "train", path, symbols, **({"pretokenise": "gpt2"} | options))  # type: ignore[arg-type]
    return path


def binarise(folder: Path, name: str, codes: Path, splits: Sequence[str] = ("train", "valid"), **options: bool) -> Path:
    """Make a data folder of some of the files."""
    paths = {split: [folder / split] for split in splits}
    binarise_documents(folder / name, codes, **paths, **options)  # type: ignore[arg-type]
    return folder / name
