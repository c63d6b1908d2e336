"""Words → a fairseq data folder that is segmented during training: the text itself, an index, and the dictionaries.

For each subset and language, a folder holds ``SUBSET.SOURCE-TARGET.LANGUAGE.words`` (one sentence per line, UTF-8) and
``.words.npy`` (the byte offset of each line, int64), both memory-mapped by the task ``translation_bpe_dropout``; the
segmentation (``bpe.codes``); and the dictionaries.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.files import PathLike, explain_os_error, make_folder, open_input, open_output, warn_of_mark
from mt_scaffold.corpus.text import check_parallel
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.binarised_format import Counts, carriage_return, empty_text
from mt_scaffold.experiment.binarise.dictionary import (
    NO_LIMITS,
    SourceLanguage,
    TargetLanguage,
    added_by,
    make_dictionaries,
    read_ids,
)
from mt_scaffold.experiment.binarise.offsets import map_offsets
from mt_scaffold.experiment.binarise.pairs_as_ids import (
    DESCRIPTION,
    Binarised,
    copy_dictionaries,
    dictionary_digests,
    refuse_other_content,
    subset_prefixes,
    write_description,
)
from mt_scaffold.experiment.binarise.segmentation import STORED, Segmentation
from mt_scaffold.experiment.configuration.data import Limits
from mt_scaffold.experiment.runtime.provenance import digest_of
from mt_scaffold.options_from_signature import HIDDEN, Folder, Option, OutputFolder, Prefix, Workers
from mt_scaffold.segment.draw import Draw

if TYPE_CHECKING:
    import numpy

_BLOCK = 1 << 22


def binarise_words(
    output: OutputFolder,
    source: SourceLanguage,
    target: TargetLanguage,
    segmentation: Segmentation,
    train: Prefix | None = None,
    valid: Prefix | None = None,
    tests: Annotated[Sequence[PathLike], Option("PREFIX", name="test")] = (),
    dictionaries: Folder | None = None,
    limits: Limits = NO_LIMITS,
    resamplings: Annotated[tuple[Draw, Draw] | None, HIDDEN] = None,
    num_workers: Workers = 1,
) -> Binarised:
    """Make the fairseq data folder ``output`` for the task ``translation_bpe_dropout``.

    Make a fairseq data folder of words, for fairseq's --task translation_bpe_dropout, which segments them during
    training; see docs/fairseq.md.

    train: words of the training set: PREFIX.LANGUAGE
    valid: words of the validation set
    tests: words of each test set
    dictionaries: folder with dict.LANGUAGE.txt (default: made from --train)
    output: the fairseq data folder to make

    ``resamplings``: the resampling that a training can use for each side (default: that of the method). The
    segmentation is copied into the folder. Dictionaries made here have all subwords that it can make of the training
    words (``make_dictionaries``). The kinds whose subwords all have ids are recorded, whoever made the dictionaries: a
    training with another kind is refused.

    The same call resumes an interrupted run: complete files are kept, and ``binarised.json``, without which the folder
    is not accepted, is written last.

    Raises MTScaffoldError if sides differ in length, a file is empty, not UTF-8 or has a carriage return, or the codes
    are malformed; UsageError for a test set whose name fairseq would misread.
    """
    output = Path(output)
    prefixes = subset_prefixes(train, valid, tests, source, target)
    if train is None and dictionaries is None:
        raise UsageError("binarise-words: without a training set, give the folder of the dictionaries (--dictionaries)")
    refuse_other_content(output, STORED)
    # Malformed codes are reported before anything is written.
    segmenters = segmentation.segmenters()
    make_folder(output)
    try:
        (output / DESCRIPTION).unlink(missing_ok=True)
    except OSError as error:
        raise explain_os_error(error, output) from error
    languages = (source, target)
    resamplings = segmentation.resamplings if resamplings is None else resamplings
    digests = segmentation.store(output, languages)

    if dictionaries is not None:
        copy_dictionaries(Path(dictionaries), output, languages)
    else:
        assert train is not None
        make_dictionaries(train, output, source, target, segmentation, limits, resamplings, num_workers)
    digests |= dictionary_digests(output, languages)
    ids = {language: read_ids(output / f"dict.{language}.txt") for language in languages}

    pairs: dict[str, int] = {}
    counts: dict[str, dict[str, Counts]] = {}
    covered: dict[str, list[str]] = {}
    for subset, prefix in prefixes.items():
        counts[subset] = {}
        for language, bpe, draw in zip(languages, segmenters, resamplings, strict=True):
            text = Path(f"{prefix}.{language}")
            stored = output / f"{subset}.{source}-{target}.{language}.words"
            digests[f"{subset}.{language}"], copied = _store(text, stored)
            # Counting also refuses text that is not UTF-8.
            words = count_words(text, num_workers=num_workers)
            subwords = bpe.count_subwords(words)
            known = sum(count for form, count in subwords.items() if form in ids[language] and bpe.can_have_id(form))
            if subset == "train":
                covered[language] = [draw.reach] if draw and not added_by(draw, bpe, words, ids[language]) else []
            counts[subset][language] = replace(copied, subwords=subwords.total(), unknown=subwords.total() - known)
        lines = [counts[subset][language].lines for language in languages]
        check_parallel(f"{prefix}.{source}", lines[0], f"{prefix}.{target}", lines[1])
        pairs[subset] = lines[0]
    binarised = Binarised(
        source, target, pairs, digests, "words", counts, segmentation.separator, segmentation.word_start, covered
    )
    write_description(output, binarised)
    return binarised


class WordsFile:
    """The lines of a stored text, memory-mapped: each is read only when it is needed."""

    def __init__(self, path: PathLike) -> None:
        self.path = os.fspath(path)
        try:
            self._begins = map_offsets(f"{self.path}.npy", least=1)
            with open(path, "rb") as stream:
                self._text = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise explain_os_error(error, error.filename or path) from error
        except ValueError as error:
            raise _damaged(self.path) from error
        if self._begins[-1] != len(self._text):
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
    return MTScaffoldError(f"{path}: damaged or modified; run mt-scaffold binarise-words again")


def _store(source: Path, stored: Path) -> tuple[str, Counts]:
    """Copy and index a text, unless that is done already, and return its SHA-256 digest and its size."""
    import numpy

    index = Path(f"{stored}.npy")
    try:
        done = WordsFile(stored) if stored.exists() and index.exists() else None
    except MTScaffoldError:
        done = None
    if done and (digest := digest_of(_blocks(source))) == digest_of(_blocks(stored)):
        return digest, Counts(len(done), stored.stat().st_size)
    index.unlink(missing_ok=True)
    sha256, begins, position = hashlib.sha256(), [numpy.zeros(1, numpy.int64)], 0
    with open_output(stored) as stream:
        for block in _blocks(source):
            if not position:
                warn_of_mark(block, str(source))
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
    return sha256.hexdigest(), Counts(len(offsets) - 1, position)


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a text, adding an LF if its last line has none."""
    last = b"\n"
    with open_input(path) as stream:
        while block := stream.read(_BLOCK):
            last = block
            yield block
    if not last.endswith(b"\n"):
        yield b"\n"
