"""Codes → codes with more scaffold tokens (rare, wasted or listed ones), refilled with new merges to a wanted size.

docs/methods.md has the definitions and their sources; tests/reference/trimming.py is the plain Python reference.
"""

from __future__ import annotations

import io
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from mt_scaffold import _core
from mt_scaffold.codes import AnyMerge, Codes, CodesSource
from mt_scaffold.corpus.count import count_files, counted_text, sources_of
from mt_scaffold.corpus.documents import AnyDocuments
from mt_scaffold.corpus.files import Output, PathLike, Writable, read_file, refuse_overwriting, shown, writing_to
from mt_scaffold.corpus.header import CHARACTERS, CodesHeader
from mt_scaffold.corpus.inputs import Lines, TextFile
from mt_scaffold.corpus.text import decode, is_base_symbol
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.methods.base import (
    min_frequency_setting,
    setting,
    symbols_setting,
    total_symbols_setting,
)
from mt_scaffold.methods.bpe import LearnedCodes, MethodWithCodes, PlainBPE, warn_of_limit
from mt_scaffold.progress import progress_line
from mt_scaffold.segment.frequencies import use_of_vocabulary
from mt_scaffold.segment.neighbours import neighbour_entropies
from mt_scaffold.segment.words import words_of_text

SAME = "same"


class TrimmedCodes(NamedTuple):
    """The outcome of trimming.

    codes: with the new marks and the new merges. marked: how many tokens are scaffold now and were not in the given
    codes. learned: the number of new merges. exhausted: whether refilling stopped before the wanted size, because no
    pair was frequent enough.
    """

    codes: Codes
    marked: int
    learned: int
    exhausted: bool


def _check_below(below: float) -> float:
    if not 0 < below < 2**63 or (below >= 1 and below != int(below)):
        raise UsageError(
            f"tokens are marked below a frequency of 1 or more, or below a share of the last merge's, not {below}"
        )
    return below


@dataclass(frozen=True)
class Trimmed(MethodWithCodes):
    """BPE whose rare tokens are scaffold (Cognetta et al. 2024).

    below: the frequency that tokens need in the words; if below 1, a share of that of the last BPE merge. refill: learn
    more BPE merges, up to the same number of normal tokens as before.
    """

    name: ClassVar[str] = "trimmed"
    title: ClassVar[str] = "BPE"

    symbols: int = symbols_setting("number of merges")
    below: float = setting("mark tokens rarer than FREQ", check=_check_below, label="-below{}", metavar="FREQ")
    refill: bool = setting("learn more merges, up to as many normal tokens as before", default=False, label="-refill")
    min_frequency: int = min_frequency_setting()
    total_symbols: bool = total_symbols_setting()

    @property
    def made_of(self) -> PlainBPE:
        """The BPE whose rare tokens are marked."""
        return PlainBPE(self.symbols, self.min_frequency, self.total_symbols)

    @property
    def description(self) -> str:
        """The method and its settings in words."""
        return f"{super().description}, trimmed below {self.below:,}" + " and refilled" * self.refill

    @property
    def variant(self) -> str:
        """Its name without N and the settings that vary with N, for a figure over several N."""
        return self.name + "+refill" * self.refill

    def learn(
        self,
        words: _core.WordCounts,
        header: CodesHeader = CHARACTERS,
        verbose: bool = False,
        trace: Writable | None = None,
    ) -> LearnedCodes:
        """Learn BPE from counted words, and mark the tokens that are rare in them."""
        counts = _core.WordCounts()
        counts.add(words)
        learned = self.made_of.learn(words, header, verbose, trace)
        if not learned.merges:
            return learned._replace(exhausted=True)
        refill: Literal["same"] | None = "same" if self.refill else None
        below = frequency_below(self.below, learned.codes, counts)
        trimmed = _trim(learned.codes, counts, _rule(below, None), set(), refill, max(self.min_frequency, below))
        return LearnedCodes(trimmed.codes, 0, learned.exhausted or trimmed.exhausted, below)


def frequency_below(below: float, codes: Codes, counts: _core.WordCounts) -> int:
    """Return the frequency that tokens need: ``below`` itself, or if it is below 1, this share of the last merge's."""
    if below >= 1 or not codes.merges:
        return max(1, int(below))
    # No later merge uses the last token, so its frequency in the text is that of its merge.
    return max(1, math.ceil(use_of_vocabulary(codes, counts).frequencies[codes.merges[-1].token] * below))


def trim(
    codes: CodesSource,
    infile: TextFile | None = None,
    outfile: Output | None = None,
    below: float | None = None,
    ratio: float | None = None,
    tokens: PathLike | Iterable[str] | None = None,
    refill: int | Literal["same"] | None = None,
    min_frequency: int = 2,
    num_workers: int | None = None,
    *,
    entropy: float | None = None,
    paths: Iterable[TextFile] | None = None,
    lines: Lines | None = None,
    documents: AnyDocuments | None = None,
    counts: Sequence[PathLike] | None = None,
) -> TrimmedCodes:
    """Mark tokens of ``codes`` as scaffold, and write the codes; at least one of the three rules is given.

    Tokens are marked all at once, by their frequencies in the text as ``codes`` segment it. Scaffold tokens stay
    scaffold, base symbols are never marked, and one rule is enough to mark a token.

    codes: a codes file of BPE or Scaffold-BPE, as ``BPE`` takes it. infile, paths, lines, documents, counts: the text,
    as in ``learn_bpe``, cut into words as the codes say; exactly one, unless ``tokens`` is the only rule. outfile: a
    path, or a file open for bytes or text; None to only return the codes.
    below: mark tokens with a frequency below this (vocabulary trimming: Cognetta et al. 2024); below 1, a share of that
    of the last merge.
    ratio: mark tokens whose occurrences as separate tokens are less than this share, in (0, 1], of all of theirs, those
    inside longer tokens included (the final/intermediate ratio of LiteToken: Sun et al. 2026, R(t) = F1 / (F1 + F2)).
    entropy: of these, mark only those whose neighbours have an entropy of at most this many bits on either side
    (``segment.neighbours``).
    tokens: mark these, written as in ``Merge``: a path to a list of them, one per line, or the tokens.
    refill: learn more BPE merges from the same text, up to this many normal tokens; "same": as many as ``codes`` have.
    It learns as many as are missing, marks again, and repeats. Pairs rarer than ``min_frequency``, or than ``below``,
    are not merged.
    num_workers: threads that count words, as in ``count_words``; the result does not depend on it.

    Raises MTScaffoldError for malformed codes, a token that no merge makes, and a text that cannot be read or has no
    words; UsageError for codes of PickyBPE, values out of range, no rule, none or several texts, and an output that is
    an input.

    >>> codes = b"#version: 0.2\\nl o\\nlo w</w>\\n"
    >>> trim(codes, lines=["low low lower"], below=2).codes.merges
    [Merge(left='l', right='o', scaffold=True), Merge(left='lo', right='w</w>', scaffold=False)]
    """
    read = Codes.of(codes)
    check_rules(below, ratio, tokens, refill, min_frequency, entropy)
    if read.header.picky:
        raise UsageError(f"{read.name}: codes of PickyBPE, which removes tokens as it learns; mark codes of BPE")
    needs_text = below is not None or ratio is not None or refill is not None
    if not needs_text and any(given is not None for given in (infile, paths, lines, documents, counts)):
        raise UsageError("a list of tokens needs no text; omit the text")
    text = counted_text(infile, paths, lines, documents, counts) if needs_text else []
    listed = _listed(tokens, read)
    counts = None if counts is None else count_files(counts)
    token_file = tokens if isinstance(tokens, str | os.PathLike) else None
    refuse_overwriting([outfile], [codes, token_file, *(sources_of(text) if counts is None else counts)])
    with writing_to(io.BytesIO() if outfile is None else outfile) as stream:
        words = words_of_text(read, text, counts, num_workers) if needs_text else None
        least = None if below is None or words is None else frequency_below(below, read, words)
        result = _trim(read, words, _rule(least, ratio, entropy), listed, refill, max(min_frequency, least or 0))
        stream.write(result.codes.text)
    return result


def check_rules(
    below: float | None,
    ratio: float | None,
    tokens: object,
    refill: int | str | None,
    min_frequency: int = 2,
    entropy: float | None = None,
) -> None:
    """Raise UsageError unless codes can be marked with these options."""
    if below is None and ratio is None and tokens is None:
        raise UsageError("no rule for what to mark; give --below, --ratio or --tokens")
    if below is not None:
        _check_below(below)
    if ratio is not None and not 0 < ratio <= 1:
        raise UsageError(f"the ratio must be above 0 and at most 1, not {ratio}")
    if entropy is not None and ratio is None:
        raise UsageError("the entropy of neighbours spares some of the tokens that a ratio marks; also give a ratio")
    if entropy is not None and not 0 <= entropy < math.inf:
        raise UsageError(f"the entropy must be 0 bits or more, not {entropy}")
    if isinstance(refill, str) and refill != SAME:
        raise UsageError(f"refill to a number of normal tokens, or to '{SAME}', not '{refill}'")
    PlainBPE(refill if isinstance(refill, int) else 1, min_frequency)  # refuses values out of range


# Codes, counted words → the tokens to mark.
_Rule = Callable[[Codes, _core.WordCounts], set[str]]


def _rule(below: int | None, ratio: float | None, entropy: float | None = None) -> _Rule:
    def marked(codes: Codes, words: _core.WordCounts) -> set[str]:
        found = set()
        frequencies = use_of_vocabulary(codes, words).frequencies
        if below is not None:
            found |= {token for token, frequency in frequencies.items() if frequency < below}
        if ratio is not None:
            # Not frequency < ratio * every: rounding the product could turn a tie into a difference.
            total = total_occurrences(frequencies, codes.merges)
            wasted = {token for token, every in total.items() if every and frequencies.get(token, 0) / every < ratio}
            if entropy is not None:
                sides = neighbour_entropies(codes, words)
                wasted = {token for token in wasted if max(sides[token]) <= entropy}
            found |= wasted
        return found

    return marked


def total_occurrences(frequencies: Mapping[str, int], merges: Iterable[AnyMerge]) -> Counter[str]:
    """Return how often each token occurs on its own and inside longer tokens: LiteToken's F1 + F2.

    frequencies: of the tokens of a segmented text. merges: of its codes. A token contains the two symbols of the first
    merge that makes it and, recursively, those that these contain.

    >>> total_occurrences({"ban": 2, "an": 1}, [Merge("a", "n"), Merge("b", "an")])
    Counter({'an': 3, 'a': 3, 'n': 3, 'ban': 2, 'b': 2})
    """
    parts: dict[str, tuple[str, str]] = {}
    for left, right, _ in merges:
        parts.setdefault(left + right, (left, right))
    total = Counter(frequencies)
    for token in sorted(parts, key=len, reverse=True):  # a token before its parts, which are shorter
        for part in parts[token]:
            total[part] += total[token]
    return +total


def _trim(
    codes: Codes,
    words: _core.WordCounts | None,
    rule: _Rule,
    listed: set[str],
    refill: int | Literal["same"] | None,
    min_frequency: int,
) -> TrimmedCodes:
    before, merges = codes.scaffold, len(codes.merges)
    wanted = len(codes.normal) if isinstance(refill, str) else refill
    marks = before | listed
    exhausted = False
    codes = codes.with_scaffold(marks)
    while True:
        normal = codes.normal
        if words is not None:
            # With all marks so far, since the occurrences of a marked token count for its parts.
            rare = rule(codes, words) & normal
            marks, normal = marks | rare, normal - rare
            codes = codes.with_scaffold(marks)
        missing = 0 if wanted is None else wanted - len(normal)
        if exhausted or missing <= 0 or words is None:
            break
        codes, exhausted = learn_on(codes, words, missing, min_frequency)
    if exhausted and missing > 0:
        print(f"no pair has frequency >= {min_frequency}. Stopping", file=sys.stderr)
    elif missing < 0:
        print(f"warning: {-missing:,} more normal tokens than {wanted:,} already; nothing was learned", file=sys.stderr)
    return TrimmedCodes(codes, len(codes.scaffold - before), len(codes.merges) - merges, exhausted and missing > 0)


def _listed(tokens: PathLike | Iterable[str] | None, codes: Codes) -> set[str]:
    """Return the tokens of a list. Raises MTScaffoldError, with file and line, for one that cannot be marked."""
    if tokens is None:
        return set()
    made = {merge.token for merge in codes.merges}
    if isinstance(tokens, str | os.PathLike):
        name = shown(tokens)
        lines = decode(read_file(tokens), name).split("\n")
        # A token may end in CR; otherwise it is the line end's.
        listed = [line if line in made else line.removesuffix("\r") for line in lines]
        places = {token: f"{name}: line {number}: " for number, token in enumerate(listed, 1) if token}
    else:
        places = dict.fromkeys(tokens, "")
    for token, place in places.items():
        if token not in made:
            raise MTScaffoldError(
                f"{place}no merge of {codes.name} makes '{token}'; write tokens as the codes file does, with </w> at "
                "the end of a word"
                if codes.header.end_of_word
                else f"{place}no merge of {codes.name} makes '{token}'; write tokens as the codes file does"
            )
        if is_base_symbol(token, codes.header.end_of_word):
            raise MTScaffoldError(f"{place}'{token}' is a base symbol, which cannot be scaffold; remove it")
    return set(places)


def learn_on(codes: Codes, counts: _core.WordCounts, more: int, min_frequency: int = 2) -> tuple[Codes, bool]:
    """Learn up to ``more`` BPE merges beyond those of ``codes``, from counted words, which are not used up.

    All merges of ``codes``, including those of scaffold tokens, are replayed on the text; then the most frequent pair
    is merged as usual. With the text and the minimum frequency that BPE codes were learned with, the result equals
    learning all symbols at once. Scaffold tokens stay scaffold, whichever pair makes them.

    Returns the codes, and whether learning stopped early because no pair reached ``min_frequency``.
    """
    copy = _core.WordCounts()
    copy.add(counts)
    with progress_line("learning", "merges") as show:
        symbols = len(codes.merges) + more
        learned = _core.learn(copy, "bpe", symbols, min_frequency, None, show, codes.header.for_core, given=codes.text)
    warn_of_limit(learned.limited)
    return Codes(learned.codes, codes.name).with_scaffold(codes.scaffold), learned.exhausted
