"""The binarised format: ``PATH.bin``, fairseq's memory-mapped ids, and ``PATH.idx``, its index of the sentences."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import open_input, warn_of_mark
from mt_scaffold.corpus.id_files import writing_ids
from mt_scaffold.corpus.text import not_utf8
from mt_scaffold.corpus.vocabulary_file import SPECIAL_SYMBOLS
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise.dictionary import END_ID, UNKNOWN_ID
from mt_scaffold.segment.segmenter import Segmenter, SentenceEncoder

# fairseq's types of ids, each for dictionaries smaller than the number.
_TYPES = ((65500, "<u2"), (4294967295, "<u4"))
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Counts:
    """The size of one side of a subset.

    bytes: of its text, in UTF-8, with a line end after each line. subwords: without BPE-dropout, and without
    fairseq's ``</s>``. unknown: how many of the subwords are ``<unk>``.
    """

    lines: int
    bytes: int
    subwords: int = 0
    unknown: int = 0


def write_ids(text: Path, path: Path, bpe: Segmenter, ids: Mapping[str, int], threads: int = 1) -> Counts:
    """Write ``PATH.bin`` and ``PATH.idx`` for a text of words, segmented by ``bpe``, in bounded memory.

    ids: subword → id; others become ``<unk>``. Each sentence ends in ``</s>``. Raises MTScaffoldError if the text is
    missing, empty, not UTF-8, or has a carriage return, which fairseq would treat as a line end.
    """
    import numpy

    _, kind = next(entry for entry in _TYPES if len(ids) + len(SPECIAL_SYMBOLS) < entry[0])
    width = numpy.dtype(kind).itemsize
    encoder = bpe.encoder(ids, UNKNOWN_ID)
    lines, size_in_bytes, unknown = 0, 0, 0
    with writing_ids(path.with_name(f"{path.name}.bin"), width) as writer:
        for encoded in _in_order(text, encoder, kind, threads):
            writer.ids.write(encoded.ids)
            writer.sizes.write(encoded.sizes)
            lines += len(encoded.sizes)
            size_in_bytes += encoded.bytes
            unknown += encoded.unknown
        if not lines:
            raise empty_text(text)
        subwords = writer.ids.tell() // width - lines
    return Counts(lines, size_in_bytes, subwords, unknown)


@dataclass(frozen=True)
class _Encoded:
    """A block of sentences: their ids as bytes, the number of ids of each, the bytes of their text, unknown ids."""

    ids: bytes
    sizes: Any
    bytes: int
    unknown: int


def _in_order(text: Path, encoder: SentenceEncoder, kind: str, threads: int) -> Iterator[_Encoded]:
    """Yield the encoded blocks of a text in order; the core segments several at once, without Python's lock."""
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[_Encoded]] = deque()
        for lines in _blocks(text):
            waiting.append(pool.submit(_encode, encoder, lines, kind))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _encode(encoder: SentenceEncoder, lines: list[bytes], kind: str) -> _Encoded:
    import numpy

    found, offsets = (numpy.asarray(buffer) for buffer in encoder.ids_of(lines))
    sizes = numpy.diff(offsets)
    # Shift each sentence by the number of </s> before it.
    joined = numpy.full(len(found) + len(lines), END_ID, kind)
    joined[numpy.arange(len(found)) + numpy.repeat(numpy.arange(len(lines)), sizes)] = found
    unknown = int(numpy.count_nonzero(found == UNKNOWN_ID))
    return _Encoded(joined.tobytes(), (sizes + 1).astype("<i4"), sum(map(len, lines)) + len(lines), unknown)


def _blocks(text: Path) -> Iterator[list[bytes]]:
    """Yield the lines of a text, without line ends, about 1 MiB at a time."""
    number = offset = 0
    with open_input(text) as stream:
        while lines := stream.readlines(_BLOCK):
            if not number:
                warn_of_mark(lines[0], str(text))
            block = b"".join(lines)
            if b"\r" in block:
                bad = next(index for index, line in enumerate(lines) if b"\r" in line)
                raise carriage_return(text, number + bad + 1)
            try:
                block.decode("utf-8")
            except UnicodeDecodeError as error:
                line = number + block.count(b"\n", 0, error.start) + 1
                raise not_utf8(str(text), line, offset + error.start, block[error.start]) from None
            number += len(lines)
            offset += len(block)
            yield [line.removesuffix(b"\n") for line in lines]


def carriage_return(path: Path, line: int) -> MTScaffoldError:
    """Return the error for a carriage return, at which fairseq would split a line; line: counted from 1."""
    return MTScaffoldError(
        f"{path}: line {line}: a carriage return, which fairseq treats as a line end; remove it (mt-scaffold tokenise "
        "does)"
    )


def empty_text(path: Path) -> MTScaffoldError:
    """Return the error for a text without lines."""
    return MTScaffoldError(f"{path}: empty; every subset needs at least one sentence pair")
