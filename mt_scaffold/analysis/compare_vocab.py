"""Two codes files + words → the tokens of the BPE vocabulary that Scaffold-BPE removes, and those that it adds."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mt_scaffold import _core
from mt_scaffold.analysis.stats import counts_for, summarise
from mt_scaffold.codes import Codes, CodesSource
from mt_scaffold.corpus.count import count_text
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.corpus.inputs import Lines, TextFile, text_sources
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.methods import PlainBPE, Scaffold
from mt_scaffold.options import FORMATS, check_choice
from mt_scaffold.segment.frequencies import Vocabulary, use_of_vocabulary
from mt_scaffold.segment.numbering import numbering_of
from mt_scaffold.tables import decimal, format_table

_WORDS = CodesHeader()  # of characters, between spaces
_BPE, _SCAFFOLD = ", BPE", ", Scaffold-BPE"
# The paper's figures of a vocabulary on a text, with its number of decimal places.
_FIGURES = (("bytes per token", "bytes_per_token", 3), ("H, bits", "entropy_bits", 4), ("redundancy", "redundancy", 4))


@dataclass(frozen=True)
class NewToken:
    """A token of the second vocabulary only, with its frequency in the text as the second codes segment it."""

    token: str
    frequency: int


@dataclass(frozen=True)
class RemovedToken:
    """A token of the first vocabulary only, with its frequency in the text as the first codes segment it.

    scaffold: whether the second codes keep it as a scaffold token; otherwise they do not have it at all.
    """

    token: str
    frequency: int
    scaffold: bool


@dataclass(frozen=True)
class VocabularyComparison:
    """The normal merged tokens of a Scaffold-BPE vocabulary, compared with those of a BPE vocabulary.

    bpe, scaffold: the names of the codes. kept: how many tokens both have.
    removed, new: the tokens that only BPE has and only Scaffold-BPE has, the most frequent first.
    average_frequency_removed, average_frequency_new: None if there are no such tokens.
    gain: how much higher the average frequency of the new tokens is than that of the removed ones, 0.5 for half as
        much again; None if either list is empty or the removed tokens never occur.
    """

    bpe: str
    scaffold: str
    kept: int
    removed: list[RemovedToken]
    new: list[NewToken]
    average_frequency_removed: float | None
    average_frequency_new: float | None
    gain: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison under the keys of the JSON output."""
        return asdict(self)


@dataclass(frozen=True)
class TextFigures:
    """The figures of one vocabulary on the text, as in ``stats.Summary``: the paper's compression, H and R."""

    vocabulary_size: int
    bytes_per_token: float
    entropy_bits: float
    redundancy: float


@dataclass(frozen=True)
class SizeComparison:
    """A comparison of BPE and Scaffold-BPE vocabularies of ``symbols`` merged tokens, with counts instead of lists.

    removed, new: how many tokens only BPE has and only Scaffold-BPE has. The rest is as in VocabularyComparison.
    scaffold_share_of_bpe: the share of BPE's vocabulary, base symbols included, that Scaffold-BPE marks as scaffold:
        the paper's percentage of scaffold tokens (section "Introduction"). None if not measured.
    bpe, scaffold: the figures of each vocabulary on the text; None if not measured.
    """

    symbols: int
    removed: int
    new: int
    average_frequency_removed: float | None
    average_frequency_new: float | None
    gain: float | None
    scaffold_share_of_bpe: float | None = None
    bpe: TextFigures | None = None
    scaffold: TextFigures | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison under the keys of the JSON output."""
        return asdict(self)


def compare_vocab(
    bpe: CodesSource,
    scaffold: CodesSource,
    infile: TextFile | None = None,
    num_workers: int | None = None,
    *,
    paths: Iterable[TextFile] | None = None,
    lines: Lines | None = None,
) -> VocabularyComparison:
    """Compare the normal merged tokens of two codes files on a text (not segmented).

    bpe, scaffold: codes with the same kind of symbols, as ``BPE`` takes them, including imported ones; the
    pre-tokenisers of codes of bytes may differ. infile: a path (``.gz`` too) or an open file. paths: several of them,
    read as one text. lines: an iterable of strings. Exactly one of the three is given. num_workers: threads, as in
    ``count_words``.

    Raises MTScaffoldError if a file is malformed, missing or not UTF-8, or the text has no words; UsageError for none
    or several inputs, for codes whose tokens cannot be compared, and if only the first codes have scaffold tokens.
    """
    read = [Codes.of(source) for source in (bpe, scaffold)]  # a missing file is reported before the long count
    headers = [source.header for source in read]
    if (headers[0].bytes, headers[0].end_of_word) != (headers[1].bytes, headers[1].end_of_word):
        raise UsageError(
            f"{read[0].name} and {read[1].name}: their first lines differ in the kind of symbols, or only one has a "
            "pre-tokeniser; compare codes of the same kind"
        )
    counts = counts_for(read, infile, num_workers, paths, lines)
    first, second = (
        use_of_vocabulary(source, counted.words, added_spaces=counted.added_spaces)
        for source, counted in zip(read, counts, strict=True)
    )
    imported = not headers[0].end_of_word and numbering_of(read[0]) is not None
    if first.scaffold and not second.scaffold and not imported:
        raise UsageError(
            f"{first.codes.name} has codes of Scaffold-BPE and {second.codes.name} does not; give the BPE codes first"
        )
    return compare_vocabularies(first, second)


def compare_vocabularies(bpe: Vocabulary, scaffold: Vocabulary) -> VocabularyComparison:
    """Compare two vocabularies that were measured on the same text."""
    removed = _by_frequency(bpe.normal - scaffold.normal, bpe)
    new = _by_frequency(scaffold.normal - bpe.normal, scaffold)
    average_removed, average_new = _average(removed), _average(new)
    return VocabularyComparison(
        bpe=bpe.codes.name,
        scaffold=scaffold.codes.name,
        kept=len(bpe.normal & scaffold.normal),
        removed=[RemovedToken(token, frequency, token in scaffold.scaffold) for token, frequency in removed],
        new=[NewToken(token, frequency) for token, frequency in new],
        average_frequency_removed=average_removed,
        average_frequency_new=average_new,
        gain=average_new / average_removed - 1 if average_removed and average_new is not None else None,
    )


def compare_sizes(
    sizes: Sequence[int],
    infile: TextFile | None = None,
    num_workers: int | None = None,
    *,
    paths: Iterable[TextFile] | None = None,
    lines: Lines | None = None,
    total_symbols: bool = False,
    pretokenise: str = "spaces",
    split_digits: bool = False,
    byte_level: bool = False,
) -> list[SizeComparison]:
    """Learn BPE and Scaffold-BPE codes of each size from a text, and compare the vocabularies on it, as the paper does.

    sizes: numbers of symbols, as ``learn_bpe`` takes them, like ``total_symbols``, ``pretokenise``, ``split_digits``
    and ``byte_level``. The text is as in ``compare_vocab``; its words are counted once.

    A size for which the text has too few pairs is left out, with a line on stderr. Raises MTScaffoldError if no size
    is left, or if a file is missing or not UTF-8 or has no words; UsageError for none or several inputs, and for sizes
    out of range.
    """
    for symbols in sizes:
        PlainBPE(symbols)  # refuses values out of range
    header = CodesHeader.of_options(pretokenise, split_digits, byte_level)
    counts = count_text(text_sources(infile, paths, lines), header, num_workers=num_workers)
    rows = compare_at_sizes(counts, sizes, header=header, total_symbols=total_symbols)
    if not rows:
        raise MTScaffoldError("the text has too few pairs for any of the sizes; give more text or smaller sizes")
    return rows


def compare_at_sizes(
    counts: _core.WordCounts,
    sizes: Sequence[int],
    min_frequency: int = 2,
    header: CodesHeader = _WORDS,
    total_symbols: bool = False,
) -> list[SizeComparison]:
    """Learn BPE and Scaffold-BPE codes of each size on counted words, and compare the vocabularies on those words.

    counts: from ``count_words``; not used up. sizes: numbers of symbols; one for which the text runs out of pairs is
    left out, with a line on stderr. header: of the codes; the words must have been counted as it says. total_symbols:
    N includes the base symbols, as in the paper.
    """
    base = sum(counts.base_symbols(header.bytes, header.end_of_word)) if total_symbols else 0
    rows = []
    for symbols in sizes:
        if symbols <= base:
            raise UsageError(f"N = {symbols:,}: the text already has {base:,} base symbols; give a greater N")
        measured = []
        for method in (PlainBPE(symbols - base, min_frequency), Scaffold(symbols - base, min_frequency)):
            copy = _core.WordCounts()
            copy.add(counts)
            learned = method.learn(copy, header)
            if learned.exhausted:
                print(f"N = {symbols:,} is left out: the text has too few pairs ({method.name})", file=sys.stderr)
                break
            measured.append(use_of_vocabulary(learned.codes, counts))
        if len(measured) == 2:
            rows.append(_at_size(symbols, *measured))
    return rows


def _at_size(symbols: int, bpe: Vocabulary, scaffold: Vocabulary) -> SizeComparison:
    found = compare_vocabularies(bpe, scaffold)
    marked = sum(entry.scaffold for entry in found.removed)
    return SizeComparison(
        symbols=symbols,
        removed=len(found.removed),
        new=len(found.new),
        average_frequency_removed=found.average_frequency_removed,
        average_frequency_new=found.average_frequency_new,
        gain=found.gain,
        scaffold_share_of_bpe=marked / len(bpe.frequencies),
        bpe=_figures(bpe),
        scaffold=_figures(scaffold),
    )


def _figures(vocabulary: Vocabulary) -> TextFigures:
    found = summarise(vocabulary)
    return TextFigures(found.vocabulary_size, found.bytes_per_token, found.entropy_bits, found.redundancy)


def _by_frequency(tokens: frozenset[str], vocabulary: Vocabulary) -> list[tuple[str, int]]:
    found = [(token, vocabulary.frequencies[token]) for token in tokens]
    return sorted(found, key=lambda entry: (-entry[1], entry[0]))


def _average(entries: Sequence[tuple[str, int]]) -> float | None:
    return sum(frequency for _, frequency in entries) / len(entries) if entries else None


def format_comparison(comparison: VocabularyComparison, form: str = "text", top: int | None = 20) -> str:
    """Return the result of ``compare_vocab`` as a table for reading (``text``, ``markdown``) or in full as ``json``.

    top: list only the ``top`` most frequent removed and new tokens, None for all. Raises UsageError for another form
    or a negative number.
    """
    check_choice("format", form, FORMATS)
    if top is not None and top < 0:
        raise UsageError(f"the number of tokens to show must not be negative, not {top}")
    if form == "json":
        return json.dumps(comparison.to_dict(), indent=2, ensure_ascii=False) + "\n"
    markdown = form == "markdown"
    removed, new, gain = comparison.removed, comparison.new, comparison.gain
    summary = [
        ["", "tokens", "average frequency"],
        ["removed", f"{len(removed):,}", _shown_average(comparison.average_frequency_removed)],
        ["new", f"{len(new):,}", _shown_average(comparison.average_frequency_new)],
        ["gain", "", _shown_gain(gain)],
    ]
    blocks = [format_table(summary, markdown)]
    blocks += _token_table(f"removed, only in {comparison.bpe}", removed, top, markdown)
    blocks += _token_table(f"new, only in {comparison.scaffold}", new, top, markdown)
    return "\n".join(blocks)


def format_sizes(rows: Sequence[SizeComparison], form: str = "text") -> str:
    """Return the result of ``compare_sizes`` as a table (``text``, ``markdown``) or as ``json``, a list of objects.

    Raises UsageError for another form.
    """
    check_choice("format", form, FORMATS)
    if form == "json":
        return json.dumps([row.to_dict() for row in rows], indent=2, ensure_ascii=False) + "\n"
    heading = ["N", "removed", "new", "average frequency, removed", "average frequency, new", "gain", "scaffold"]
    table = [heading]
    for row in rows:
        averages = _shown_average(row.average_frequency_removed), _shown_average(row.average_frequency_new)
        share = "" if row.scaffold_share_of_bpe is None else f"{row.scaffold_share_of_bpe:.2%}"
        table.append([f"{row.symbols:,}", f"{row.removed:,}", f"{row.new:,}", *averages, _shown_gain(row.gain), share])
    drawn = format_table(table, markdown=form == "markdown")
    if any(row.bpe for row in rows):
        drawn += "\n" + format_table(_figures_table(rows), markdown=form == "markdown")
    return drawn


def _figures_table(rows: Sequence[SizeComparison]) -> list[list[str]]:
    """Return a table of the figures of both vocabularies on the text, for each size that has them."""
    table = [["N", "|V|" + _BPE, "|V|" + _SCAFFOLD]]
    for name, _, _ in _FIGURES:
        table[0] += [name + _BPE, name + _SCAFFOLD]
    for row in rows:
        if row.bpe is not None and row.scaffold is not None:
            sizes = [f"{row.bpe.vocabulary_size:,}", f"{row.scaffold.vocabulary_size:,}"]
            values = [
                decimal(getattr(each, key), places) for _, key, places in _FIGURES for each in (row.bpe, row.scaffold)
            ]
            table.append([f"{row.symbols:,}", *sizes, *values])
    return table


def _shown_gain(gain: float | None) -> str:
    return "" if gain is None else f"{decimal(100 * gain, signed=True)}%"


def _shown_average(average: float | None) -> str:
    return "" if average is None else f"{average:,.2f}"


def _token_table(heading: str, tokens: Sequence[RemovedToken | NewToken], top: int | None, markdown: bool) -> list[str]:
    """Return a table of the first ``top`` tokens with the number of the others; empty if there are none to show."""
    listed = tokens[:top]
    if not listed:
        return []
    rows = [[heading, "frequency"]]
    rows += [[f"`{entry.token}`" if markdown else entry.token, f"{entry.frequency:,}"] for entry in listed]
    drawn = format_table(rows, markdown)
    if more := len(tokens) - len(listed):
        # In Markdown a line right below a table would be another row.
        drawn += ("\n" if markdown else "") + f"and {more:,} more\n"
    return [drawn]
