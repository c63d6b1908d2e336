"""Words → codes: learning BPE and Scaffold-BPE merges."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Sequence
from typing import BinaryIO, NamedTuple, cast

from mt_scaffold import _core
from mt_scaffold.codes import Merge
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.files import PathLike, refuse_overwriting, writing_to
from mt_scaffold.native import TextSource, core_input, progress_line, worker_count

ALGORITHMS = ("scaffold", "bpe")


class LearnedCodes(NamedTuple):
    """The outcome of learning.

    text: the codes file, as bytes.
    merges: number of merges; for Scaffold-BPE the normal tokens plus the scaffold tokens.
    scaffold: number of tokens that are scaffold at the end.
    restored: how often a scaffold token became normal again on the way.
    exhausted: whether learning stopped early, because no pair reached the minimum frequency.
    """

    text: bytes
    merges: int
    scaffold: int
    restored: int
    exhausted: bool

    def to_list(self) -> list[Merge]:
        """The merges in order of rank."""
        return [Merge(*fields) for fields in _core.parse_codes(self.text)]


class InputFiles(list[TextSource]):
    """Several texts that are read as one: paths, or open files. A plain list of strings would be lines of text."""


def count_words(
    inputs: TextSource | Sequence[TextSource], is_dict: bool = False, num_workers: int = 1
) -> _core.WordCounts:
    """Count the words of one or several texts.

    ``is_dict``: each line is a word and its count instead. Raises MTScaffoldError where an input cannot be
    read, is not UTF-8, or (``is_dict``) holds another kind of line; it names the file and the line.
    """
    sources = _sources(inputs)
    workers = worker_count(num_workers)
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(core_input(source)) for source in sources]
        show = stack.enter_context(progress_line("counting words"))
        if is_dict:
            return _core.read_word_counts(opened, show)
        return _core.count_words(opened, workers, show)


def _sources(inputs: TextSource | Sequence[TextSource]) -> Sequence[TextSource]:
    """One or several inputs as a list of them; a list of plain strings is one input, lines of text."""
    several = isinstance(inputs, list | tuple) and not any(isinstance(item, str) for item in inputs)
    return cast(Sequence[TextSource], inputs if several or isinstance(inputs, InputFiles) else [inputs])


def learn_from_counts(
    counts: _core.WordCounts,
    num_symbols: int = 10000,
    min_frequency: int = 2,
    algorithm: str = "scaffold",
    total_symbols: bool = False,
    on_merge: Callable[[int, str, str, int], object] | None = None,
) -> LearnedCodes:
    """As ``learn_bpe``, from words that have been counted; the counts are used up."""
    if algorithm not in ALGORITHMS:
        raise UsageError(f"there is no algorithm '{algorithm}'; choose one of {', '.join(ALGORITHMS)}")
    if not 1 <= num_symbols < 2**63:
        raise UsageError(f"the number of symbols must be positive and less than 2^63, not {num_symbols}")
    if not 1 <= min_frequency < 2**63:
        raise UsageError(f"the minimum frequency must be positive and less than 2^63, not {min_frequency}")
    if len(counts) == 0:
        raise MTScaffoldError("there are no words in the input to learn from")
    if total_symbols:
        internal, final = counts.base_symbols()
        base = internal + final
        print(f"Number of word-internal characters: {internal}", file=sys.stderr)
        print(f"Number of word-final characters: {final}", file=sys.stderr)
        print(f"Reducing number of merge operations by {base}", file=sys.stderr)
        if num_symbols <= base:
            raise UsageError(
                f"--total-symbols leaves nothing to learn: the text has {base} base symbols, and only {num_symbols} "
                "symbols are wanted"
            )
        num_symbols -= base
    with progress_line("learning", "merges") as show:
        learned = _core.learn(counts, algorithm == "scaffold", num_symbols, min_frequency, on_merge, show)
    if learned["exhausted"]:
        print(f"no pair has frequency >= {min_frequency}. Stopping", file=sys.stderr)
    return LearnedCodes(
        learned["codes"], learned["merges"], learned["scaffold"], learned["restored"], learned["exhausted"]
    )


def learn_bpe(
    infile: TextSource | Sequence[TextSource],
    outfile: PathLike | BinaryIO | None = None,
    num_symbols: int = 10000,
    min_frequency: int = 2,
    verbose: bool = False,
    is_dict: bool = False,
    total_symbols: bool = False,
    num_workers: int = 1,
    algorithm: str = "scaffold",
) -> LearnedCodes:
    """Learn merges from text (Algorithm 1 of the Scaffold-BPE paper, or original BPE) and write the codes file.

    infile: a path (``.gz`` too), an open file, an iterable of lines, ``InputFiles`` (several paths), or a list of
        ``Path`` objects and open files.
    outfile: a path or a file open for bytes; None to get the codes only as the result.
    num_symbols: merges for ``algorithm="bpe"``; normal merged tokens for ``algorithm="scaffold"``.
    min_frequency: stop, with a warning, when the most frequent pair is rarer.
    verbose: say each merge on stderr. is_dict: lines are words with counts.
    total_symbols: subtract the number of base symbols from ``num_symbols``.
    num_workers: threads that count words, -1 for all cores; the result does not depend on it.

    Raises MTScaffoldError for input that cannot be read or is not UTF-8, UsageError for values out of range and for
    an output that is an input.
    """
    if num_symbols < 1:
        raise UsageError(f"the number of symbols must be positive, not {num_symbols}")
    refuse_overwriting([outfile], _sources(infile))
    with writing_to(io.BytesIO() if outfile is None else outfile) as stream:
        counts = count_words(infile, is_dict, num_workers)
        learned = learn_from_counts(
            counts, num_symbols, min_frequency, algorithm, total_symbols, _say_merge if verbose else None
        )
        stream.write(learned.text)
    return learned


def _say_merge(index: int, left: str, right: str, frequency: int) -> None:
    print(f"pair {index}: {left} {right} -> {left}{right} (frequency {frequency})", file=sys.stderr)
