"""Raw documents and byte codes → a fairseq data folder for language models: the dictionary and memory-mapped ids.

A folder holds ``dict.txt``, ``bpe.codes``, and for each split ``SPLIT.bin`` and ``SPLIT.idx`` (fairseq's memory-mapped
ids, each document ending in ``</s>``) and ``SPLIT.offsets.npy`` (the offset of each raw document in the bytes of all,
int64).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from mt_scaffold.corpus.documents import DOCUMENT_FORMATS, Documents
from mt_scaffold.corpus.files import PathLike, open_input, open_output, write_text
from mt_scaffold.corpus.id_files import id_width, writing_ids
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.byte_vocabulary import Vocabulary
from mt_scaffold.experiment.binarise.data_folder import DICTIONARY, BinarisedDocuments, Split, codes_of, id_type
from mt_scaffold.experiment.binarise.pairs_as_ids import DESCRIPTION, appears_complete, refuse_other_content
from mt_scaffold.experiment.runtime.result_warnings import ResultWarning
from mt_scaffold.experiment.runtime.results import write_result
from mt_scaffold.manifest import raw_digest
from mt_scaffold.options import refuse_text, worker_count
from mt_scaffold.options_from_signature import HIDDEN, File, Name, Option, OutputFolder

_BYTES_AT_ONCE = 1 << 23
_DOCUMENTS_AT_ONCE = 1 << 16
SPLITS = ("train", "valid", "test")


def binarise_documents(
    output: OutputFolder,
    codes: Annotated[PathLike, Option("FILE", "-c")],
    train: Sequence[File] = (),
    valid: Sequence[File] = (),
    test: Sequence[File] = (),
    *,
    format: Annotated[str | None, Option(choices=DOCUMENT_FORMATS)] = None,
    field: Name | None = None,
    padding_factor: int = 8,
    num_workers: int | None = None,
    warnings: Annotated[Sequence[ResultWarning], HIDDEN] = (),
) -> BinarisedDocuments:
    """Make the fairseq data folder ``output`` for the task ``language_modeling`` (or ``language_modeling_resumable``).

    Make a fairseq data folder for language models from raw documents and byte codes: ids of the codes' tokens, each
    document ending in </s>. The dictionary follows from the codes, so that every test set can have a separate folder:
    --test FILE --output FOLDER, with the same --codes and --padding-factor as the training data.

    codes: codes with a pre-tokeniser, bpe or scaffold
    train: documents of the training split
    valid: documents of the validation split
    test: documents of the test split
    output: the fairseq data folder to make
    format: how documents are stored: one per line, one per file, JSON objects or a table (default: by the file's name,
        lines for any other)
    field: the field of JSONL and Parquet (default: text)
    padding_factor: pad the dictionary to a multiple of N symbols
    num_workers: threads, -1: all cores (default: all, up to 16)

    Documents are read as ``Documents`` does; empty ones are left out. The ids are those of ``BPE.encode``, plus 4 for
    fairseq's own symbols, in the smallest type that fairseq reads. ``dict.txt`` names each token in GPT-2's notation,
    with its count in ``train``. ``warnings`` of the documents go into the description of the folder, for comparisons.

    The folder appears only once it is complete, with ``binarised.json``; an earlier data folder is replaced. Raises
    MTScaffoldError if a file is missing or malformed, a split has no documents, or the codes are malformed or have
    no ids; UsageError if there is nothing to binarise.
    """
    refuse_text(train=train, valid=valid, test=test)
    splits = {name: paths for name, paths in zip(SPLITS, (train, valid, test), strict=True) if paths}
    if not splits:
        raise UsageError("binarise-documents: nothing to binarise; give --train, --valid or --test")
    if padding_factor < 1:
        raise UsageError(f"--padding-factor {padding_factor}: must be 1 or more")
    output, threads = Path(output), worker_count(num_workers)
    refuse_other_content(output, DESCRIPTION)
    vocabulary = Vocabulary(codes)
    symbols = vocabulary.symbols(padding_factor)
    with appears_complete(output) as folder:
        with open_input(codes) as stream, open_output(codes_of(folder)) as copy:
            copy.write(stream.read())
        found: dict[str, Split] = {}
        digests = {"codes": raw_digest(codes_of(folder))}
        counts: Any = None
        for name, paths in splits.items():
            written = _Written(vocabulary, symbols, threads)
            written.write(non_empty_documents(paths, format, field), folder / name)
            if not written.documents:
                raise MTScaffoldError(f"{', '.join(map(str, paths))}: no document with any text; every split needs one")
            found[name] = Split(written.documents, written.bytes, int(written.counts.sum()))
            digests[name] = written.digest.hexdigest()
            counts = written.counts if name == "train" else counts
        listed = [0] * symbols if counts is None else counts.tolist()
        write_text(folder / DICTIONARY, vocabulary.dictionary(listed, padding_factor))
        digests[DICTIONARY] = raw_digest(folder / DICTIONARY)
        binarised = BinarisedDocuments(
            task="language_modeling",
            splits=found,
            storage="ids",
            symbols=symbols,
            n_vocab=len(vocabulary.tokens),
            vocabulary=vocabulary.digest,
            sha256=digests,
            warnings=[*warnings],
        )
        write_result(folder / DESCRIPTION, binarised)
    return binarised


class _Written:
    """Writes a split and measures it. counts: the occurrences of each id."""

    def __init__(self, vocabulary: Vocabulary, symbols: int, threads: int) -> None:
        import numpy

        self._vocabulary, self._symbols, self._threads = vocabulary, symbols, threads
        self.documents = self.bytes = 0
        self.counts: Any = numpy.zeros(symbols, numpy.int64)
        self.digest = hashlib.sha256()

    def write(self, documents: Iterable[bytes], path: Path) -> None:
        """Write all files of a split."""
        import numpy

        offsets = [numpy.zeros(1, numpy.int64)]
        with writing_ids(f"{path}.bin", id_width(self._symbols)) as ids:
            for block in blocks_of(documents):
                encoded, begins = self._vocabulary.encode(block, num_workers=self._threads)
                self.counts += numpy.bincount(encoded, minlength=self._symbols)
                ids.ids.write(encoded.astype(id_type(self._symbols)).tobytes())
                ids.sizes.write(numpy.diff(begins).astype("<i4").tobytes())
                sizes = numpy.array([len(document) for document in block], numpy.int64)
                offsets.append(self.bytes + numpy.cumsum(sizes))
                self._add(block, sizes)
        with open_output(path.with_name(f"{path.name}.offsets.npy")) as stream:
            numpy.save(stream, numpy.concatenate(offsets), allow_pickle=False)

    def _add(self, block: Sequence[bytes], sizes: Any) -> None:
        self.documents += len(block)
        self.bytes += int(sizes.sum())
        digest_block(self.digest, block)


def digest_block(digest: Any, block: Sequence[bytes]) -> None:
    """Add a block of ``blocks_of`` to the digest that tells whether two scores are of the same documents."""
    import numpy

    # With the lengths, the digest depends on where documents end.
    digest.update(numpy.array([len(document) for document in block], numpy.int64).tobytes())
    for document in block:
        digest.update(document)


def non_empty_documents(paths: Sequence[PathLike], format: str | None, field: str | None) -> Iterator[bytes]:
    """Yield the documents that are not empty."""
    return (document for document in Documents(paths, format, field) if document)


def blocks_of(documents: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield documents in lists of a few megabytes."""
    block: list[bytes] = []
    size = 0
    for document in documents:
        block.append(document)
        size += len(document)
        if size >= _BYTES_AT_ONCE or len(block) >= _DOCUMENTS_AT_ONCE:
            yield block
            block, size = [], 0
    if block:
        yield block
