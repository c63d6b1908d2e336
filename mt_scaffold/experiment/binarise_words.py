"""Words → a fairseq data folder that is segmented during training: the text itself, an index, and the dictionary.

For each subset and language, a folder holds ``SUBSET.SOURCE-TARGET.LANGUAGE.words`` (one sentence per line, UTF-8) and
beside it ``.words.npy`` (the byte offset of each line, int64), both memory-mapped by the task
``translation_bpe_dropout``; ``bpe.codes``; and one dictionary for both languages.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mt_scaffold.apply import BPE
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise import (
    DESCRIPTION,
    Binarised,
    carriage_return,
    empty_text,
    refuse_other_content,
    subset_prefixes,
    write_description,
)
from mt_scaffold.experiment.dictionary import format_dictionary
from mt_scaffold.experiment.provenance import digest_of, raw_digest
from mt_scaffold.files import PathLike, explain_os_error, make_folder, open_input, open_output, write_text
from mt_scaffold.learn import count_words
from mt_scaffold.text import SEPARATOR, check_parallel

if TYPE_CHECKING:
    import numpy

    from mt_scaffold._core import WordCounts

CODES = "bpe.codes"
_BLOCK = 1 << 22


def binarise_words(
    train: PathLike,
    valid: PathLike,
    tests: Sequence[PathLike],
    output: PathLike,
    source: str,
    target: str,
    codes: PathLike,
    separator: str = SEPARATOR,
    num_workers: int = 1,
) -> Binarised:
    """Make the fairseq data folder ``output`` for the task ``translation_bpe_dropout``.

    ``train``, ``valid`` and each of ``tests`` are prefixes: ``words/train`` stands for the files
    ``words/train.SOURCE`` and ``words/train.TARGET``, one sentence per line, words separated by spaces. ``codes`` are
    the joint codes, which are copied into the folder. The dictionary holds every subword that the codes can give and
    every character of the training text, inside and at the end of words, so that whatever dropout produces has an id.

    The same call resumes an interrupted run: complete files are kept, and ``binarised.json``, without which the folder
    is not accepted, is written last.

    Raises MTScaffoldError where sides differ in length, a file is empty, not UTF-8 or holds a carriage return, or the
    codes are malformed; UsageError for a test set whose name fairseq would misread.
    """
    output = Path(output)
    prefixes = subset_prefixes(train, valid, tests, source, target)
    refuse_other_content(output, CODES)
    bpe = BPE(codes, separator=separator)
    make_folder(output)
    try:
        (output / DESCRIPTION).unlink(missing_ok=True)
    except OSError as error:
        raise explain_os_error(error, output) from error
    with open_input(codes) as stream, open_output(output / CODES) as copy:
        copy.write(stream.read())

    pairs: dict[str, int] = {}
    digests = {CODES: raw_digest(output / CODES)}
    for subset, prefix in prefixes.items():
        lines = {}
        for language in (source, target):
            stored = output / f"{subset}.{source}-{target}.{language}.words"
            digests[f"{subset}.{language}"], lines[language] = _store(Path(f"{prefix}.{language}"), stored)
        check_parallel(f"{prefix}.{source}", lines[source], f"{prefix}.{target}", lines[target])
        pairs[subset] = lines[source]

    for subset, prefix in prefixes.items():
        # Counting also reports where a text is not UTF-8.
        counts = count_words(paths=[f"{prefix}.{language}" for language in (source, target)], num_workers=num_workers)
        if subset == "train":
            dictionary = format_dictionary(dropout_dictionary(bpe, counts, separator))
    for language in (source, target):
        write_text(output / f"dict.{language}.txt", dictionary)
    binarised = Binarised(source, target, pairs, digests, storage="words")
    write_description(output, binarised)
    return binarised


def dropout_dictionary(bpe: BPE, counts: WordCounts, separator: str = SEPARATOR) -> list[tuple[str, int]]:
    """Return every subword that any dropout can produce from the counted words, with its count without dropout.

    These are the subwords that the codes can give (``BPE.surface_forms``) and the characters of the words, each inside
    a word and at its end; the most frequent first, those that only dropout produces (count 0) last.
    """
    found = bpe.count_subwords(counts).items()
    characters = sorted(set().union(*(word for word, _ in counts.items())))
    possible = [*bpe.surface_forms(), *(form for each in characters for form in (each + separator, each))]
    frequency = dict(sorted(found, key=lambda entry: -entry[1]))
    return list((frequency | {form: 0 for form in possible if form not in frequency}).items())


class WordsFile:
    """The lines of a stored text, memory-mapped: nothing is read before it is needed."""

    def __init__(self, path: PathLike) -> None:
        import numpy

        self.path = os.fspath(path)
        try:
            self._begins = numpy.load(f"{self.path}.npy", mmap_mode="r", allow_pickle=False)
            with open(path, "rb") as stream:
                self._text = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise explain_os_error(error, error.filename or path) from error
        except ValueError as error:
            raise _damaged(self.path) from error
        if self._begins.ndim != 1 or len(self._begins) < 2 or self._begins[-1] != len(self._text):
            raise _damaged(self.path)

    def __len__(self) -> int:
        return len(self._begins) - 1

    def lines(self, indices: Sequence[int] | numpy.ndarray) -> list[bytes]:
        """Return the lines with these numbers (from 0), without their line ends."""
        import numpy

        numbers = numpy.asarray(indices)
        begins, ends = self._begins[numbers].tolist(), self._begins[numbers + 1].tolist()
        return [self._text[begin : end - 1] for begin, end in zip(begins, ends, strict=True)]


def _damaged(path: str) -> MTScaffoldError:
    return MTScaffoldError(f"{path}: not as binarise-words stored it; run mt-scaffold binarise-words again")


def _store(source: Path, stored: Path) -> tuple[str, int]:
    """Copy a text and index it, unless that is done, and return its SHA-256 digest and its number of lines."""
    import numpy

    index = Path(f"{stored}.npy")
    try:
        done = WordsFile(stored) if stored.exists() and index.exists() else None
    except MTScaffoldError:
        done = None
    if done and (digest := digest_of(_blocks(source))) == digest_of(_blocks(stored)):
        return digest, len(done)
    index.unlink(missing_ok=True)
    sha256, begins, position = hashlib.sha256(), [numpy.zeros(1, numpy.int64)], 0
    with open_output(stored) as stream:
        for block in _blocks(source):
            if b"\r" in block:
                line = sum(map(len, begins)) + block[: block.index(b"\r")].count(b"\n")
                raise carriage_return(source, line)
            begins.append(numpy.flatnonzero(numpy.frombuffer(block, numpy.uint8) == ord("\n")) + (position + 1))
            position += len(block)
            sha256.update(block)
            stream.write(block)
    if position == 0:
        stored.unlink()
        raise empty_text(source)
    offsets = numpy.concatenate(begins)
    with open_output(index) as stream:
        numpy.save(stream, offsets, allow_pickle=False)
    return sha256.hexdigest(), len(offsets) - 1


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a text, with an LF where its last line lacks one."""
    last = b"\n"
    with open_input(path) as stream:
        while block := stream.read(_BLOCK):
            last = block
            yield block
    if not last.endswith(b"\n"):
        yield b"\n"
