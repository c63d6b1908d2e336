"""Words → codes: learning merges of BPE, Scaffold-BPE, PickyBPE and parity-aware BPE."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from mt_scaffold import _core
from mt_scaffold.codes import Codes
from mt_scaffold.corpus.count import Text, count_files, count_words, counted_text, load_counts, sources_of
from mt_scaffold.corpus.documents import Documents, Texts
from mt_scaffold.corpus.files import Output, PathLike, Writable, refuse_overwriting, shown, writing_to
from mt_scaffold.corpus.header import CHARACTERS, CodesHeader
from mt_scaffold.corpus.inputs import Lines, TextFile
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.methods.parity import (
    PARITY,
    Languages,
    Parity,
    count_developments,
    count_languages,
    language_texts,
    learn_parity,
    parity_settings,
)
from mt_scaffold.methods.trace import Step, TraceWriter
from mt_scaffold.options import check_learning, picky_threshold
from mt_scaffold.progress import progress_line


class LearnedCodes(NamedTuple):
    """The outcome of learning.

    codes: the merges that were learned, as ``BPE`` takes them.
    restored: how often a scaffold token became normal again; for PickyBPE, how often a removed one was merged again.
    exhausted: whether learning stopped early, because no pair reached the minimum frequency.
    """

    codes: Codes
    restored: int
    exhausted: bool

    @property
    def text(self) -> bytes:
        """The codes file, as bytes."""
        return self.codes.text

    @property
    def merges(self) -> int:
        """The number of merges; for Scaffold-BPE the normal tokens plus the scaffold tokens, for PickyBPE no fewer."""
        return len(self.codes.merges)

    @property
    def scaffold(self) -> int:
        """The number of tokens that are scaffold at the end, or with PickyBPE, that are removed."""
        return len({merge.token for merge in self.codes.merges if merge.scaffold})


def learn_from_counts(
    counts: _core.WordCounts,
    num_symbols: int = 10000,
    min_frequency: int = 2,
    algorithm: str = "scaffold",
    total_symbols: bool = False,
    verbose: bool = False,
    trace: Writable | None = None,
    header: CodesHeader = CHARACTERS,
    threshold: float | None = None,
) -> LearnedCodes:
    """Learn merges as ``learn_bpe`` does, from counted words; the counts are used up. ``trace``: open for bytes.

    header: of the codes; what it says of words must be what was counted.
    """
    check_learning(num_symbols, min_frequency, algorithm)
    if algorithm == PARITY:
        raise UsageError("parity-aware BPE takes the words of each language; call learn_from_languages")
    share = picky_threshold(algorithm, threshold)
    if len(counts) == 0:
        raise MTScaffoldError("there are no words in the input to learn from")
    if total_symbols:
        base_symbols = counts.base_symbols(header.bytes, header.end_of_word)
        num_symbols = _without_base_symbols(num_symbols, *base_symbols, header)
    with progress_line("learning", "merges") as show:
        on_step = _reporter(verbose, trace)
        learned = _core.learn(counts, algorithm, num_symbols, min_frequency, on_step, show, header.for_core, share)
    if learned["exhausted"]:
        print(f"no pair has frequency >= {min_frequency}. Stopping", file=sys.stderr)
    return LearnedCodes(Codes(learned["codes"]), learned["restored"], learned["exhausted"])


def learn_from_languages(
    languages: Languages,
    parity: Parity,
    num_symbols: int = 10000,
    min_frequency: int = 2,
    total_symbols: bool = False,
    verbose: bool = False,
    trace: Writable | None = None,
    header: CodesHeader = CHARACTERS,
) -> LearnedCodes:
    """Learn parity-aware BPE as ``learn_bpe`` does, from the counted words of each language, which are used up."""
    if total_symbols:
        base_symbols = languages.together().base_symbols(header.bytes, header.end_of_word)
        num_symbols = _without_base_symbols(num_symbols, *base_symbols, header)
    writer = None if trace is None else TraceWriter(trace)
    codes, exhausted = learn_parity(languages, parity, num_symbols, min_frequency, header, verbose, writer)
    return LearnedCodes(codes, 0, exhausted)


def learn_on(codes: Codes, counts: _core.WordCounts, more: int, min_frequency: int = 2) -> tuple[Codes, bool]:
    """Learn up to ``more`` BPE merges beyond those of ``codes``, from counted words, which are not used up.

    All merges of ``codes`` are replayed on the text, those of scaffold tokens too; then the most frequent pair is
    merged as ever. With the text and the minimum frequency that BPE codes were learned with, the result is that of
    learning more symbols at once. Scaffold tokens stay scaffold, whatever pair makes them.

    Returns the codes, and whether learning stopped early because no pair reached ``min_frequency``.
    """
    copy = _core.WordCounts()
    copy.add(counts)
    with progress_line("learning", "merges") as show:
        symbols = len(codes.merges) + more
        learned = _core.learn(copy, "bpe", symbols, min_frequency, None, show, codes.header.for_core, given=codes.text)
    return Codes(learned["codes"], codes.name).with_scaffold(codes.scaffold), learned["exhausted"]


def _without_base_symbols(num_symbols: int, internal: int, final: int, header: CodesHeader) -> int:
    """How many symbols remain to be learned; says on stderr, in subword-nmt's words, what is subtracted."""
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


def _reporter(verbose: bool, trace: Writable | None) -> _core._OnStep:
    """What the core calls after each step; None, which costs learning nothing, unless something is to be reported."""
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


def learn_bpe(
    infile: TextFile | None = None,
    outfile: Output | None = None,
    num_symbols: int = 10000,
    min_frequency: int = 2,
    verbose: bool = False,
    is_dict: bool = False,
    total_symbols: bool = False,
    num_workers: int | None = None,
    algorithm: str = "scaffold",
    *,
    paths: Iterable[TextFile] | None = None,
    lines: Lines | None = None,
    documents: Texts | Sequence[Documents] | None = None,
    counts: Sequence[PathLike] | None = None,
    trace: Output | None = None,
    pretokenise: str = "spaces",
    split_digits: bool = False,
    byte_level: bool = False,
    max_memory: int | str | None = None,
    prune: int = 1,
    threshold: float | None = None,
    dev: Sequence[TextFile] | None = None,
    global_merges: int = 0,
    window: int | None = None,
    alpha: float | None = None,
) -> LearnedCodes:
    """Learn merges from text (Algorithm 1 of the Scaffold-BPE paper, or BPE and others of its kind); write the codes.

    infile: a path (``.gz`` too) or an open file. paths: several of them, read as one text.
    lines: an iterable of strings. documents: ``Documents``, or an iterable of strings or bytes, each pre-tokenised as a
    whole. counts: count files (``write_counts``, globs too), which say how their words were counted. Exactly one is
    given.
    outfile: a path, or a file open for bytes or text; None to get the codes only as the result.
    num_symbols: merges for ``algorithm="bpe"``; normal merged tokens for ``algorithm="scaffold"``; merged tokens that
    are not removed for ``algorithm="picky"`` (Chizhov et al. 2024, docs/methods.md); merges for ``algorithm="parity"``
    (Foroutan et al. 2025, docs/methods.md), which takes a text for each language: as ``paths``, ``counts``, or as
    ``documents``, a list of ``Documents``.
    min_frequency: stop, with a warning, when the most frequent pair is rarer.
    verbose: print each merge to stderr.
    is_dict: each line of the input is a word and its count.
    total_symbols: subtract the number of base symbols from ``num_symbols``.
    num_workers: threads that count words, as in ``count_words``; the result does not depend on it.
    trace: a path, or a file open for bytes or text, for what each step of Algorithm 1 did (the paper's figure of one
    iteration, for all of them): tab-separated, with a line that names the columns. A step either merges ``left`` and
    ``right``, whose pair has ``frequency``, and lists in ``marked`` those of the two that are now rarer than the
    ``head`` of the queue and become scaffold tokens; or it makes ``returned``, a scaffold token, normal again.
    With PickyBPE, ``marked`` are those of the two that are removed. docs/statistics.md has every column.
    pretokenise: how a line becomes words: "spaces", or with the published patterns of "gpt2", "cl100k" and "o200k", or
    with a regular expression of the package ``regex``, whose gaps are words too. All but "spaces" keep the spaces in
    the words and imply ``byte_level``; no symbol carries ``</w>`` then, and the 256 bytes are the base symbols (Radford
    et al., 2019; the Scaffold-BPE paper, "Experimental Setup").
    split_digits: with one of those, every number character becomes a word of its own.
    byte_level: base symbols are bytes and the text may be any bytes; with "spaces", the codes are those of
    ``subword-nmt learn-bpe --byte``.
    max_memory: as in ``count_words``; learning is refused where it would need (about) more.
    prune: drop words with a lower count before learning, and say on stderr what that can change.
    threshold: with ``algorithm="picky"``, remove a part of a merge where this share of its occurrences, above 0 and at
    most 1, is in the merge; 0.9 for None.
    dev, global_merges, window, alpha: with ``algorithm="parity"``, a plain text for each language, parallel line by
    line, on which languages are compared (None: the inputs); how many of the first merges are those of BPE; and the
    moving window: a language waits while more than ``alpha`` (2 for None) times its even share of the last ``window``
    choices fell on it.

    Raises MTScaffoldError for input that has no words, cannot be read or is not UTF-8; UsageError for values out of
    range, for none or several inputs, for an output that is an input, for codes and trace in the same file, and for
    options that cannot go together.

    >>> learn_bpe(lines=["low lower", "low"], num_symbols=2).codes.merges
    [Merge(left='l', right='o', scaffold=False), Merge(left='lo', right='w</w>', scaffold=False)]
    """
    check_learning(num_symbols, min_frequency, algorithm)
    picky_threshold(algorithm, threshold)
    header = CodesHeader.of_options(pretokenise, split_digits, byte_level)
    parity = parity_settings(algorithm, dev, global_merges, window, alpha)
    if counts is not None and is_dict:
        raise UsageError("a count file is no dictionary; give it as counts, without is_dict")
    count_paths = [] if counts is None else count_files(counts)
    texts: Sequence[Text]
    if parity is None:
        texts = [counted_text(infile, paths, lines, cast("Texts | None", documents), counts)]
    else:
        texts = language_texts(parity, infile, paths, lines, documents, counts, max_memory, prune)
    sources = [source for text in texts for source in sources_of(text)]
    sources += [] if parity is None else parity.development or []
    refuse_overwriting([outfile, trace], [*sources, *count_paths])
    if trace is not None and trace is outfile:
        raise UsageError("codes and trace would be mixed in one output; give each its own file")

    def count(text: Text, development: bool = False) -> _core.WordCounts:
        return count_words(
            paths=text if isinstance(text, list) else None,
            documents=None if isinstance(text, list) else text,
            is_dict=is_dict and not development,
            num_workers=num_workers,
            pretokenise=header.pretokeniser,
            split_digits=header.split_digits,
            any_bytes=header.bytes,
            max_memory=max_memory,
            prune=1 if development else prune,
        )

    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(writing_to(io.BytesIO() if outfile is None else outfile))
        steps = None if trace is None else stack.enter_context(writing_to(trace))
        expected = None if header == CodesHeader() else header
        if parity is not None:
            if counts is None:
                languages = count_languages(parity, texts, count, is_dict)
            else:
                loaded = []
                for path in counts:
                    words, header = load_counts([path], expected, prune=prune)
                    expected = header
                    loaded.append(words)
                languages = Languages([*map(shown, counts)], loaded, *count_developments(parity, count))
            learned = learn_from_languages(
                languages, parity, num_symbols, min_frequency, total_symbols, verbose, steps, header
            )
        else:
            if counts is None:
                words = count(texts[0])
            else:
                words, header = load_counts(count_paths, expected, max_memory, prune)
            learned = learn_from_counts(
                words, num_symbols, min_frequency, algorithm, total_symbols, verbose, steps, header, threshold
            )
        stream.write(learned.text)
    return learned
