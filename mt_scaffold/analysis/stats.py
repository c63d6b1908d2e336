"""Words + codes → how a vocabulary segments a text: compression, entropy, redundancy, token frequencies.

docs/statistics.md gives the formulas and their sources. The text is read once, for all codes files; each word type is
segmented once per codes file.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mt_scaffold import _core
from mt_scaffold.codes import Codes, CodesSource
from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.corpus.inputs import Lines, TextFile, text_sources
from mt_scaffold.errors import UsageError
from mt_scaffold.options import FORMATS, check_choice
from mt_scaffold.segment.frequencies import Vocabulary, use_of_vocabulary
from mt_scaffold.tables import format_table

# The ranks of the vocabulary whose frequencies are given, as far as it reaches.
RANKS = (1, 10, 100, 1000, 2000, 5000, 10000, 20000, 50000, 100000)
RARE = 100
# The powers (α) of Rényi efficiency: the one whose correlation with BLEU is highest in Zouhar et al. 2023, and the
# default of their program, tokenization-scorer.
RENYI_POWERS = (2.5, 3.0)


def counts_for(
    codes: Sequence[Codes],
    infile: TextFile | None,
    num_workers: int | None,
    paths: Iterable[TextFile] | None,
    lines: Lines | None,
) -> dict[CodesHeader, _core.WordCounts]:
    """Count the words of a text for each kind of codes: once where all of them cut it into the same words.

    The rest is as in ``count_words``. Raises UsageError where the text would have to be read twice and cannot be.
    """
    headers = {source.header.of_words: None for source in codes}
    sources = text_sources(infile, paths, lines)
    if len(headers) > 1 and not all(isinstance(source, str | os.PathLike) for source in sources):
        raise UsageError("codes of different pre-tokenisers each read the text again; give it as files (--input)")
    return {
        header: count_words(
            paths=sources,
            num_workers=num_workers,
            pretokenise=header.pretokeniser,
            split_digits=header.split_digits,
            any_bytes=header.bytes,
        )
        for header in headers
    }


def entropy(frequencies: Iterable[int]) -> float:
    """Return Shannon's entropy in bits, H = -Σ p log2 p, where p is the relative frequency; zeros add nothing."""
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


def redundancy(entropy_bits: float, vocabulary_size: int) -> float:
    """Return 1 - H / log2 |V|: how far the entropy is below the maximum for a vocabulary of this size."""
    return 1 - entropy_bits / math.log2(vocabulary_size) if vocabulary_size > 1 else 0.0


@dataclass(frozen=True)
class Summary:
    """The figures of one codes file on a text; docs/statistics.md explains each, under the same name.

    merges, scaffold_tokens, scaffold_share: None for what has no merges, as Unigram models have none.
    renyi_efficiency: power → efficiency.
    frequency_at_rank: rank, from 1 → frequency of the token at that rank of the vocabulary.
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

    def to_dict(self) -> dict[str, Any]:
        """Return the figures under the keys of the JSON that ``stats`` prints."""
        return asdict(self) | {
            "frequency_at_rank": {str(rank): count for rank, count in self.frequency_at_rank.items()},
            "renyi_efficiency": {str(power): value for power, value in self.renyi_efficiency.items()},
        }


def summarise(vocabulary: Vocabulary) -> Summary:
    """Return the figures of one model, from the frequencies of its vocabulary."""
    ordered = vocabulary.sorted_frequencies
    tokens, size = sum(ordered), len(ordered)
    bits = entropy(ordered)
    used = sum(1 for frequency in ordered if frequency)
    share = len(vocabulary.scaffold) / len(vocabulary.normal) if vocabulary.normal else 0.0
    return Summary(
        codes=vocabulary.codes.name,
        lines=vocabulary.lines,
        words=vocabulary.words,
        bytes=vocabulary.text_bytes,
        merges=len(vocabulary.codes.merges) if vocabulary.has_merges else None,
        tokens=tokens,
        types=used,
        vocabulary_size=size,
        normal_tokens=len(vocabulary.normal),
        scaffold_tokens=len(vocabulary.scaffold) if vocabulary.has_merges else None,
        scaffold_share=share if vocabulary.has_merges else None,
        bytes_per_token=vocabulary.text_bytes / tokens,
        tokens_per_word=tokens / vocabulary.words,
        entropy_bits=bits,
        redundancy=redundancy(bits, size),
        frequency_0=size - used,
        frequency_under_100=sum(1 for frequency in ordered if frequency < RARE),
        frequency_at_rank={rank: ordered[rank - 1] for rank in RANKS if rank <= size},
        renyi_efficiency={power: renyi_efficiency(ordered, power) for power in RENYI_POWERS},
    )


def stats(
    codes: Sequence[CodesSource],
    infile: TextFile | None = None,
    num_workers: int | None = None,
    *,
    paths: Iterable[TextFile] | None = None,
    lines: Lines | None = None,
    inference: str = "merges",
) -> list[Summary]:
    """Measure codes (BPE or Scaffold-BPE) on a text: one summary per codes file.

    codes: codes files, each as ``BPE`` takes it; their first lines say how the text is read. infile: a path (``.gz``
    too) or an open file, with words separated by spaces or a document per line (not segmented). paths: several of
    them, read as one text. lines: an iterable of strings. Exactly one of the three is given. num_workers: threads, as
    in ``count_words``. inference: as for ``BPE``.

    Raises MTScaffoldError where a file is malformed, missing or not UTF-8, or the text has no words; UsageError for
    none or several inputs.
    """
    read = [Codes.of(source) for source in codes]  # a missing file is reported before the long count
    counts = counts_for(read, infile, num_workers, paths, lines)
    uses = [use_of_vocabulary(source, counts[source.header.of_words], inference) for source in read]
    return [summarise(use) for use in uses]


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
}


def table(summaries: Sequence[Summary]) -> list[list[str]]:
    """Return the figures as rows of text; the first row is the heading, the first column the name of the figure."""
    rows = [["", *(summary.codes for summary in summaries)]]
    for key, label in _LABELS.items():
        rows.append([label, *(_shown(key, getattr(summary, key)) for summary in summaries)])
        if key == "redundancy":
            efficiencies = [summary.renyi_efficiency for summary in summaries]
            rows += _rows_of("Rényi efficiency, power {:g}", efficiencies, "{:.4f}")
    rows += _rows_of("frequency at rank {:,}", [summary.frequency_at_rank for summary in summaries], "{:,}")
    return rows


def _rows_of(label: str, columns: Sequence[Mapping[Any, float]], shown: str) -> list[list[str]]:
    """One row per key that any column has; blank where a column lacks it."""
    keys = sorted({key for column in columns for key in column})
    return [
        [label.format(key), *(shown.format(column[key]) if key in column else "" for column in columns)] for key in keys
    ]


def _shown(key: str, value: float | None) -> str:
    if value is None:
        return "–"
    if key == "scaffold_share":
        return f"{value:.2%}"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def format_stats(summaries: Sequence[Summary], form: str = "text") -> str:
    """Return what ``stats`` gives as a table (``text``, ``markdown``) or as ``json``; UsageError for another form."""
    check_choice("format", form, FORMATS)
    if form == "json":
        return json.dumps([summary.to_dict() for summary in summaries], indent=2, ensure_ascii=False) + "\n"
    return format_table(table(summaries), markdown=form == "markdown")
