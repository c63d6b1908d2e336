"""Raw text → words, and back: normalising, tokenising and detokenising with sacremoses, line by line.

Words are Moses' words, its escapes included (``'`` becomes ``&apos;``, ``|`` becomes ``&#124;``): the published fairseq
recipes train on text like that, so the word and subword counts here can be set beside theirs. ``detokenise`` takes the
escapes back.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import BinaryIO

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.files import (
    PathLike,
    open_input,
    open_output,
    refuse_overwriting,
    standard_input,
    standard_output,
)
from mt_scaffold.options import worker_count
from mt_scaffold.text import not_utf8, word_count

CHUNK_LINES = 2000


@dataclass(frozen=True)
class TokeniseReport:
    """How much text was tokenised: lines (as many out as in) and words after tokenising."""

    language: str
    lines: int
    words: int
    sacremoses: str


class Tokeniser:
    """Turns a line of raw text into words, by the rules of ``language`` (``de``; unknown codes: those of English)."""

    def __init__(
        self,
        language: str,
        normalise_punctuation: bool = True,
        remove_nonprinting: bool = True,
        aggressive_dash_splitting: bool = True,
        straight_apostrophes: bool = False,
    ) -> None:
        import regex  # type: ignore[import-untyped]
        from sacremoses import MosesPunctNormalizer, MosesTokenizer

        self._normaliser = MosesPunctNormalizer(lang=language) if normalise_punctuation else None
        # Control, format and private-use characters, as Moses does. Unassigned code points stay, other than there:
        # which those are would hang on the Unicode version of a library.
        self._nonprinting = regex.compile(r"[\p{Cc}\p{Cf}\p{Co}]") if remove_nonprinting else None
        self._tokeniser = MosesTokenizer(lang=language)
        self._straight = straight_apostrophes
        self._aggressive = aggressive_dash_splitting

    def __call__(self, line: str) -> str:
        """The words of ``line``, separated by single spaces; no kind of line break or other white space is left."""
        if self._straight:
            line = line.replace("\u2019", "'")
        if self._normaliser is not None:
            line = self._normaliser.normalize(line)
        if self._nonprinting is not None:
            line = self._nonprinting.sub(" ", line)
        words = self._tokeniser.tokenize(line, aggressive_dash_splits=self._aggressive, escape=True, return_str=True)
        return " ".join(words.split())


def tokenise(
    input_path: PathLike | None,
    output_path: PathLike | None,
    language: str,
    *,
    normalise_punctuation: bool = True,
    remove_nonprinting: bool = True,
    aggressive_dash_splitting: bool = True,
    straight_apostrophes: bool = False,
    num_workers: int = 1,
    chunk: tuple[int, int] = (1, 1),
) -> TokeniseReport:
    """Tokenise a UTF-8 text, one output line for each input line in the same order; ``None`` is stdin or stdout.

    A line ends at LF only; other line breaks inside it (CR, U+0085, U+2028, form feed) count as white space, so that
    no later step can split the line there. An empty line stays an empty line. The output does not depend on
    ``num_workers`` (processes). An output whose name ends in ``.gz`` is compressed.
    ``chunk`` (k, n) takes the k-th of n parts of an uncompressed file, cut at line ends after about equal numbers of
    bytes: the outputs for (1, n) to (n, n), one after the other, are the output for the whole, also as ``.gz``.
    Raises MTScaffoldError for bytes that are not UTF-8, with file, line and byte; UsageError for fewer than 1 worker
    and a chunk that cannot be.
    """
    num_workers = worker_count(num_workers)
    _warn_of_unknown(language)
    if not 1 <= chunk[0] <= chunk[1]:
        raise UsageError(f"chunk {chunk[0]} of {chunk[1]}: must be one of 1 to {chunk[1]}")
    refuse_overwriting([output_path], [input_path])
    if chunk[1] > 1 and (input_path is None or os.fspath(input_path).endswith(".gz")):
        raise UsageError("a chunk can only be taken of an uncompressed file")
    import sacremoses

    make_tokeniser = functools.partial(
        Tokeniser,
        language,
        normalise_punctuation=normalise_punctuation,
        remove_nonprinting=remove_nonprinting,
        aggressive_dash_splitting=aggressive_dash_splitting,
        straight_apostrophes=straight_apostrophes,
    )
    name = "standard input" if input_path is None else str(input_path)
    lines = words = start = 0
    with _input(input_path) as source, _output(output_path) as target:
        if chunk[1] > 1:
            start, end = _bounds(source, *chunk)
            # To count the lines before would mean to read all of them.
            name, source_lines = f"{name} from byte {start}", _lines_to(source, end)
        else:
            source_lines = source
        for tokenised in _map_lines(make_tokeniser, source_lines, start, name, num_workers):
            for line in tokenised:
                target.write(line)
                lines += 1
                words += word_count(line)
    return TokeniseReport(language, lines, words, sacremoses.__version__)


def gather_chunks(
    chunks: Sequence[PathLike], output_path: PathLike, reports: Sequence[TokeniseReport]
) -> TokeniseReport:
    """Join the tokenised ``chunks`` (1, n) to (n, n) of one text, plain or ``.gz``, and add up their reports.

    Raises MTScaffoldError where the reports are not those of one text.
    """
    if len({(report.language, report.sacremoses) for report in reports}) != 1:
        raise MTScaffoldError(f"{output_path}: its chunks differ in language or version of sacremoses; tokenise again")
    # Compressed texts, one after the other, are one compressed text.
    with open_output(output_path, compress=False) as target:
        for chunk in chunks:
            with open(chunk, "rb") as source:
                shutil.copyfileobj(source, target, 1 << 20)
    lines, words = sum(report.lines for report in reports), sum(report.words for report in reports)
    return dataclasses.replace(reports[0], lines=lines, words=words)


def detokenise(lines: Iterable[str], language: str) -> list[str]:
    """Join the words of each tokenised line to the text a reader expects, Moses' escapes and ``@-@`` taken back.

    What normalising changed (kinds of quotation marks and dashes, white space) is not restored.
    """
    from sacremoses import MosesDetokenizer

    detokeniser = MosesDetokenizer(lang=language)
    return [detokeniser.detokenize(line.split(), return_str=True, unescape=True) for line in lines]


def _warn_of_unknown(language: str) -> None:
    """sacremoses takes English rules for a language that it does not know, and says nothing."""
    from sacremoses.corpus import NonbreakingPrefixes

    if language not in {*NonbreakingPrefixes().available_langs.values(), "ja", "ko", "cjk"}:
        print(
            f"mt-scaffold: warning: sacremoses has no rules for the language '{language}' and takes those of English; "
            "codes are such as en, de, fr",
            file=sys.stderr,
        )


def _input(path: PathLike | None) -> contextlib.AbstractContextManager[BinaryIO]:
    return contextlib.nullcontext(standard_input()) if path is None else open_input(path)


@contextlib.contextmanager
def _output(path: PathLike | None) -> Iterator[BinaryIO]:
    if path is None:
        yield standard_output()
        return
    with open_output(path) as stream:
        yield stream


def _bounds(stream: BinaryIO, number: int, count: int) -> tuple[int, int]:
    """The bytes of the ``number``-th of ``count`` parts, both ends moved to the next start of a line."""
    size = stream.seek(0, os.SEEK_END)
    ends = []
    for share in (number - 1, number):
        position = size * share // count
        if 0 < position < size:
            # From the byte before: a line that starts exactly here stays whole.
            stream.seek(position - 1)
            position += len(stream.readline()) - 1
        ends.append(position)
    stream.seek(ends[0])
    return ends[0], ends[1]


def _lines_to(stream: BinaryIO, end: int) -> Iterator[bytes]:
    """The lines of ``stream`` from where it stands up to the byte ``end``."""
    left = end - stream.tell()
    while left > 0:
        line = stream.readline()
        left -= len(line)
        yield line


@dataclass(frozen=True)
class _Chunk:
    """Some lines, the number of the first one (from 1) and the bytes before it in the file."""

    first: int
    offset: int
    lines: list[bytes]


def _chunks(lines: Iterable[bytes], offset: int) -> Iterator[_Chunk]:
    """``lines``, which begin at the byte ``offset``, by the thousand."""
    first, lines = 1, iter(lines)
    while taken := list(itertools.islice(lines, CHUNK_LINES)):
        yield _Chunk(first, offset, taken)
        first += len(taken)
        offset += sum(map(len, taken))


def _map_lines(
    make_tokeniser: Callable[[], Tokeniser], lines: Iterable[bytes], offset: int, name: str, num_workers: int
) -> Iterator[list[bytes]]:
    """The tokenised chunks of ``lines`` in order, at most a few chunks for each worker in memory."""
    if num_workers == 1:
        tokeniser = make_tokeniser()
        for chunk in _chunks(lines, offset):
            yield _tokenise_chunk(tokeniser, chunk, name)
        return
    executor = ProcessPoolExecutor(num_workers, initializer=_start_worker, initargs=(make_tokeniser,))
    try:
        pending = collections.deque[Future[list[bytes]]]()
        for chunk in _chunks(lines, offset):
            pending.append(executor.submit(_tokenise_in_worker, chunk, name))
            if len(pending) >= 3 * num_workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool as error:
        raise MTScaffoldError(f"{name}: a worker process died (out of memory?); try fewer workers") from error
    finally:
        executor.shutdown(cancel_futures=True)


_worker_tokeniser: Tokeniser | None = None


def _start_worker(make_tokeniser: Callable[[], Tokeniser]) -> None:
    """Load sacremoses' rules once in a worker process."""
    global _worker_tokeniser
    # Ctrl-C is for the parent, which then ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _worker_tokeniser = make_tokeniser()


def _tokenise_in_worker(chunk: _Chunk, name: str) -> list[bytes]:
    assert _worker_tokeniser is not None
    return _tokenise_chunk(_worker_tokeniser, chunk, name)


def _tokenise_chunk(tokeniser: Tokeniser, chunk: _Chunk, name: str) -> list[bytes]:
    tokenised = []
    offset = chunk.offset
    for number, line in enumerate(chunk.lines, chunk.first):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise not_utf8(name, number, offset + error.start, line[error.start]) from None
        tokenised.append(tokeniser(text).encode("utf-8") + b"\n")
        offset += len(line)
    return tokenised
