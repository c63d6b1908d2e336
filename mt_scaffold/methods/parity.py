"""Parity-aware BPE: texts of several languages → merges for the one that is compressed worst (docs/methods.md)."""

from __future__ import annotations

import contextlib
import io
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from mt_scaffold import _core
from mt_scaffold.codes import Codes
from mt_scaffold.corpus.count import Text, sources_of
from mt_scaffold.corpus.documents import Documents, format_by_name
from mt_scaffold.corpus.files import PathLike, Readable, Writable, shown
from mt_scaffold.corpus.header import CHARACTERS, CodesHeader
from mt_scaffold.corpus.inputs import TextFile, core_input, exactly_one, readable, source_name, text_sources
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.methods.base import (
    Count,
    Inputs,
    Load,
    Words,
    check_amount,
    min_frequency_setting,
    setting,
    symbols_setting,
    text_name,
    total_symbols_setting,
)
from mt_scaffold.methods.bpe import LearnedCodes, MethodWithCodes, warn_of_limit, without_base_symbols
from mt_scaffold.methods.trace import Step, TraceWriter
from mt_scaffold.progress import progress_line

# The authors' default.
DEFAULT_ALPHA = 2.0


def _check_window(window: int) -> None:
    if not 1 <= window < 2**31:
        raise UsageError(f"the window must be 1 or more merges and less than 2^31, not {window}")


def _check_alpha(alpha: float) -> None:
    if not 1 <= alpha < math.inf:
        raise UsageError(f"alpha must be 1 or more, so that a language is left to choose, not {alpha}")


def _check_development(dev: Sequence[TextFile]) -> None:
    for name in map(source_name, text_sources(paths=dev)):
        if format_by_name(name) != "lines":
            raise UsageError(f"{name}: a development text is plain text, with a sentence per line; convert it first")


@dataclass(frozen=True)
class Parity(MethodWithCodes):
    """Parity-aware BPE (Foroutan et al. 2025): each merge is chosen on the language that has the most tokens.

    dev: a text for each language, parallel line by line; None if the training texts are parallel.
    global_merges: how many of the first merges are those of BPE on all languages together (the hybrid variant).
    window, alpha: a language is passed over while it has had more than ``alpha`` times its even share of the last
    ``window`` choices (the moving-window variant); None for no window.
    """

    name: ClassVar[str] = "parity"
    title: ClassVar[str] = "parity-aware BPE"
    by_language: ClassVar[bool] = True

    symbols: int = symbols_setting("number of merges")
    min_frequency: int = min_frequency_setting()
    total_symbols: bool = total_symbols_setting()
    dev: Sequence[TextFile] | None = setting(
        "whose inputs are one per language: a development text for each, in the same order and parallel line by line; "
        "the next merge is for the language with the most tokens there (default: the inputs)",
        default=None,
        check=_check_development,
        metavar="PATH",
        in_files=False,
    )
    global_merges: int = setting(
        "choose the first N merges on all languages together, as bpe",
        default=0,
        least=0,
        check=check_amount("number of global merges", 0),
        label="-global{}",
    )
    window: int | None = setting(
        "pass over a language that has had too many of the last W merges (default: none)",
        default=None,
        least=1,
        check=_check_window,
        label="-window{}",
        metavar="W",
    )
    alpha: float | None = setting(
        "with --window, how many times its even share of the window is too many for a language (default: "
        f"{DEFAULT_ALPHA:g})",
        default=None,
        check=_check_alpha,
        label="-alpha{!r}",
        metavar="A",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha is not None and self.window is None:
            raise UsageError("alpha is how much of a window falls on one language; give a window too")

    @property
    def more_sources(self) -> list[TextFile]:
        """The development texts."""
        return [] if self.dev is None else text_sources(paths=self.dev)

    def most_chosen(self, languages: int) -> int:
        """Return the most choices within the window after which a language may be chosen again."""
        # Exactly as written: 1.1 is 11/10.
        from fractions import Fraction

        alpha = Fraction(str(DEFAULT_ALPHA if self.alpha is None else self.alpha))
        window = self.window or 0
        return min(window, math.floor(alpha * window / languages))

    def texts(self, inputs: Inputs) -> list[Text]:
        """Return the text of each language, none for count files.

        Raises UsageError unless there are two or more, of one kind, with as many development texts or none.
        """
        infile, paths, lines, documents, counts, max_memory, prune = inputs
        if max_memory is not None:
            raise UsageError("parity-aware BPE has no limit on memory; count within one, and learn from count files")
        if prune > 1 and self.dev is None:
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
        languages = len(texts) if counts is None else len(counts)
        check_languages(languages, None if self.dev is None else len(self.dev))
        return texts

    def load(self, counts: Sequence[PathLike], load: Load, count: Count) -> Words:
        """Read the words of each language from its count file, and count those of the development texts."""
        return Words([*map(shown, counts)], [load([path]) for path in counts], *count_developments(self, count))

    def count(self, texts: Sequence[Text], count: Count, is_dict: bool = False) -> Words:
        """Count the words of each language, and of the development texts.

        Raises MTScaffoldError if the texts that parity is measured on differ in their numbers of lines; UsageError
        if there are no development texts and the training texts have no lines to compare.
        """
        names = [text_name(text) for text in texts]
        if self.dev is not None:
            training = [count(text, False) for text in texts]
            return Words(names, training, *count_developments(self, count))
        for name, text in zip(names, texts, strict=True):
            if is_dict or (isinstance(text, Documents) and any(each.format != "lines" for each in text.inputs)):
                raise UsageError(f"{name}: no lines of text to compare with those of the other languages; {_GIVE_DEV}")
        training = _count_parallel(names, texts, count, False, f"; if the inputs are not parallel, {_GIVE_DEV}")
        return Words(names, training)

    def learn(
        self,
        words: Words | _core.WordCounts,
        header: CodesHeader = CHARACTERS,
        verbose: bool = False,
        trace: Writable | None = None,
    ) -> LearnedCodes:
        """Learn merges from the words of each language.

        Each merge is for the language with the most tokens: the texts that parity is measured on say the same, so that
        it is the one that is compressed worst. Learning stops, with a line on stderr, once its most frequent pair is
        rarer than ``min_frequency``.

        Raises MTScaffoldError for a text without words; UsageError for the words of a single text.
        """
        if isinstance(words, _core.WordCounts):
            words = Words.of(words)
        check_languages(len(words.training), len(words.development) or None)
        if self.window and self.most_chosen(len(words.training)) == self.window:
            print(
                f"warning: the window has no effect: with {len(words.training)} languages, alpha would have to be "
                f"below {len(words.training)}",
                file=sys.stderr,
            )
        wanted = self.symbols
        if self.total_symbols:
            wanted = without_base_symbols(wanted, words.together(), header)
        names = [*words.names, *words.development_names]
        for name, counts in zip(names, [*words.training, *words.development], strict=True):
            if len(counts) == 0:
                raise MTScaffoldError(f"{name}: there are no words in it; parity-aware BPE needs some of each language")
        writer = None if trace is None else TraceWriter(trace)
        with progress_line("learning", "merges") as show:
            learned = _core.learn_parity(
                words.training,
                words.development,
                wanted,
                self.min_frequency,
                _reporter(words.names, verbose, writer),
                show,
                header.for_core,
                self.global_merges,
                self.window or 0,
                self.most_chosen(len(words.names)),
            )
        warn_of_limit(learned["limited"])
        if learned["exhausted"]:
            number = learned["language"]
            where = "" if number is None else f" of {words.names[number]}, which is compressed worst,"
            print(f"no pair{where} has frequency >= {self.min_frequency}. Stopping", file=sys.stderr)
        return LearnedCodes(Codes(learned["codes"]), 0, learned["exhausted"])


def check_languages(languages: int, developments: int | None) -> None:
    """Raise UsageError unless there are several languages, and development texts for all of them or none."""
    if languages < 2:
        raise UsageError(
            "parity-aware BPE compares languages: give the text of each as a separate input, two or more of them; "
            "for a single text, choose --algorithm bpe"
        )
    if developments is not None and developments != languages:
        raise UsageError(
            f"there are {languages} inputs and {developments} development texts; give one of these for "
            "each input, in the same order"
        )


def count_developments(parity: Parity, count: Count) -> tuple[list[str], list[_core.WordCounts]]:
    """Return the names and counted words of the development texts.

    Raises UsageError if there are none; MTScaffoldError unless they are parallel.
    """
    if parity.dev is None:
        raise UsageError(f"count files have no lines to compare; {_GIVE_DEV}")
    sources = parity.more_sources
    names = [source_name(source) for source in sources]
    texts = [[source] for source in sources]
    return names, _count_parallel(names, texts, count, True, "; development texts must be parallel, line by line")


_GIVE_DEV = "give a parallel development text for each language (--dev)"


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
        yield _LineCounter(name, readable(opened))
