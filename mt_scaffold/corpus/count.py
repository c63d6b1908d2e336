"""Text → counted words, in bounded memory on request; count files, so that several machines can share the work."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from mt_scaffold import _core
from mt_scaffold.corpus.documents import AnyDocuments, Documents, documents_input, encoded, expanded
from mt_scaffold.corpus.files import (
    Output,
    PathLike,
    Writable,
    open_input,
    refuse_overwriting,
    shown,
    stream_name,
    temporary_folder,
    writing_to,
)
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.corpus.inputs import CoreInput, Lines, TextFile, core_input, exactly_one, text_sources
from mt_scaffold.corpus.pretokenise import SPACES
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.options import check_prune, memory_size, worker_count
from mt_scaffold.progress import progress_line

# The most count files that are open at the same time.
_MOST_OPEN = 200


def count_words(
    infile: TextFile | None = None,
    is_dict: bool = False,
    num_workers: int | None = None,
    *,
    paths: Iterable[TextFile] | None = None,
    lines: Lines | None = None,
    documents: AnyDocuments | None = None,
    pretokenise: str = "spaces",
    split_digits: bool = False,
    any_bytes: bool = False,
    max_memory: int | str | None = None,
    prune: int = 1,
    endings: _core.WordEndings | None = None,
) -> _core.WordCounts:
    """Count the words of a text; ``items()`` of the result gives words with their counts, by first occurrence.

    infile: a path (``.gz`` too) or an open file. paths: several of them, read as one text.
    lines: an iterable of strings. documents: ``Documents``, or an iterable of strings or bytes, each cut into words as
    a whole. Exactly one of the four is given.
    is_dict: each line is a word and its count instead.
    num_workers: threads, -1 for all cores; None for the default: ``MT_SCAFFOLD_NUM_WORKERS``, or else the cores that
    this process can use, at most 16. The result does not depend on it.
    pretokenise: ``spaces``, or a name or pattern of ``Pretokeniser``, which cuts each line without its LF; its words
    are bytes, and ``byte_items()`` of the result gives them. split_digits: as there.
    any_bytes: words need not be UTF-8, as with a pre-tokeniser.
    max_memory: bytes, or a number with K, M, G or T, that counting may take; what exceeds it goes to disk, into
    ``MT_SCAFFOLD_TMP`` or else the system's temporary folder, and the result is the same. None: no limit. The words are
    then read into memory, which is refused if learning from them would take more.
    prune: drop words with a lower count, and say on stderr what was dropped.
    endings: counts the words between spaces that end in its separator.

    Raises MTScaffoldError, naming file and line, if an input cannot be read, is not UTF-8, or (``is_dict``) has a line
    of another form, if the words that remain exceed ``max_memory``, and if the temporary folder is full; UsageError
    unless there is exactly one input, and as ``Pretokeniser`` does.
    """
    text = counted_text(infile, paths, lines, documents)
    bytes_ = any_bytes or pretokenise != SPACES
    header = CodesHeader("bytes" if bytes_ else "characters", pretokenise, split_digits)
    return count_text(
        text,
        header,
        is_dict=is_dict,
        num_workers=num_workers,
        max_memory=max_memory,
        prune=prune,
        endings=endings,
    )


# A text as it is read: files one after the other, or documents.
Text = list[TextFile] | Documents | Iterator[bytes]


def count_text(
    text: Text,
    header: CodesHeader,
    *,
    is_dict: bool = False,
    num_workers: int | None = None,
    max_memory: int | str | None = None,
    prune: int = 1,
    endings: _core.WordEndings | None = None,
) -> _core.WordCounts:
    """Count the words of a text as ``count_words`` does; header: how words and symbols are made."""
    limit = 0 if max_memory is None else memory_size(max_memory)
    check_prune(prune)
    if is_dict:
        return _read_dictionary(text, header, limit, prune)
    return _loaded(_counted(text, worker_count(num_workers), header, limit, endings), header, limit, prune)


def write_counts(
    outfile: Output,
    infile: TextFile | None = None,
    num_workers: int | None = None,
    *,
    paths: Iterable[TextFile] | None = None,
    lines: Lines | None = None,
    documents: AnyDocuments | None = None,
    pretokenise: str = "spaces",
    split_digits: bool = False,
    byte_level: bool = False,
    max_memory: int | str | None = None,
) -> tuple[int, int]:
    """Count the words of a text into a count file; return the number of word types and of words.

    outfile: a path, or a file open for bytes or text. byte_level: as in ``learn_bpe``. The other arguments, and the
    errors, are those of ``count_words``; memory stays within ``max_memory`` whatever the text.

    The file has a word per line, sorted by its bytes, with its count. Its first line says how the words were counted,
    its last one how many there are. Count files of the shards of a corpus, merged with ``merge_counts``, are the count
    file of the corpus, byte for byte.
    """
    text = counted_text(infile, paths, lines, documents)
    header = CodesHeader.of_options(pretokenise, split_digits, byte_level)
    limit = 0 if max_memory is None else memory_size(max_memory)
    threads = worker_count(num_workers)
    refuse_overwriting([outfile], sources_of(text))
    with writing_to(outfile) as stream:
        return _written(_counted(text, threads, header, limit), header, stream)


def merge_counts(outfile: Output, counts: Sequence[PathLike], max_memory: int | str | None = None) -> tuple[int, int]:
    """Merge count files into one, as streams; return the number of word types and of words.

    counts: paths and globs.

    Raises MTScaffoldError if the files were counted in different ways, and, with file and line, if one is malformed or
    incomplete; UsageError for an output that is an input.
    """
    limit = 0 if max_memory is None else memory_size(max_memory)
    counts = count_files(counts)
    refuse_overwriting([outfile], counts)
    with writing_to(outfile) as stream, _opened_counts(counts, limit) as (counted, header):
        return _written(counted, header, stream)


def load_counts(
    counts: Sequence[PathLike],
    header: CodesHeader | None = None,
    max_memory: int | str | None = None,
    prune: int = 1,
) -> tuple[_core.WordCounts, CodesHeader]:
    """Read count files into memory; return the words, and how they were counted.

    header: how they must have been counted; None for any way. max_memory, prune: as in ``count_words``.

    Raises MTScaffoldError as ``merge_counts`` does, and if they were counted in another way.
    """
    limit = 0 if max_memory is None else memory_size(max_memory)
    check_prune(prune)
    counts = count_files(counts)
    with _opened_counts(counts, limit) as (counted, found):
        if header not in (None, found):
            raise MTScaffoldError(
                f"{shown(counts[0])}: counted with {_description(found)}, not {_description(header or found)}; omit "
                "these options, or count the text again"
            )
        return _loaded(counted, found, limit, prune), found


def count_files(counts: Sequence[PathLike]) -> list[PathLike]:
    """Return the paths of count files, with globs expanded; MTScaffoldError for a glob that matches nothing."""
    if isinstance(counts, str | bytes | os.PathLike):
        raise UsageError("count files are a list of paths; pass a single one as [path]")
    return [cast(PathLike, found) for path in counts for found in expanded(path)]


def counted_text(
    infile: TextFile | None,
    paths: Iterable[TextFile] | None,
    lines: Lines | None,
    documents: AnyDocuments | None,
    counts: Sequence[PathLike] | None = None,
) -> Text:
    """Return the text of a call, empty for count files; raise UsageError unless exactly one input is given."""
    if documents is None and counts is None:
        return text_sources(infile, paths, lines)
    exactly_one(infile=infile, paths=paths, lines=lines, documents=documents, counts=counts)
    if documents is None:
        return []
    return documents if isinstance(documents, Documents) else encoded(documents)


def sources_of(text: Text) -> list[TextFile]:
    """Return the files that a text is read from."""
    return text if isinstance(text, list) else text.sources if isinstance(text, Documents) else []


@contextlib.contextmanager
def _opened(text: Text) -> Iterator[tuple[list[CoreInput], bool]]:
    """Open a text for the core; also yield whether each input is one document."""
    with contextlib.ExitStack() as stack:
        if isinstance(text, Documents):
            opened = [stack.enter_context(text.core_input_of(each)) for each in text.inputs]
            yield opened, any(each.format == "files" for each in text.inputs)
        elif isinstance(text, list):
            yield [stack.enter_context(core_input(source)) for source in text], False
        else:
            yield [documents_input(text)], False


def _read_dictionary(text: Text, header: CodesHeader, limit: int, prune: int) -> _core.WordCounts:
    if not header.end_of_word:
        raise UsageError("a dictionary has words already; a pre-tokeniser needs the text")
    if limit or prune > 1:
        raise UsageError("a limit on memory and pruning are for texts and count files, not for dictionaries")
    if isinstance(text, Documents) and any(each.format != "lines" for each in text.inputs):
        raise UsageError("a dictionary is plain text, with a word and its count per line")
    with _opened(text) as (opened, _), progress_line("counting words") as show:
        return _core.read_word_counts(opened, show, header.bytes)


def _counted(
    text: Text, threads: int, header: CodesHeader, limit: int, endings: _core.WordEndings | None = None
) -> _core.CountedWords:
    pretokeniser = header.make_pretokeniser()
    core = None if pretokeniser is None else pretokeniser.core
    folder = temporary_folder() if limit else ""
    with _opened(text) as (opened, whole_inputs), progress_line("counting words") as show:
        whole_inputs = whole_inputs and core is not None
        return _core.count_words(opened, threads, show, core, header.bytes, whole_inputs, endings, limit, folder)


@contextlib.contextmanager
def _opened_counts(counts: Sequence[PathLike], limit: int) -> Iterator[tuple[_core.CountedWords, CodesHeader]]:
    """Open count files as one; if there are too many to be open together, some are merged on disk first."""
    if not counts:
        raise UsageError("there are no count files; name at least one")
    counted = _core.CountedWords(limit, temporary_folder() if limit or len(counts) > _MOST_OPEN else "")
    header = None
    for start in range(0, len(counts), _MOST_OPEN):
        group = counts[start : start + _MOST_OPEN]
        last = start + _MOST_OPEN >= len(counts)
        with contextlib.ExitStack() as stack:
            opened = [(shown(path), stack.enter_context(open_input(path))) for path in group]
            for path, (bytes_, pretokeniser, split_digits) in zip(group, counted.open(opened), strict=True):
                found = CodesHeader("bytes" if bytes_ else "characters", pretokeniser, split_digits)
                header = header or found
                if found != header:
                    raise MTScaffoldError(
                        f"{shown(path)}: counted with {_description(found)}, and {shown(counts[0])} with "
                        f"{_description(header)}; count all shards in the same way"
                    )
            if last and header is not None:
                yield counted, header
            else:
                with progress_line("merging counts", "words") as show:
                    counted.set_aside(show)


def _description(header: CodesHeader) -> str:
    words = [f"--pretokenise {header.pretokeniser}"]
    if header.split_digits:
        words.append("--split-digits")
    if header.bytes and header.end_of_word:
        words.append("--bytes")
    return " ".join(words)


def _loaded(counted: _core.CountedWords, header: CodesHeader, limit: int, prune: int) -> _core.WordCounts:
    with progress_line("merging counts", "words") as show:
        words, dropped = counted.load(header.for_core, prune, limit, show)
    if prune > 1:
        types, occurrences, pair_error = dropped
        print(
            f"--prune {prune}: dropped {types:,} word types with {occurrences:,} occurrences; the count of a pair of "
            f"symbols is too low by at most {pair_error:,}",
            file=sys.stderr,
        )
    return words


def _written(counted: _core.CountedWords, header: CodesHeader, stream: Writable) -> tuple[int, int]:
    with progress_line("writing counts", "words") as show:
        return counted.write((stream_name(stream, "output"), stream), header.for_core, show)
