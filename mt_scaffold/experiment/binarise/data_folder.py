"""The contents of a data folder: sentence pairs for translation, or documents for language models."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mt_scaffold.corpus.files import PathLike, explain_os_error
from mt_scaffold.corpus.id_files import id_width, read_index
from mt_scaffold.corpus.vocabulary_file import SPECIAL_SYMBOLS, read_dictionary
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise.offsets import map_offsets
from mt_scaffold.experiment.binarise.pairs_as_ids import DESCRIPTION, Binarised, read_binarised
from mt_scaffold.experiment.binarise.pairs_as_ids import task_arguments as translation_arguments
from mt_scaffold.experiment.binarise.segmentation import CODES
from mt_scaffold.experiment.runtime.provenance import sha256
from mt_scaffold.experiment.runtime.result_warnings import ResultWarning
from mt_scaffold.experiment.runtime.results import read_result

DICTIONARY = "dict.txt"


@dataclass(frozen=True)
class Split:
    """The size of one split. bytes: of its raw documents. tokens: with one ``</s>`` per document."""

    documents: int
    bytes: int
    tokens: int


@dataclass(frozen=True)
class BinarisedDocuments:
    """The description of a data folder of ``binarise_documents``.

    storage: that of all splits. symbols: the size of the dictionary, with fairseq's own and padding. n_vocab: the
    number of tokens of the codes. vocabulary: the digest of these tokens (``Vocabulary.digest``). sha256: digests of
    the codes, of ``dict.txt`` and of the documents of each split. warnings: those of the caller.
    """

    task: Literal["language_modeling"]
    splits: dict[str, Split]
    storage: Literal["ids"]
    symbols: int
    n_vocab: int
    vocabulary: str
    sha256: dict[str, str]
    warnings: list[ResultWarning] = field(default_factory=list)


def read_documents_folder(folder: PathLike) -> BinarisedDocuments:
    """Return the description of a data folder; raise MTScaffoldError if ``binarise_documents`` did not make it."""
    found = read_data_folder(folder)
    if isinstance(found, Binarised):
        raise MTScaffoldError(
            f"{folder}: holds sentence pairs for translation; make a folder with mt-scaffold binarise-documents"
        )
    return found


def read_data_folder(folder: PathLike) -> Binarised | BinarisedDocuments:
    """Return the description of a data folder of ``binarise``, ``binarise_words`` or ``binarise_documents``.

    Raises MTScaffoldError if mt-scaffold did not make it.
    """
    path = Path(folder) / DESCRIPTION
    try:
        content = json.loads(path.read_bytes()) if path.exists() else None
    except OSError as error:
        raise explain_os_error(error, path) from error
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, dict) and "task" in content:
        return read_result(BinarisedDocuments, path)
    return read_binarised(folder)


def shards_of(data: PathLike) -> list[Path]:
    """Return the folders of ``data``, separated by ``:``; training takes them in turn, one per epoch."""
    return [Path(folder) for folder in str(data).split(os.pathsep)]


def read_shards(data: PathLike) -> Binarised | BinarisedDocuments:
    """Return the description of the first of the folders of ``data``.

    Raises MTScaffoldError if mt-scaffold did not make one of them, or if their ids have different meanings.
    """
    folders = shards_of(data)
    first = read_data_folder(folders[0])
    for folder in folders[1:]:
        if _ids(read_data_folder(folder)) != _ids(first):
            raise MTScaffoldError(
                f"{folder}: its ids are not those of {folders[0]}; make it again with the same codes and dictionaries"
            )
    return first


def _ids(found: Binarised | BinarisedDocuments) -> object:
    """Return a key that is equal for folders in which every id is the same subword."""
    if isinstance(found, Binarised):
        return found.languages, [found.sha256[f"dict.{language}.txt"] for language in found.languages]
    return found.symbols, found.vocabulary


def data_digest(data: PathLike) -> str:
    """Return the SHA-256 of the description of a data folder, or of the digests of those of several."""
    digests = [sha256(folder / DESCRIPTION) for folder in shards_of(data)]
    return digests[0] if len(digests) == 1 else hashlib.sha256(" ".join(digests).encode()).hexdigest()


@dataclass(frozen=True)
class DictionaryUse:
    """How a system's dictionaries (a joint one, or source and target) fit its text.

    entries: the size of each, without fairseq's own symbols and padding. unused: how many of these never occur in the
    training text as segmented without resampling. unknown, unknown_tests: running ``<unk>`` in the training text (more
    than 0 only if the dictionaries are limited) and in each test set, on both sides. rows: the number of embeddings for
    each dictionary, with all symbols and padding; empty in results of earlier versions.
    """

    entries: list[int]
    unused: list[int]
    unknown: int
    unknown_tests: dict[str, int]
    rows: list[int] = field(default_factory=list)


def dictionary_use(folder: PathLike, tests: Mapping[str, PathLike]) -> DictionaryUse | None:
    """Return how a data folder's dictionaries fit its text and test sets (name → folder); None if one is missing."""
    if not all((Path(each) / DESCRIPTION).exists() for each in (folder, *tests.values())):
        return None
    found = read_data_folder(folder)
    if not isinstance(found, Binarised):
        # Every token of the codes has an id, and every text is made of bytes.
        used = [count for _, count in read_dictionary(Path(folder) / DICTIONARY)][: found.n_vocab]
        return DictionaryUse([found.n_vocab], [used.count(0)], 0, dict.fromkeys(tests, 0), [found.symbols])
    source, target = (read_dictionary(Path(folder) / f"dict.{language}.txt") for language in found.languages)
    dictionaries = [source] if source == target else [source, target]
    counts = [[count for form, count in each if not is_padding(form, count)] for each in dictionaries]
    unknown = {
        test: sum(side.unknown for side in read_binarised(path).counts[test].values()) for test, path in tests.items()
    }
    return DictionaryUse(
        [len(each) for each in counts],
        [each.count(0) for each in counts],
        sum(side.unknown for side in found.counts["train"].values()),
        unknown,
        [len(SPECIAL_SYMBOLS) + len(each) for each in dictionaries],
    )


def is_padding(form: str, count: int) -> bool:
    """Return whether an entry only pads a dictionary to a multiple of some number."""
    return count == 0 and re.fullmatch(r"madeupword\d{4,}", form) is not None


def subsets(binarised: Binarised | BinarisedDocuments) -> list[str]:
    """Return the names of the subsets in a data folder."""
    return list(binarised.pairs if isinstance(binarised, Binarised) else binarised.splits)


def data_arguments(binarised: Binarised | BinarisedDocuments, options: Container[str]) -> list[str]:
    """Return fairseq's arguments for a data folder: its languages, and its task, unless ``options`` have one."""
    if isinstance(binarised, Binarised):
        languages = ["--source-lang", binarised.source, "--target-lang", binarised.target]
        return [*languages, *translation_arguments(binarised, options)]
    return [] if "task" in options else ["--task", "language_modeling_resumable"]


def codes_of(folder: PathLike) -> Path:
    """Return the codes in a data folder."""
    return Path(folder) / CODES


def text_offsets(folder: PathLike, split: str) -> Any:
    """Return the offset of each raw document of a split in the bytes of all (int64, one more than documents).

    Raises MTScaffoldError if the file cannot be read or is damaged.
    """
    path = Path(folder) / f"{split}.offsets.npy"
    try:
        return map_offsets(path)
    except ValueError as error:
        raise MTScaffoldError(f"{path}: damaged or modified; run mt-scaffold binarise-documents again") from error


def id_type(symbols: int) -> str:
    """Return NumPy's name of fairseq's smallest type for the ids of a dictionary of this size."""
    return f"<u{id_width(symbols)}"


def read_ids(path: PathLike) -> tuple[Any, Any]:
    """Return the ids of all documents in one array, memory-mapped from ``PATH.bin``, and their offsets in it (int64).

    The offsets are one more than the documents. Raises MTScaffoldError if a file is missing or damaged.
    """
    import numpy

    found = read_index(f"{path}.bin", "fairseq")
    offsets = numpy.zeros(found.documents + 1, numpy.int64)
    if not found.documents:
        raise MTScaffoldError(f"{found.index_file}: no document; run mt-scaffold binarise-documents again")
    numpy.cumsum(numpy.concatenate([numpy.asarray(sizes) for sizes in found.sizes()]), out=offsets[1:])
    return numpy.memmap(found.path, f"<u{found.width}", "r"), offsets
