"""Raw text → words, and back: normalising, tokenising and detokenising with sacremoses, line by line.

Words are Moses' words, its escapes included (``'`` becomes ``&apos;``, ``|`` becomes ``&#124;``): the published fairseq
recipes train on text like that, so the word and subword counts here can be set beside theirs. ``detokenise`` takes the
escapes back.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.files import PathLike, open_input, open_output, standard_input, standard_output
from mt_scaffold.report import count_words

CHUNK_LINES = 2000


@dataclass(frozen=True)
class TokeniseReport:
    """How much text was tokenised: lines (as many out as in) and words after tokenising."""

    language: str
    lines: int
    words: int
    sacremoses: str

    def to_dict(self) -> dict[str, Any]:
        """The numbers as a plain dictionary."""
        return asdict(self)


class Tokeniser:
    """Turns a line of raw text into words, by the rules of ``language`` (``de``; unknown codes: those of English)."""

    def __init__(
        self,
        language: str,
        normalise_punctuation: bool = True,
        remove_nonprinting: bool = True,
        aggressive_dash_splitting: bool = True,
    ) -> None:
        import regex  # type: ignore[import-untyped]
        from sacremoses import MosesPunctNormalizer, MosesTokenizer

        self._normaliser = MosesPunctNormalizer(lang=language) if normalise_punctuation else None
        # Control, format and private-use characters, as Moses does. Unassigned code points stay, other than there:
        # which those are would hang on the Unicode version of a library.
        self._nonprinting = regex.compile(r"[\p{Cc}\p{Cf}\p{Co}]") if remove_nonprinting else None
        self._tokeniser = MosesTokenizer(lang=language)
        self._aggressive = aggressive_dash_splitting

    def __call__(self, line: str) -> str:
        """The words of ``line``, separated by single spaces; no kind of line break or other white space is left."""
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
    num_workers: int = 1,
) -> TokeniseReport:
    """Tokenise a UTF-8 text, one output line for each input line in the same order; ``None`` is stdin or stdout.

    A line ends at LF only; other line breaks inside it (CR, U+0085, U+2028, form feed) count as white space, so that
    no later step can split the line there. An empty line stays an empty line. The output does not depend on
    ``num_workers`` (processes).
    Raises MTScaffoldError for bytes that are not UTF-8, with file, line and byte; UsageError for fewer than 1 worker.
    """
    if num_workers < 1:
        raise UsageError(f"number of workers: must be 1 or more, not {num_workers}")
    import sacremoses

    make_tokeniser = functools.partial(
        Tokeniser,
        language,
        normalise_punctuation=normalise_punctuation,
        remove_nonprinting=remove_nonprinting,
        aggressive_dash_splitting=aggressive_dash_splitting,
    )
    name = "standard input" if input_path is None else str(input_path)
    lines = words = 0
    with _input(input_path) as source, _output(output_path) as target:
        for tokenised in _map_lines(make_tokeniser, source, name, num_workers):
            for line in tokenised:
                target.write(line)
                lines += 1
                words += count_words(line)
    return TokeniseReport(language, lines, words, sacremoses.__version__)


def detokenise(lines: Iterable[str], language: str) -> list[str]:
    """Join the words of each tokenised line to the text a reader expects, Moses' escapes and ``@-@`` taken back.

    What normalising changed (kinds of quotation marks and dashes, white space) is not restored.
    """
    from sacremoses import MosesDetokenizer

    detokeniser = MosesDetokenizer(lang=language)
    return [detokeniser.detokenize(line.split(), return_str=True, unescape=True) for line in lines]


def _input(path: PathLike | None) -> contextlib.AbstractContextManager[BinaryIO]:
    return contextlib.nullcontext(standard_input()) if path is None else open_input(path)


def _output(path: PathLike | None) -> contextlib.AbstractContextManager[BinaryIO]:
    return contextlib.nullcontext(standard_output()) if path is None else open_output(path)


Chunk = tuple[int, list[bytes]]


def _chunks(stream: BinaryIO) -> Iterator[Chunk]:
    """The lines of ``stream`` by the thousand, each chunk with the number of its first line."""
    first = 1
    while lines := list(itertools.islice(stream, CHUNK_LINES)):
        yield first, lines
        first += len(lines)


def _map_lines(
    make_tokeniser: Callable[[], Tokeniser], stream: BinaryIO, name: str, num_workers: int
) -> Iterator[list[bytes]]:
    """The tokenised chunks of ``stream`` in order, at most a few chunks for each worker in memory."""
    if num_workers == 1:
        tokeniser = make_tokeniser()
        for chunk in _chunks(stream):
            yield _tokenise_chunk(tokeniser, chunk, name)
        return
    executor = ProcessPoolExecutor(num_workers, initializer=_start_worker, initargs=(make_tokeniser,))
    try:
        pending = collections.deque[Future[list[bytes]]]()
        for chunk in _chunks(stream):
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


def _tokenise_in_worker(chunk: Chunk, name: str) -> list[bytes]:
    assert _worker_tokeniser is not None
    return _tokenise_chunk(_worker_tokeniser, chunk, name)


def _tokenise_chunk(tokeniser: Tokeniser, chunk: Chunk, name: str) -> list[bytes]:
    first, lines = chunk
    tokenised = []
    for number, line in enumerate(lines, first):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise MTScaffoldError(
                f"{name}:{number}: byte {error.start + 1} of the line is not UTF-8 (0x{line[error.start]:02x}); "
                "convert the file to UTF-8"
            ) from None
        tokenised.append(tokeniser(text).encode("utf-8") + b"\n")
    return tokenised
