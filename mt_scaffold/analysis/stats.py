"""Words + codes → how a vocabulary segments a text: compression, entropy, redundancy, token frequencies.

docs/statistics.md gives the formulas and their sources. The text is read once, for all codes files; each word type is
segmented once per codes file.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from mt_scaffold import _core
from mt_scaffold.codes import Codes, CodesSource
from mt_scaffold.corpus.count import count_text
from mt_scaffold.corpus.files import PathLike, open_input, shown
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.corpus.inputs import Lines, TextFile, text_sources
from mt_scaffold.corpus.text import END_OF_WORD, notation_to_bytes
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.options import FORMATS, check_choice
from mt_scaffold.segment.frequencies import Vocabulary, use_of_vocabulary
from mt_scaffold.segment.numbering import Spaces, numbering_of
from mt_scaffold.segment.words import Prepared, spaces_of
from mt_scaffold.tables import decimal, format_table

# The ranks whose frequencies are reported, up to the size of the vocabulary.
RANKS = (1, 10, 100, 1000, 2000, 5000, 10000, 20000, 50000, 100000)
RARE = 100
# The powers (α) of Rényi efficiency: that with the highest correlation with BLEU in Zouhar et al. 2023, and the default
# of their program, tokenization-scorer.
RENYI_POWERS = (2.5, 3.0)


class Counted(NamedTuple):
    """The words of a text as the codes cut it, and how many spaces they add before its lines."""

    words: _core.WordCounts
    added_spaces: int = 0


def counts_for(
    codes: Sequence[Codes],
    infile: TextFile | None,
    num_workers: int | None,
    paths: Iterable[TextFile] | None,
    lines: Lines | None,
) -> list[Counted]:
    """Return the words of a text for each of several codes, counting once for all codes that cut it in the same way.

    Imported codes get each line as their program prepares it (``Spaces``). The rest is as in ``count_words``. Raises
    UsageError if the text would have to be read twice and cannot be.
    """
    kinds = [(source.header.of_words, spaces_of(source)) for source in codes]
    sources = text_sources(infile, paths, lines)
    if len(set(kinds)) > 1 and not all(isinstance(source, str | os.PathLike) for source in sources):
        raise UsageError("codes of different pre-tokenisers each read the text again; give it as files (--input)")
    counted: dict[tuple[CodesHeader, Spaces | None], Counted] = {}
    for header, spaces in dict.fromkeys(kinds):
        if spaces is None:
            counted[header, spaces] = Counted(count_text(sources, header, num_workers=num_workers))
        else:
            text = Prepared(sources, spaces)
            words = count_text(iter(text), header, num_workers=num_workers)
            counted[header, spaces] = Counted(words, text.added)
    return [counted[kind] for kind in kinds]


def entropy(frequencies: Iterable[int]) -> float:
    """Return Shannon's entropy in bits, H = -Σ p log2 p, with p the relative frequency; zeros add nothing."""
    counts = [count for count in frequencies if count]
    total = sum(counts)
    # max: the entropy of a single type is 0, not -0.
    return max(0.0, -math.fsum(count / total * math.log2(count / total) for count in counts)) if total else 0.0


def renyi_efficiency(frequencies: Iterable[int], power: float) -> float:
    """Return H_α / log2 n: Rényi's entropy of order α = ``power`` over that of n equally frequent types.

    H_α = log2(Σ p^α) / (1 - α), where p is the relative frequency; for α = 1, Shannon's entropy. As in
    tokenization-scorer, n counts the types that occur, not the whole vocabulary, so zeros change nothing; it is 1 for
    a single type, and 0 for none.

    Source: Zouhar et al. 2023, "Tokenization and the Noiseless Channel". Raises UsageError unless ``power`` > 0.
    """
    if not power > 0:
        raise UsageError(f"the power of Rényi's entropy must be positive, not {power}")
    counts = [count for count in frequencies if count]
    if len(counts) < 2:
        return float(len(counts))
    total = sum(counts)
    if power == 1:
        bits = entropy(counts)
    else:
        bits = math.log2(math.fsum((count / total) ** power for count in counts)) / (1 - power)
    return bits / math.log2(len(counts))


def gini(costs: Sequence[float]) -> float:
    """Return the Gini coefficient of languages' costs, Σ|c_i - c_j| / (2 n² μ): 0 if all cost the same.

    costs: the subwords of each language for the same content. Source: Foroutan et al. 2025, "Parity-Aware Byte-Pair
    Encoding"; the formula is that of their evaluation program, tokenizer-analysis-suite. Raises UsageError for fewer
    than two languages.
    """
    if len(costs) < 2:
        raise UsageError("a Gini coefficient between languages needs two of them")
    differences = math.fsum(abs(one - other) for one in costs for other in costs)
    return differences / (2 * len(costs) * math.fsum(costs))


def redundancy(entropy_bits: float, vocabulary_size: int) -> float:
    """Return 1 - H / log2 |V|: how far the entropy is below the maximum for a vocabulary of this size."""
    return 1 - entropy_bits / math.log2(vocabulary_size) if vocabulary_size > 1 else 0.0


@dataclass(frozen=True)
class Summary:
    """The figures of one codes file on a text; docs/statistics.md explains each, under the same name.

    merges, scaffold_tokens, scaffold_share: None for a model without merges (Unigram).
    renyi_efficiency: power → efficiency.
    frequency_at_rank: rank, from 1 → frequency of the token at that rank of the vocabulary.
    not_utf8, not_utf8_share: None for codes of characters.
    gini: None if not requested.
    """

    codes: str
    lines: int
    words: int
    bytes: int
    merges: int | None
    tokens: int
    types: int
    vocabulary_size: int
    normal_tokens: int
    scaffold_tokens: int | None
    scaffold_share: float | None
    bytes_per_token: float
    tokens_per_word: float
    entropy_bits: float
    redundancy: float
    frequency_0: int
    frequency_under_100: int
    frequency_at_rank: dict[int, int]
    renyi_efficiency: dict[float, float]
    not_utf8: int | None = None
    not_utf8_share: float | None = None
    gini: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures under the keys of the JSON that ``stats`` prints."""
        return asdict(self) | {
            "frequency_at_rank": {str(rank): count for rank, count in self.frequency_at_rank.items()},
            "renyi_efficiency": {str(power): value for power, value in self.renyi_efficiency.items()},
        }


def summarise(vocabulary: Vocabulary) -> Summary:
    """Return the figures of one model, from the frequencies of its vocabulary."""
    ordered = vocabulary.sorted_frequencies
    size, tokens, bits = len(ordered), sum(ordered), entropy(ordered)
    types = sum(1 for frequency in ordered if frequency)
    share = len(vocabulary.scaffold) / len(vocabulary.normal) if vocabulary.normal else 0.0
    incomplete = incomplete_tokens(vocabulary)
    return Summary(
        codes=vocabulary.codes.name,
        lines=vocabulary.lines,
        words=vocabulary.words,
        bytes=vocabulary.text_bytes,
        merges=len(vocabulary.codes.merges) if vocabulary.has_merges else None,
        tokens=tokens,
        types=types,
        vocabulary_size=size,
        normal_tokens=len(vocabulary.normal),
        scaffold_tokens=len(vocabulary.scaffold) if vocabulary.has_merges else None,
        scaffold_share=share if vocabulary.has_merges else None,
        bytes_per_token=vocabulary.text_bytes / tokens,
        tokens_per_word=tokens / vocabulary.words,
        entropy_bits=bits,
        redundancy=redundancy(bits, size),
        frequency_0=size - types,
        frequency_under_100=sum(1 for frequency in ordered if frequency < RARE),
        frequency_at_rank={rank: ordered[rank - 1] for rank in RANKS if rank <= len(ordered)},
        renyi_efficiency={power: renyi_efficiency(ordered, power) for power in RENYI_POWERS},
        not_utf8=None if incomplete is None else len(incomplete),
        not_utf8_share=None
        if incomplete is None
        else sum(vocabulary.frequencies[token] for token in incomplete) / tokens,
    )


def incomplete_tokens(vocabulary: Vocabulary) -> list[str] | None:
    """Return the tokens that are not valid UTF-8 by themselves; None for codes of characters, which have none.

    Source: the UTF-8 token completeness rate of tokenizer-analysis-suite, of which this is the complement.
    """
    header = vocabulary.codes.header
    if not header.bytes:
        return None
    numbering = None if header.end_of_word else numbering_of(vocabulary.codes)
    unknown = None if numbering is None or numbering.unknown is None else numbering.unknown_token
    return [token for token in vocabulary.frequencies if token != unknown and not is_utf8(token, header.end_of_word)]


def is_utf8(token: str, end_of_word: bool = False) -> bool:
    """Return whether a token of bytes in GPT-2's notation is valid UTF-8; end_of_word: ``</w>`` ends words."""
    try:
        notation_to_bytes(token.removesuffix(END_OF_WORD) if end_of_word else token).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def stats(
    codes: Sequence[CodesSource],
    infile: TextFile | None = None,
    num_workers: int | None = None,
    *,
    paths: Iterable[TextFile] | None = None,
    lines: Lines | None = None,
    languages: Sequence[PathLike] | None = None,
) -> list[Summary]:
    """Measure codes, learned or imported, on a text: one summary per codes file.

    codes: codes files, each as ``BPE`` takes it; their headers say how the text is cut into words. infile: a path
    (``.gz`` too) or an open file, with words separated by spaces or a document per line (not segmented). paths: several
    of them, read as one text. lines: an iterable of strings. Exactly one of the three is given, or ``languages``, which
    are then the text. num_workers: threads, as in ``count_words``.
    languages: parallel texts, a file per language: adds ``gini``.

    Raises MTScaffoldError if a file is malformed, missing or not UTF-8, the text has no words, or the files of
    languages differ in their numbers of lines; UsageError for none or several inputs, and for
    fewer than two languages.
    """
    read = [Codes.of(source) for source in codes]  # a missing file is reported before the long count
    if languages is not None and len(languages) < 2:
        raise UsageError("a Gini coefficient between languages needs two of them")
    if languages is not None and infile is None and paths is None and lines is None:
        paths = list(languages)
    counts = counts_for(read, infile, num_workers, paths, lines)
    uses = [
        use_of_vocabulary(source, counted.words, counted.added_spaces)
        for source, counted in zip(read, counts, strict=True)
    ]
    found = [summarise(use) for use in uses]
    if languages is not None:
        found = [
            replace(each, gini=gini(costs))
            for each, costs in zip(found, _costs(read, languages, num_workers), strict=True)
        ]
    return found


def _costs(codes: Sequence[Codes], languages: Sequence[PathLike], num_workers: int | None) -> list[list[float]]:
    """Return the number of subwords of each language, for each of several codes."""
    sizes = {}
    for path in languages:
        with open_input(path) as stream:
            sizes[path] = sum(1 for _ in stream)
    (first, size), *others = sizes.items()
    for path, other in others:
        if other != size:
            raise MTScaffoldError(
                f"{shown(path)}: {other:,} lines, but {shown(first)} has {size:,}; the languages of a parallel text "
                "have the same number"
            )
    costs: list[list[float]] = [[] for _ in codes]
    for path in languages:
        for source, counted, row in zip(codes, counts_for(codes, path, num_workers, None, None), costs, strict=True):
            row.append(sum(use_of_vocabulary(source, counted.words).frequencies.values()))
    return costs


_LABELS = {
    "lines": "lines with words",
    "words": "words",
    "bytes": "bytes",
    "merges": "merges",
    "tokens": "tokens",
    "types": "types used",
    "vocabulary_size": "vocabulary |V|",
    "normal_tokens": "normal merged tokens",
    "scaffold_tokens": "scaffold tokens",
    "scaffold_share": "scaffold per normal token",
    "bytes_per_token": "bytes per token",
    "tokens_per_word": "tokens per word",
    "entropy_bits": "entropy H, bits",
    "redundancy": "redundancy",
    "frequency_0": "tokens of frequency 0",
    "frequency_under_100": "tokens under 100",
    "not_utf8": "tokens that are not UTF-8",
    "not_utf8_share": "their share of the text",
    "gini": "Gini of languages",
}
# Left out if no codes have them.
_OPTIONAL = ("not_utf8", "not_utf8_share", "gini")
_PERCENT = ("scaffold_share", "not_utf8_share")


def table(summaries: Sequence[Summary]) -> list[list[str]]:
    """Return the figures as rows of text; the first row is the heading, the first column the name of the figure."""
    rows = [["", *(summary.codes for summary in summaries)]]
    for key, label in _LABELS.items():
        if key in _OPTIONAL and all(getattr(summary, key) is None for summary in summaries):
            continue
        rows.append([label, *(_shown(key, getattr(summary, key)) for summary in summaries)])
        if key == "redundancy":
            efficiencies = [summary.renyi_efficiency for summary in summaries]
            rows += _rows_of("Rényi efficiency, power {:g}", efficiencies, "{:.4f}")
    rows += _rows_of("frequency at rank {:,}", [summary.frequency_at_rank for summary in summaries], "{:,}")
    return rows


def _rows_of(label: str, columns: Sequence[Mapping[Any, float]], shown: str) -> list[list[str]]:
    """Return one row per key of any column, with blanks in the columns without it."""
    keys = sorted({key for column in columns for key in column})
    return [
        [label.format(key), *(shown.format(column[key]) if key in column else "" for column in columns)] for key in keys
    ]


def _shown(key: str, value: float | None) -> str:
    if value is None:
        return "–"
    if key in _PERCENT:
        return f"{value:.2%}"
    return f"{value:,}" if isinstance(value, int) else decimal(value, 4)


def format_stats(summaries: Sequence[Summary], form: str = "text") -> str:
    """Return figures as a table (``text``, ``markdown``) or as ``json``. Raises UsageError for another form."""
    check_choice("format", form, FORMATS)
    if form == "json":
        return json.dumps([summary.to_dict() for summary in summaries], indent=2, ensure_ascii=False) + "\n"
    return format_table(table(summaries), markdown=form == "markdown")
