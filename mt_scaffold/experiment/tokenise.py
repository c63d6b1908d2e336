"""Raw text → words, and back: normalise, tokenise and detokenise with sacremoses, line by line.

Words are Moses' words, escapes included (``'`` becomes ``&apos;``, ``|`` becomes ``&#124;``): the published fairseq
recipes train on such text, so word and subword counts compare with theirs. ``detokenise`` undoes the escapes.
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

BATCH_LINES = 2000


@dataclass(frozen=True)
class TokeniseReport:
    """How much text was tokenised: lines (the same number before and after) and words after tokenising."""

    language: str
    lines: int
    words: int
    sacremoses: str


class Tokeniser:
    """Splits a line of raw text into words by the rules of ``language`` (``de``; English for an unknown code)."""

    def __init__(
        self,
        language: str,
        normalise_punctuation: bool = True,
        remove_nonprinting: bool = True,
        aggressive_dash_splitting: bool = True,
        straight_apostrophes: bool = False,
        lowercase: bool = False,
    ) -> None:
        import regex  # type: ignore[import-untyped]
        from sacremoses import MosesPunctNormalizer, MosesTokenizer

        self._normaliser = MosesPunctNormalizer(lang=language) if normalise_punctuation else None
        # As Moses does, but unassigned code points stay: which ones they are depends on a library's Unicode version.
        self._nonprinting = regex.compile(r"[\p{Cc}\p{Cf}\p{Co}]") if remove_nonprinting else None
        self._tokeniser = MosesTokenizer(lang=language)
        self._straight = straight_apostrophes
        self._aggressive = aggressive_dash_splitting
        self._lowercase = lowercase

    def __call__(self, line: str) -> str:
        """Return the words of ``line`` separated by single spaces; no line break or other white space is left."""
        if self._straight:
            line = line.replace("\u2019", "'")
        if self._normaliser is not None:
            line = self._normaliser.normalize(line)
        if self._nonprinting is not None:
            line = self._nonprinting.sub(" ", line)
        words = self._tokeniser.tokenize(line, aggressive_dash_splits=self._aggressive, escape=True, return_str=True)
        # Last, because Moses' rules for full stops look at capitals.
        return " ".join((words.lower() if self._lowercase else words).split())


def tokenise(
    input_path: PathLike | None,
    output_path: PathLike | None,
    language: str,
    *,
    normalise_punctuation: bool = True,
    remove_nonprinting: bool = True,
    aggressive_dash_splitting: bool = True,
    straight_apostrophes: bool = False,
    lowercase: bool = False,
    num_workers: int = 1,
    chunk: tuple[int, int] = (1, 1),
) -> TokeniseReport:
    """Tokenise a UTF-8 text, one output line per input line in the same order; ``None`` is stdin or stdout.

    A line ends at LF only; other line breaks within it (CR, U+0085, U+2028, form feed) become spaces, so that no later
    step can split the line there. An empty line stays empty. The output does not depend on ``num_workers`` (processes).
    An output whose name ends in ``.gz`` is compressed.
    ``chunk`` (k, n) takes the k-th of n parts of an uncompressed file, cut at line ends into about equal numbers of
    bytes: the outputs for (1, n) to (n, n) concatenated are the output for the whole file, also as ``.gz``.
    Raises MTScaffoldError for bytes that are not UTF-8, with file, line and byte; UsageError for fewer than 1 worker
    or an impossible chunk.
    """
    num_workers = worker_count(num_workers)
    _warn_of_unknown(language)
    if not 1 <= chunk[0] <= chunk[1]:
        raise UsageError(f"chunk {chunk[0]}-of-{chunk[1]}: give K-of-N with K from 1 to N")
    refuse_overwriting([output_path], [input_path])
    if chunk[1] > 1 and (input_path is None or os.fspath(input_path).endswith(".gz")):
        name = "standard input" if input_path is None else os.fspath(input_path)
        raise UsageError(f"{name}: a chunk needs an uncompressed file as input; decompress it first")
    import sacremoses

    make_tokeniser = functools.partial(
        Tokeniser,
        language,
        normalise_punctuation=normalise_punctuation,
        remove_nonprinting=remove_nonprinting,
        aggressive_dash_splitting=aggressive_dash_splitting,
        straight_apostrophes=straight_apostrophes,
        lowercase=lowercase,
    )
    name = "standard input" if input_path is None else str(input_path)
    lines = words = start = 0
    with _input(input_path) as source, _output(output_path) as target:
        if chunk[1] > 1:
            start, end = _bounds(source, *chunk)
            # Counting the lines before the chunk would mean reading them all.
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

    Raises MTScaffoldError where the step reports differ in language or sacremoses version.
    """
    if len({(report.language, report.sacremoses) for report in reports}) != 1:
        raise MTScaffoldError(f"{output_path}: its chunks differ in language or sacremoses version; tokenise again")
    # Concatenated gzip files are one gzip file.
    with open_output(output_path, compress=False) as target:
        for chunk in chunks:
            with open(chunk, "rb") as source:
                shutil.copyfileobj(source, target, 1 << 20)
    lines, words = sum(report.lines for report in reports), sum(report.words for report in reports)
    return dataclasses.replace(reports[0], lines=lines, words=words)


def detokenise(lines: Iterable[str], language: str) -> list[str]:
    """Join the words of each tokenised line into ordinary text, undoing Moses' escapes and ``@-@``.

    What normalising changed (kinds of quotation marks and dashes, white space) is not restored.
    """
    from sacremoses import MosesDetokenizer

    detokeniser = MosesDetokenizer(lang=language)
    return [detokeniser.detokenize(line.split(), return_str=True, unescape=True) for line in lines]


def _warn_of_unknown(language: str) -> None:
    """Warn of a language without rules, for which sacremoses silently falls back to English."""
    from sacremoses.corpus import NonbreakingPrefixes

    if language not in {*NonbreakingPrefixes().available_langs.values(), "ja", "ko", "cjk"}:
        print(
            f"mt-scaffold: warning: sacremoses has no rules for the language '{language}' and uses those of English; "
            "give a code such as en, de or fr",
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
    """Return the byte offsets of the ``number``-th of ``count`` parts, both ends moved to the next start of a line."""
    size = stream.seek(0, os.SEEK_END)
    ends = []
    for share in (number - 1, number):
        position = size * share // count
        if 0 < position < size:
            # From the byte before, so that a line starting exactly here is not skipped.
            stream.seek(position - 1)
            position += len(stream.readline()) - 1
        ends.append(position)
    stream.seek(ends[0])
    return ends[0], ends[1]


def _lines_to(stream: BinaryIO, end: int) -> Iterator[bytes]:
    """Yield the lines of ``stream`` from its current position up to byte ``end``."""
    left = end - stream.tell()
    while left > 0:
        line = stream.readline()
        left -= len(line)
        yield line


@dataclass(frozen=True)
class _Batch:
    """Lines of a text, with the number of the first one (from 1) and its byte offset in the file."""

    first: int
    offset: int
    lines: list[bytes]


def _batches(lines: Iterable[bytes], offset: int) -> Iterator[_Batch]:
    """Yield ``lines``, which start at byte ``offset``, in batches of BATCH_LINES."""
    first, lines = 1, iter(lines)
    while taken := list(itertools.islice(lines, BATCH_LINES)):
        yield _Batch(first, offset, taken)
        first += len(taken)
        offset += sum(map(len, taken))


def _map_lines(
    make_tokeniser: Callable[[], Tokeniser], lines: Iterable[bytes], offset: int, name: str, num_workers: int
) -> Iterator[list[bytes]]:
    """Yield the tokenised batches of ``lines`` in order, with only a few batches per worker in memory."""
    if num_workers == 1:
        tokeniser = make_tokeniser()
        for batch in _batches(lines, offset):
            yield _tokenise_batch(tokeniser, batch, name)
        return
    executor = ProcessPoolExecutor(num_workers, initializer=_start_worker, initargs=(make_tokeniser,))
    try:
        pending = collections.deque[Future[list[bytes]]]()
        for batch in _batches(lines, offset):
            pending.append(executor.submit(_tokenise_in_worker, batch, name))
            if len(pending) >= 3 * num_workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool as error:
        raise MTScaffoldError(f"{name}: a worker process died (out of memory?); run with fewer workers") from error
    finally:
        executor.shutdown(cancel_futures=True)


_worker_tokeniser: Tokeniser | None = None


def _start_worker(make_tokeniser: Callable[[], Tokeniser]) -> None:
    """Load sacremoses' rules once in a worker process."""
    global _worker_tokeniser
    # The parent handles Ctrl-C and ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _worker_tokeniser = make_tokeniser()


def _tokenise_in_worker(batch: _Batch, name: str) -> list[bytes]:
    assert _worker_tokeniser is not None
    return _tokenise_batch(_worker_tokeniser, batch, name)


def _tokenise_batch(tokeniser: Tokeniser, batch: _Batch, name: str) -> list[bytes]:
    tokenised = []
    offset = batch.offset
    for number, line in enumerate(batch.lines, batch.first):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise not_utf8(name, number, offset + error.start, line[error.start]) from None
        tokenised.append(tokeniser(text).encode("utf-8") + b"\n")
        offset += len(line)
    return tokenised
