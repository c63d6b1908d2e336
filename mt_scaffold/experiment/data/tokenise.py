"""Raw text → words, and back: normalise, tokenise and detokenise as sacremoses does, line by line.

Words are Moses' words, escapes included (``'`` becomes ``&apos;``, ``|`` becomes ``&#124;``): the published fairseq
recipes train on such text, so word and subword counts compare with theirs. ``detokenise`` undoes the escapes.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import io
import itertools
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Annotated, BinaryIO

from mt_scaffold.cached import cached_property
from mt_scaffold.corpus.files import (
    LONGEST_MAGIC,
    PathLike,
    check_plain,
    compression_of,
    gzipped,
    open_input,
    open_output,
    refuse_no_text,
    refuse_overwriting,
    standard_input,
    standard_output,
    warn_of_mark,
)
from mt_scaffold.corpus.text import not_utf8
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration.data import Tokenise
from mt_scaffold.experiment.data.moses import DEFAULT, tokeniser_of
from mt_scaffold.experiment.data.preprocessed import Preprocessed, lines_look_tokenised
from mt_scaffold.experiment.runtime.result_warnings import ResultWarning, print_warnings
from mt_scaffold.experiment.runtime.results import write_result
from mt_scaffold.options import worker_count
from mt_scaffold.options_from_signature import File, Option

# Bytes of text per block of work, not counting the rest of the last line.
BLOCK = 1 << 18


@dataclass(frozen=True)
class TokeniseRecord:
    """The size of the tokenised text: lines (as many as before tokenising) and words."""

    language: str
    lines: int
    words: int
    sacremoses: str
    warnings: list[ResultWarning] = field(default_factory=list)


# A text that a command reads or writes.
Input = Annotated[PathLike | None, Option("FILE", "-i", name="input")]
Output = Annotated[PathLike | None, Option("FILE", "-o", name="output")]
Language = Annotated[str, Option("CODE", "-l", help="language code such as en or de")]
Processes = Annotated[int, Option(help="processes, -1 for all cores")]


def tokenise(
    input_path: Input = None,
    output_path: Output = None,
    *,
    language: Language,
    choices: Tokenise = DEFAULT,
    num_workers: Processes = 1,
    report: File | None = None,
) -> TokeniseRecord:
    """Tokenise a UTF-8 text, one output line per input line in the same order.

    input_path: raw text, plain or .gz (default: standard input)
    output_path: words (default: standard output)
    report: write the counts of lines and words to FILE as JSON

    ``None`` and ``-`` are stdin or stdout. A line ends at LF only; other line breaks within it (CR, U+0085, U+2028,
    form feed) become spaces, so that no later step can split the line there. An empty line stays empty. The output does
    not depend on ``num_workers`` (processes). An output whose name ends in ``.gz`` is compressed. With
    ``choices.none``, white space separates the words already.
    The report warns of an unknown language, and of text that looks tokenised or segmented already.
    Raises MTScaffoldError for bytes that are not UTF-8, with file, line and byte; UsageError for fewer than 1 worker.
    """
    num_workers = worker_count(num_workers)
    input_path, output_path = _streams(input_path, output_path)
    refuse_overwriting([output_path, report], [input_path])
    import sacremoses

    make_tokeniser = functools.partial(tokeniser_of, language, choices)
    name = "standard input" if input_path is None else str(input_path)
    lines = words = 0
    warnings = [] if choices.none else warnings_of(language)
    compressed = output_path is not None and compression_of(output_path) == "gzip"
    with _input(input_path) as source, _output(output_path) as target:
        mark_is_removed = choices.remove_nonprinting and not choices.none
        blocks, evidence = _check_first(_blocks(source), None if mark_is_removed else name)
        if evidence is not None and not evidence.allowed(choices):
            warnings.append(ResultWarning("preprocessed", os.path.basename(name), str(evidence)))
        print_warnings(warnings)
        for tokenised in _in_order(_Work(make_tokeniser, name, compressed), blocks, num_workers):
            target.write(tokenised.content)
            lines += tokenised.lines
            words += tokenised.words
        if compressed and not lines:
            target.write(gzipped(b""))
    found = TokeniseRecord(language, lines, words, sacremoses.__version__, warnings)
    if report is not None:
        write_result(report, found)
    return found


def _streams(*paths: PathLike | None) -> list[PathLike | None]:
    """Return paths with None, a standard stream, for ``-``."""
    return [None if path == "-" else path for path in paths]


def detokenise(lines: Iterable[str], language: str) -> list[str]:
    """Join the words of each tokenised line into ordinary text, undoing Moses' escapes and ``@-@``.

    Changes by normalising (of quotation marks, dashes and white space) are not undone.
    """
    return list(map(_detokeniser_of(language), lines))


def _detokeniser_of(language: str) -> Callable[[str], str]:
    from sacremoses import MosesDetokenizer

    detokeniser = MosesDetokenizer(lang=language)
    return lambda line: detokeniser.detokenize(line.split(), return_str=True, unescape=True)


def detokenise_text(
    input_path: Input = None, output_path: Output = None, *, language: Language, num_workers: Processes = 1
) -> None:
    """Detokenise a text line by line, as ``detokenise`` does.

    Join words that mt-scaffold tokenise or Moses' tokeniser made into ordinary text, as sacremoses does: escapes
    (&quot;) and split dashes (@-@) are undone. Normalised quotation marks and lowercased words stay as they are.

    input_path: words, plain or .gz (default: standard input)
    output_path: text (default: standard output)

    Paths, ``.gz``, line ends, workers and errors are as in ``tokenise``.
    """
    num_workers = worker_count(num_workers)
    input_path, output_path = _streams(input_path, output_path)
    refuse_overwriting([output_path], [input_path])
    name = "standard input" if input_path is None else str(input_path)
    compressed = output_path is not None and compression_of(output_path) == "gzip"
    empty = True
    print_warnings(warnings_of(language))
    with _input(input_path) as source, _output(output_path) as target:
        work = _Work(functools.partial(_detokeniser_of, language), name, compressed)
        for joined in _in_order(work, _blocks(source), num_workers):
            target.write(joined.content)
            empty = False
        if compressed and empty:
            target.write(gzipped(b""))


# Languages for which tokenizer.perl has rules that sacremoses lacks: on colons, apostrophes, full-width punctuation.
UNLIKE_MOSES = frozenset({"fi", "sv", "ga", "ca", "zh", "ja", "ko"})


def has_rules(language: str) -> bool:
    """Return whether sacremoses has rules for a language; without them it silently falls back to those of English."""
    from sacremoses.corpus import NonbreakingPrefixes

    return language in {*NonbreakingPrefixes().available_langs.values(), "ja", "ko", "cjk"}


def warnings_of(language: str) -> list[ResultWarning]:
    """Return a warning if sacremoses has no rules for a language."""
    return [] if has_rules(language) else [ResultWarning("language", language)]


def _check_first(blocks: Iterator[_Block], name: str | None) -> tuple[Iterator[_Block], Preprocessed | None]:
    """Return the same blocks, and any evidence that the first is not raw text.

    name: the text's name for a warning of a byte order mark; None: do not warn, because tokenising removes the mark.
    """
    first = next(blocks, None)
    if first is None:
        return iter(()), None
    warn_of_mark(first.content, name)
    return itertools.chain([first], blocks), lines_look_tokenised(io.BytesIO(first.content))


def _input(path: PathLike | None) -> contextlib.AbstractContextManager[BinaryIO]:
    check_plain(path)
    return contextlib.nullcontext(standard_input()) if path is None else open_input(path)


@contextlib.contextmanager
def _output(path: PathLike | None) -> Iterator[BinaryIO]:
    if path is None:
        yield standard_output()
        return
    # The workers compress with gzip.
    with open_output(path, compress=compression_of(path) != "gzip") as stream:
        yield stream


@dataclass(frozen=True)
class _Block:
    """Whole lines of a text, with the number of the first one (from 1) and its byte offset in the file."""

    first: int
    offset: int
    content: bytes


@dataclass(frozen=True)
class _Tokenised:
    """The tokenised lines of a block, as bytes of the output."""

    content: bytes
    lines: int
    words: int


@dataclass
class _Work:
    """Turns a block into words. name: the text's, for errors. compressed: whether the output is."""

    make_tokeniser: Callable[[], Callable[[str], str]]
    name: str
    compressed: bool

    @cached_property
    def tokeniser(self) -> Callable[[str], str]:
        return self.make_tokeniser()

    def __call__(self, block: _Block) -> _Tokenised:
        if not block.offset:
            refuse_no_text(block.content[:LONGEST_MAGIC], self.name)
        try:
            text = block.content.decode("utf-8")
        except UnicodeDecodeError as error:
            line = block.first + block.content.count(b"\n", 0, error.start)
            raise not_utf8(self.name, line, block.offset + error.start, block.content[error.start]) from None
        # With this newline, StringIO ends lines at LF only.
        tokenised = list(map(self.tokeniser, io.StringIO(text, newline="\n")))
        words = sum(line.count(" ") + 1 for line in tokenised if line)
        content = "".join(f"{line}\n" for line in tokenised).encode("utf-8")
        return _Tokenised(gzipped(content) if self.compressed else content, len(tokenised), words)


def _blocks(stream: BinaryIO) -> Iterator[_Block]:
    """Yield the text of ``stream`` block by block."""
    first, offset = 1, 0
    while content := stream.read(BLOCK):
        if not content.endswith(b"\n"):
            content += stream.readline()
        yield _Block(first, offset, content)
        first += content.count(b"\n")
        offset += len(content)


def _in_order(work: _Work, blocks: Iterable[_Block], num_workers: int) -> Iterator[_Tokenised]:
    """Yield the tokenised blocks in order, with only a few per worker in memory."""
    if num_workers == 1:
        yield from map(work, blocks)
        return
    executor = ProcessPoolExecutor(num_workers, initializer=_start_worker, initargs=(work,))
    try:
        pending = collections.deque[Future[_Tokenised]]()
        for block in blocks:
            pending.append(executor.submit(_tokenise_in_worker, block))
            if len(pending) >= 3 * num_workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool as error:
        raise MTScaffoldError(f"{work.name}: a worker process died (out of memory?); run with fewer workers") from error
    finally:
        executor.shutdown(cancel_futures=True)


_work: _Work | None = None


def _start_worker(work: _Work) -> None:
    global _work
    # The parent handles Ctrl-C and ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _work = work


def _tokenise_in_worker(block: _Block) -> _Tokenised:
    assert _work is not None
    return _work(block)
