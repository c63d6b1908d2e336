"""BPE and Scaffold-BPE: words → codes (Algorithm 1 of the Scaffold-BPE paper)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from mt_scaffold import _core
from mt_scaffold.codes import Codes, CodesSource
from mt_scaffold.corpus.files import PathLike, Writable
from mt_scaffold.corpus.header import CHARACTERS, CodesHeader
from mt_scaffold.corpus.text import SEPARATOR
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.methods.base import Method, min_frequency_setting, symbols_setting, total_symbols_setting
from mt_scaffold.methods.trace import Step, TraceWriter
from mt_scaffold.progress import Progress, progress_line

# Called after each step of learning with left and right (empty if nothing was merged), the frequency of the pair, that
# of the queue's head, those of left and right if they became scaffold or were removed, and the token that came back.
OnStep = Callable[[str, str, int, int | None, int | None, int | None, tuple[str, int] | None], None]

# Learning does not import the segmenter.
if TYPE_CHECKING:
    from mt_scaffold.segment.apply import BPE
    from mt_scaffold.segment.frequencies import Vocabulary


class LearnedCodes(NamedTuple):
    """The outcome of learning.

    codes: the merges that were learned, as ``BPE`` takes them.
    restored: how often a scaffold token became normal again; for PickyBPE, how often a removed one was merged again.
    exhausted: whether learning stopped early, because no pair reached the minimum frequency.
    marked_below: the frequency below which tokens were trimmed; None if none were.
    """

    codes: Codes
    restored: int
    exhausted: bool
    marked_below: int | None = None

    @property
    def text(self) -> bytes:
        """The codes file, as bytes."""
        return self.codes.text

    @property
    def merges(self) -> int:
        """The number of merges: for Scaffold-BPE, normal plus scaffold tokens; for PickyBPE, at least as many."""
        return len(self.codes.merges)

    @property
    def scaffold(self) -> int:
        """The number of tokens that are scaffold at the end or, with PickyBPE, removed."""
        return len({merge.token for merge in self.codes.merges if not merge.normal})


def warn_of_limit(limited: bool) -> None:
    """Warn on stderr if a pair was skipped because its token would be too long."""
    if limited:
        print(
            f"a token would have more than {_core.LONGEST_TOKEN:,} bytes; its pair is not merged, so that codes stay "
            "small: the text repeats something very long",
            file=sys.stderr,
        )


@dataclass(frozen=True)
class MethodWithCodes(Method[LearnedCodes]):
    """A method whose models are codes, which ``BPE`` segments with."""

    suffix: ClassVar[str] = ".codes"
    stem: ClassVar[str] = "bpe"
    resampling: ClassVar[str] = "dropout"

    @classmethod
    def segmenter(
        cls,
        model: PathLike,
        separator: str | None = None,
        vocabulary: Sequence[str] | set[str] | None = None,
        glossaries: Sequence[str] | None = None,
    ) -> BPE:
        """Return a ``BPE`` with these codes."""
        from mt_scaffold.segment.apply import BPE

        separator = SEPARATOR if separator is None else separator
        return BPE(model, separator=separator, vocab=vocabulary, glossaries=glossaries or None)

    @classmethod
    def use(cls, model: CodesSource, counts: _core.WordCounts) -> Vocabulary:
        """Return how often counted words use each token of codes."""
        from mt_scaffold.segment.frequencies import use_of_vocabulary

        return use_of_vocabulary(model, counts)


@dataclass(frozen=True)
class MergingMethod(MethodWithCodes):
    """A method whose merges the core learns from a single text."""

    symbols: int = symbols_setting("number of merges")
    min_frequency: int = min_frequency_setting()
    total_symbols: bool = total_symbols_setting()

    def learn(
        self,
        words: _core.WordCounts,
        header: CodesHeader = CHARACTERS,
        verbose: bool = False,
        trace: Writable | None = None,
    ) -> LearnedCodes:
        """Learn merges from counted words."""
        if len(words) == 0:
            raise MTScaffoldError("there are no words in the input to learn from")
        wanted = self.symbols
        if self.total_symbols:
            wanted = _without_base_symbols(wanted, words, header)
        with progress_line("learning", "merges") as show:
            learned = self._learn(words, wanted, _reporter(verbose, trace), show, header)
        warn_of_limit(learned.limited)
        if learned.exhausted:
            print(f"no pair has frequency >= {self.min_frequency}. Stopping", file=sys.stderr)
        return LearnedCodes(Codes(learned.codes), learned.restored, learned.exhausted)

    def _learn(
        self,
        counts: _core.WordCounts,
        wanted: int,
        on_step: OnStep | None,
        show: Progress | None,
        header: CodesHeader,
    ) -> _core.Learned:
        return _core.learn(counts, self.name, wanted, self.min_frequency, on_step, show, header.for_core)


@dataclass(frozen=True)
class PlainBPE(MergingMethod):
    """Original BPE (Sennrich et al. 2016)."""

    name: ClassVar[str] = "bpe"
    title: ClassVar[str] = "BPE"


@dataclass(frozen=True)
class Scaffold(MergingMethod):
    """Scaffold-BPE (Lian et al. 2025): tokens that are rare by themselves leave the vocabulary."""

    name: ClassVar[str] = "scaffold"
    title: ClassVar[str] = "Scaffold-BPE"

    symbols: int = symbols_setting("number of normal merged tokens")


def _without_base_symbols(num_symbols: int, counts: _core.WordCounts, header: CodesHeader) -> int:
    """Return how many symbols remain to be learned, and print the subtraction to stderr in subword-nmt's words."""
    internal, final = counts.base_symbols(header.bytes, header.end_of_word)
    base = internal + final
    if header.end_of_word:
        print(f"Number of word-internal characters: {internal}", file=sys.stderr)
        print(f"Number of word-final characters: {final}", file=sys.stderr)
    else:
        print(f"Number of bytes: {base}", file=sys.stderr)
    print(f"Reducing number of merge operations by {base}", file=sys.stderr)
    if num_symbols <= base:
        raise UsageError(
            f"--total-symbols leaves nothing to learn: the text has {base} base symbols, and --symbols is only "
            f"{num_symbols}; raise --symbols, or omit --total-symbols"
        )
    return num_symbols - base


def _reporter(verbose: bool, trace: Writable | None) -> OnStep | None:
    """Return the core's callback for each step; None, which costs nothing, if there is nothing to report."""
    if not verbose and trace is None:
        return None
    writer = None if trace is None else TraceWriter(trace)
    merges = 0

    def report(
        left: str,
        right: str,
        frequency: int,
        head: int | None,
        left_marked: int | None,
        right_marked: int | None,
        returned: tuple[str, int] | None,
    ) -> None:
        nonlocal merges
        if writer is not None:
            marks = ((left, left_marked), (right, right_marked))
            marked = tuple((token, count) for token, count in marks if count is not None)
            writer.add(Step(left, right, frequency, head, marked, returned))
        if left:
            if verbose:
                print(f"pair {merges}: {left} {right} -> {left}{right} (frequency {frequency})", file=sys.stderr)
            merges += 1

    return report
