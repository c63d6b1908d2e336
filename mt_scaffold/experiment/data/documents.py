"""Configuration → documents as JSONL: generated, or split off, joined or sampled from the documents in files."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import BinaryIO

from mt_scaffold.corpus.documents import Documents
from mt_scaffold.corpus.files import PathLike, make_folder, open_output
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration.language_model import DocumentData, SyntheticDocuments
from mt_scaffold.experiment.data.synthetic import Language

_FIELD = "text"


@dataclass
class WrittenDocuments:
    """The number of documents in a part, and their bytes."""

    documents: int = 0
    bytes: int = 0


@dataclass
class DocumentsRecord:
    """The record of get_documents: each part, and the files that the documents come from (none: synthetic)."""

    synthetic: bool
    files: list[str]
    parts: dict[str, WrittenDocuments] = field(default_factory=dict)


def get_documents(data: DocumentData, output: PathLike, parts: Iterable[str]) -> DocumentsRecord:
    """Write the documents of ``parts`` (``train``, ``valid``, test sets) to ``output``/PART.jsonl.

    They are generated, or read from the files that ``data`` names: the held-out parts are taken out of train, every
    Nth document of it; lines are joined into documents; train ends after ``data.sample`` documents. Files are read once
    for each part that has separate files. Empty documents are left out.

    Raises MTScaffoldError if a file cannot be read, if a document is not UTF-8, which JSONL cannot hold, and if a part
    would have no documents.
    """
    folder, parts = Path(output), list(parts)
    make_folder(folder)
    files = data.documents
    record = DocumentsRecord(files is None, [], {part: WrittenDocuments() for part in parts})
    with contextlib.ExitStack() as stack:
        streams = {part: stack.enter_context(open_output(folder / f"{part}.jsonl")) for part in parts}
        for part, name, document in _documents(data, record):
            if part in streams and document:
                _write(streams[part], document, name)
                record.parts[part].documents += 1
                record.parts[part].bytes += len(document)
        for part, written in record.parts.items():
            if not written.documents:
                raise MTScaffoldError(f"{part}: no documents; give more text, or hold out fewer of them")
    return record


def _write(stream: BinaryIO, document: bytes, name: str) -> None:
    try:
        text = document.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MTScaffoldError(
            f"{name}: not UTF-8 (byte 0x{document[error.start]:02X} at offset {error.start}), which JSONL cannot hold; "
            "convert it, or give train, valid and tests as separate files, which are read as they are"
        ) from None
    stream.write(json.dumps({_FIELD: text}, ensure_ascii=False).encode() + b"\n")


def _documents(data: DocumentData, record: DocumentsRecord) -> Iterator[tuple[str, str, bytes]]:
    """Yield the part that each document belongs to, its name in errors, and the document."""
    if data.synthetic is not None:
        for part, document in _generated(data.synthetic, data.sample):
            yield part, "a generated document", document
        return
    files = data.documents
    assert files is not None
    own = {"train": files.train, "valid": files.valid or [], **(files.tests or {})}
    for part, patterns in own.items():
        # The parts held out are documents of train.
        if not patterns or (part not in record.parts and data.held_out_every is None):
            continue
        documents = Documents(patterns, files.format, files.field)
        record.files += map(str, documents.sources)
        sample = data.sample if part == "train" else None
        numbered = enumerate(_joined(documents, files.lines_per_document), start=1)
        split: Iterable[tuple[str, int, bytes]]
        if data.held_out_every is None:
            split = ((part, number, document) for number, document in itertools.islice(numbered, sample))
        else:
            split = _split(numbered, data.held_out_every, sample)
        for of_part, number, document in split:
            yield of_part, f"document {number} of {part}", document


def _split(numbered: Iterable[tuple[int, bytes]], every: int, sample: int | None) -> Iterator[tuple[str, int, bytes]]:
    """Assign documents to train, valid and test: of every ``every`` documents, the last two are held out.

    With ``sample`` this ends with the block of ``every`` documents in which train reaches that number.
    """
    trained = 0
    for number, document in numbered:
        place = number % every
        if place == every - 1:
            yield "valid", number, document
        elif place == 0:
            yield "test", number, document
            if sample is not None and trained >= sample:
                return
        elif sample is None or trained < sample:
            trained += 1
            yield "train", number, document


def _joined(documents: Iterable[bytes], lines: int) -> Iterator[bytes]:
    """Join every ``lines`` documents into one, with line feeds."""
    if lines == 1:
        yield from documents
        return
    iterator = iter(documents)
    while block := list(itertools.islice(iterator, lines)):
        yield b"\n".join(block) + b"\n"


def _generated(data: SyntheticDocuments, sample: int | None) -> Iterator[tuple[str, bytes]]:
    """Yield the test set first: it must not depend on the number of training documents."""
    language, rng = Language(data.seed, data.stems, data.clauses), Random(data.seed)
    numbers = {"test": data.test, "valid": data.valid, "train": min(data.documents, sample or data.documents)}
    for part, number in numbers.items():
        for _ in range(number):
            yield part, _document(language, rng, data.sentences).encode()


def _document(language: Language, rng: Random, sentences: int) -> str:
    """Return a document in English or German: a title, then sentences, some with a year."""
    side = 0 if rng.random() < 0.5 else 1
    title = language.sentence()[side].rstrip(".?")
    lines = []
    for _ in range(sentences):
        sentence = language.sentence()[side]
        if rng.random() < 0.2:
            sentence = f"{1200 + int(rng.random() * 800)}: {sentence}"
        lines.append(sentence + ("\n\n" if rng.random() < 0.2 else " "))
    return f"{title}\n\n{''.join(lines).rstrip()}\n"
