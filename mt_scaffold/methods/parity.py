"""Parity-aware BPE: the texts of several languages, merges for the one that is compressed worst (docs/methods.md)."""

from __future__ import annotations

import contextlib
import io
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple, cast

from mt_scaffold import _core
from mt_scaffold.codes import Codes
from mt_scaffold.corpus.count import Text, sources_of
from mt_scaffold.corpus.documents import Documents, Texts, format_by_name
from mt_scaffold.corpus.files import PathLike, Readable
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.corpus.inputs import Lines, TextFile, core_input, exactly_one, source_name, text_sources
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.methods.trace import Step, TraceWriter
from mt_scaffold.progress import progress_line

PARITY = "parity"
# The authors' default.
DEFAULT_ALPHA = 2.0


class Parity(NamedTuple):
    """What parity-aware BPE has beyond the options of BPE.

    development: a text for each language; together they are parallel, line by line. None: the training texts are.
    global_merges: how many of the first merges are those of BPE on all languages together (the hybrid variant).
    window, alpha: a language is passed over while more than ``alpha`` times its even share of the last ``window``
    choices fell on it (the moving-window variant); 0 for no window.
    """

    development: list[TextFile] | None = None
    global_merges: int = 0
    window: int = 0
    alpha: Fraction = Fraction(DEFAULT_ALPHA)

    def most_chosen(self, languages: int) -> int:
        """Return how often in the window a language may have been chosen and still be chosen again."""
        return min(self.window, math.floor(self.alpha * self.window / languages))


# Counts the words of a text, with the options of a call; the flag says that it is a development text.
Count = Callable[[Text, bool], _core.WordCounts]


class Languages(NamedTuple):
    """The counted words of each language, to learn from and, unless empty, to measure parity on; the names of both."""

    names: list[str]
    training: list[_core.WordCounts]
    development_names: list[str]
    development: list[_core.WordCounts]

    def together(self) -> _core.WordCounts:
        """The words of all languages to learn from, as one text."""
        words = _core.WordCounts()
        for each in self.training:
            words.add(each)
        return words


def parity_settings(
    algorithm: str,
    dev: Sequence[TextFile] | None,
    global_merges: int,
    window: int | None,
    alpha: float | None,
) -> Parity | None:
    """Return the settings of parity-aware BPE, None for other algorithms; the arguments are those of ``learn_bpe``.

    Raises UsageError for values out of range, and for any without parity-aware BPE.
    """
    given = {"dev": dev, "global_merges": global_merges or None, "window": window, "alpha": alpha}
    if algorithm != PARITY:
        for name, value in given.items():
            if value is not None:
                raise UsageError(f"{name} belongs to the algorithm parity; omit it with {algorithm}")
        return None
    if not 0 <= global_merges < 2**63:
        raise UsageError(f"the number of global merges must be 0 or more and less than 2^63, not {global_merges}")
    if window is not None and not 1 <= window < 2**31:
        raise UsageError(f"the window must be 1 or more merges and less than 2^31, not {window}")
    if alpha is not None and window is None:
        raise UsageError("alpha is how much of a window falls on one language; give a window too")
    alpha = DEFAULT_ALPHA if alpha is None else alpha
    if not 1 <= alpha < math.inf:
        raise UsageError(f"alpha must be 1 or more, so that a language is left to choose, not {alpha}")
    development = None if dev is None else text_sources(paths=dev)
    for name in map(source_name, development or []):
        if format_by_name(name) != "lines":
            raise UsageError(f"{name}: a development text is plain text, with a sentence per line; convert it first")
    # As it is written: 1.1 is 11/10.
    return Parity(development, global_merges, window or 0, Fraction(str(alpha)))


def language_texts(
    parity: Parity,
    infile: TextFile | None,
    paths: Iterable[TextFile] | None,
    lines: Lines | None,
    documents: Texts | Sequence[Documents] | None,
    counts: Sequence[PathLike] | None,
    max_memory: int | str | None = None,
    prune: int = 1,
) -> list[Text]:
    """Return the text of each language, none for count files; UsageError unless there are two or more, of one kind."""
    if max_memory is not None:
        raise UsageError("parity-aware BPE has no limit on memory; count within one, and learn from count files")
    if prune > 1 and parity.development is None:
        raise UsageError(f"--prune drops words, so that the inputs no longer say the same; {_GIVE_DEV}")
    if infile is not None or lines is not None:
        raise UsageError("parity-aware BPE takes one text per language; give them as paths=[...]")
    exactly_one(paths=paths, documents=documents, counts=counts)
    texts: list[Text] = []
    if paths is not None:
        texts = [[source] for source in text_sources(paths=paths)]
    elif documents is not None:
        if isinstance(documents, Documents) or not all(isinstance(each, Documents) for each in documents):
            raise UsageError("parity-aware BPE takes documents as a list of Documents, one for each language")
        texts = [*cast(Sequence[Documents], documents)]
    check_languages(parity, len(texts) if counts is None else len(counts))
    return texts


def check_languages(parity: Parity, languages: int) -> None:
    """Raise UsageError unless there are several languages, and development texts for all of them or none.

    Says on stderr where the window has no effect.
    """
    if languages < 2:
        raise UsageError(
            "parity-aware BPE compares languages: give the text of each as an input of its own, two or more of them; "
            "for a single text, choose --algorithm bpe"
        )
    if parity.development is not None and len(parity.development) != languages:
        raise UsageError(
            f"there are {languages} inputs and {len(parity.development)} development texts; give one of these for "
            "each input, in the same order"
        )
    if parity.window and parity.most_chosen(languages) == parity.window:
        print(
            f"warning: the window has no effect: with {languages} languages, alpha would have to be below {languages}",
            file=sys.stderr,
        )


def count_languages(
    parity: Parity,
    texts: Sequence[Text],
    count: Count,
    is_dict: bool = False,
) -> Languages:
    """Count the words of each language, and of the development texts.

    Raises MTScaffoldError where the texts that parity is measured on differ in their numbers of lines; UsageError
    without development texts where the training texts have no lines to compare.
    """
    names = [_name(text) for text in texts]
    if parity.development is not None:
        training = [count(text, False) for text in texts]
        return Languages(names, training, *count_developments(parity, count))
    for name, text in zip(names, texts, strict=True):
        if is_dict or (isinstance(text, Documents) and any(each.format != "lines" for each in text.inputs)):
            raise UsageError(f"{name}: no lines of text to compare with those of the other languages; {_GIVE_DEV}")
    training = _count_parallel(names, texts, count, False, f"; where inputs are not parallel, {_GIVE_DEV}")
    return Languages(names, training, [], [])


def count_developments(parity: Parity, count: Count) -> tuple[list[str], list[_core.WordCounts]]:
    """Return the names and the counted words of the development texts; MTScaffoldError unless they are parallel."""
    if parity.development is None:
        raise UsageError(f"count files have no lines to compare; {_GIVE_DEV}")
    names = [source_name(source) for source in parity.development]
    texts = [[source] for source in parity.development]
    return names, _count_parallel(names, texts, count, True, "; development texts must be parallel, line by line")


def _name(text: Text) -> str:
    first, *others = [*map(source_name, sources_of(text))] or ["the input"]
    return f"{first} and {len(others)} more" if others else first


_GIVE_DEV = "give a parallel development text for each language (--dev)"


def learn_parity(
    languages: Languages,
    parity: Parity,
    num_symbols: int,
    min_frequency: int,
    header: CodesHeader,
    verbose: bool = False,
    trace: TraceWriter | None = None,
) -> tuple[Codes, bool]:
    """Learn merges; return the codes, and whether learning stopped early. The counts are used up.

    The language with the most tokens is next: the texts that parity is measured on say the same, so that it is the one
    that is compressed worst. Learning stops, and says so on stderr, where its most frequent pair is rarer than
    ``min_frequency``.

    Raises MTScaffoldError for a text without words.
    """
    names = [*languages.names, *languages.development_names]
    for name, words in zip(names, [*languages.training, *languages.development], strict=True):
        if len(words) == 0:
            raise MTScaffoldError(f"{name}: there are no words in it; parity-aware BPE needs some of each language")
    with progress_line("learning", "merges") as show:
        learned = _core.learn_parity(
            languages.training,
            languages.development,
            num_symbols,
            min_frequency,
            _reporter(languages.names, verbose, trace),
            show,
            header.for_core,
            parity.global_merges,
            parity.window,
            parity.most_chosen(len(languages.names)),
        )
    if learned["exhausted"]:
        number = learned["language"]
        where = "" if number is None else f" of {languages.names[number]}, which is compressed worst,"
        print(f"no pair{where} has frequency >= {min_frequency}. Stopping", file=sys.stderr)
    return Codes(learned["codes"]), learned["exhausted"]


def _reporter(
    names: Sequence[str], verbose: bool, trace: TraceWriter | None
) -> Callable[[str, str, int, int | None, list[int]], None] | None:
    if not verbose and trace is None:
        return None
    merges = 0

    def report(left: str, right: str, frequency: int, language: int | None, lengths: list[int]) -> None:
        nonlocal merges
        if trace is not None:
            trace.add(Step(left, right, frequency, None, (), None))
        if verbose:
            where = "all" if language is None else names[language]
            tokens = ", ".join(map(str, lengths))
            print(
                f"pair {merges}: {left} {right} -> {left}{right} (frequency {frequency} in {where}; tokens {tokens})",
                file=sys.stderr,
            )
        merges += 1

    return report


def _count_parallel(
    names: Sequence[str],
    texts: Sequence[Text],
    count: Count,
    development: bool,
    remedy: str,
) -> list[_core.WordCounts]:
    counts = []
    expected = None
    for name, text in zip(names, texts, strict=True):
        with contextlib.ExitStack() as stack:
            opened = [stack.enter_context(_counting_lines(source)) for source in sources_of(text)]
            counts.append(count([*opened], development))
        lines = sum(each.lines for each in opened)
        expected = lines if expected is None else expected
        if lines != expected:
            raise MTScaffoldError(f"{name}: {lines} lines, and {names[0]} has {expected}{remedy}")
    return counts


class _LineCounter(io.RawIOBase):
    """A text as a stream of bytes that counts its lines, the last one with or without its LF."""

    def __init__(self, name: str, stream: Readable[bytes]) -> None:
        self.name = name
        self._stream = stream
        self._line_feeds = 0
        self._ended = True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        if data:
            self._line_feeds += data.count(b"\n")
            self._ended = data.endswith(b"\n")
        return data

    @property
    def lines(self) -> int:
        return self._line_feeds + (not self._ended)


@contextlib.contextmanager
def _counting_lines(source: TextFile) -> Iterator[_LineCounter]:
    with core_input(source) as (name, opened):
        stream = io.FileIO(opened, closefd=False) if isinstance(opened, int) else opened
        yield _LineCounter(name, cast(Readable[bytes], stream))
