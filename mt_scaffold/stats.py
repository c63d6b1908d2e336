"""Words + codes → what a vocabulary does to a text: compression, entropy, redundancy, token frequencies.

The formulas and their sources stand in docs/statistics.md. The text is read once, its words are counted, and each
word type is segmented once, whatever the number of codes files.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mt_scaffold import _core
from mt_scaffold.apply import BPE
from mt_scaffold.codes import Codes, CodesSource
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.inputs import Lines, TextFile
from mt_scaffold.learn import count_words
from mt_scaffold.options import FORMATS
from mt_scaffold.text import END_OF_WORD

# Frequencies are given at these ranks of the vocabulary, as far as it goes.
RANKS = (1, 10, 100, 1000, 2000, 5000, 10000, 20000, 50000, 100000)
RARE = 100

# No word can hold it, so that a subword inside a word is told from one at the end.
_INSIDE = "\n"


@dataclass(frozen=True)
class Vocabulary:
    """What a codes file makes of a text. Tokens are written as in the codes file: ``zona`` inside, ``zona</w>`` at
    the end of a word.

    codes: what was measured.
    frequencies: every token of the vocabulary V → how often it stands in the segmented text, 0 included; V holds the
        normal merged tokens, and the base symbols that stand in the merges or in the text.
    normal, scaffold: the merged tokens that are normal (part of V) and scaffold (not part of it).
    words, lines, text_bytes: words and lines with words in the text; its UTF-8 bytes with one space between words.
    """

    codes: Codes
    frequencies: dict[str, int]
    normal: frozenset[str]
    scaffold: frozenset[str]
    words: int
    lines: int
    text_bytes: int

    @property
    def sorted_frequencies(self) -> list[int]:
        """The frequencies of the whole vocabulary, the highest first."""
        return sorted(self.frequencies.values(), reverse=True)


def use_of_vocabulary(codes: CodesSource, counts: _core.WordCounts) -> Vocabulary:
    """Measure how often counted words (``count_words``) use each token of ``codes``.

    Raises MTScaffoldError where the codes are malformed, or no words were counted.
    """
    if len(counts) == 0:
        raise MTScaffoldError("there are no words in the input, so there is nothing to measure")
    codes = Codes.of(codes)
    merges = codes.merges
    subwords = BPE(codes, separator=_INSIDE).count_subwords(counts).items()
    frequencies = Counter({_token(surface): count for surface, count in subwords})

    marked = {merge.token: merge.scaffold for merge in merges}
    base = _base_symbols(symbol for merge in merges for symbol in (merge.left, merge.right))
    base |= _base_symbols_of_tokens(frequencies)
    normal = frozenset(token for token, scaffold in marked.items() if not scaffold and token not in base)
    for token in base | normal:
        frequencies.setdefault(token, 0)
    words, lines = counts.total(), counts.lines()
    return Vocabulary(
        codes=codes,
        frequencies=dict(frequencies),
        normal=normal,
        scaffold=frozenset(token for token, scaffold in marked.items() if scaffold),
        words=words,
        lines=lines,
        text_bytes=counts.word_bytes() + words - lines,
    )


def _token(surface: str) -> str:
    return surface[:-1] if surface.endswith(_INSIDE) else surface + END_OF_WORD


def _base_symbols(symbols: Iterable[str]) -> set[str]:
    return {symbol for symbol in symbols if len(symbol.removesuffix(END_OF_WORD)) == 1}


def _base_symbols_of_tokens(tokens: Iterable[str]) -> set[str]:
    """The characters, in their position, of the words that these tokens make up."""
    base: set[str] = set()
    for token in tokens:
        characters = token.removesuffix(END_OF_WORD)
        if len(characters) < len(token):
            base.add(characters[-1] + END_OF_WORD)
            characters = characters[:-1]
        base.update(characters)
    return base


def entropy(frequencies: Iterable[int]) -> float:
    """Shannon's entropy in bits, H = -Σ p log2 p, with relative frequencies for p; what never occurs adds nothing."""
    counts = [count for count in frequencies if count]
    total = sum(counts)
    # max: the entropy of a single type is 0, not -0.
    return max(0.0, -math.fsum(count / total * math.log2(count / total) for count in counts)) if total else 0.0


def redundancy(entropy_bits: float, vocabulary_size: int) -> float:
    """1 - H / log2 |V|: how far the entropy is below the highest that a vocabulary of this size can have."""
    return 1 - entropy_bits / math.log2(vocabulary_size) if vocabulary_size > 1 else 0.0


def summarise(vocabulary: Vocabulary) -> dict[str, Any]:
    """The figures of one codes file, under the keys that docs/statistics.md explains; JSON can hold them."""
    ordered = vocabulary.sorted_frequencies
    tokens, size = sum(ordered), len(ordered)
    bits = entropy(ordered)
    used = sum(1 for frequency in ordered if frequency)
    return {
        "codes": vocabulary.codes.name,
        "lines": vocabulary.lines,
        "words": vocabulary.words,
        "bytes": vocabulary.text_bytes,
        "merges": len(vocabulary.codes.merges),
        "tokens": tokens,
        "types": used,
        "vocabulary_size": size,
        "normal_tokens": len(vocabulary.normal),
        "scaffold_tokens": len(vocabulary.scaffold),
        "scaffold_share": len(vocabulary.scaffold) / len(vocabulary.normal) if vocabulary.normal else 0.0,
        "bytes_per_token": vocabulary.text_bytes / tokens,
        "tokens_per_word": tokens / vocabulary.words,
        "entropy_bits": bits,
        "redundancy": redundancy(bits, size),
        "frequency_0": size - used,
        "frequency_under_100": sum(1 for frequency in ordered if frequency < RARE),
        "frequency_at_rank": {str(rank): ordered[rank - 1] for rank in RANKS if rank <= size},
    }


def stats(
    codes: Sequence[CodesSource],
    infile: TextFile | None = None,
    num_workers: int = 1,
    *,
    paths: Iterable[TextFile] | None = None,
    lines: Lines | None = None,
) -> list[dict[str, Any]]:
    """Measure each codes file (BPE or Scaffold-BPE) on a text: one dictionary a file, as ``summarise`` gives it.

    inputs: words separated by spaces (not segmented): one text, or a list of paths that are read as one.
    Raises MTScaffoldError where a file is malformed, missing or not UTF-8, or the text has no words.
    """
    read = [Codes.of(source) for source in codes]  # a missing file is reported before the long count
    counts = count_words(infile, num_workers=num_workers, paths=paths, lines=lines)
    return [summarise(use_of_vocabulary(source, counts)) for source in read]


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


def table(summaries: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The figures as rows of text: the first row is the heading, the first column the name of the figure."""
    rows = [["", *(str(summary["codes"]) for summary in summaries)]]
    for key, label in _LABELS.items():
        rows.append([label, *(_show(key, summary[key]) for summary in summaries)])
    ranks = sorted({int(rank) for summary in summaries for rank in summary["frequency_at_rank"]})
    for rank in ranks:
        found = [summary["frequency_at_rank"].get(str(rank)) for summary in summaries]
        rows.append([f"frequency at rank {rank:,}", *("" if value is None else f"{value:,}" for value in found)])
    return rows


def _show(key: str, value: float) -> str:
    if key == "scaffold_share":
        return f"{value:.2%}"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def format_table(rows: Sequence[Sequence[str]], markdown: bool = False) -> str:
    """Rows of text as a table: the first column to the left, figures to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for number, row in enumerate(rows):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append(f"| {' | '.join(cells)} |" if markdown else "  ".join(cells).rstrip())
        if number == 0:
            rule = ["-" * widths[0], *("-" * (width - 1) + (":" if markdown else "-") for width in widths[1:])]
            lines.append(f"| {' | '.join(rule)} |" if markdown else "  ".join(rule))
    return "\n".join(lines) + "\n"


def format_stats(summaries: Sequence[Mapping[str, Any]], form: str = "text") -> str:
    """What ``stats`` gives as a table (``text``, ``markdown``) or as ``json``; UsageError for another form."""
    if form not in FORMATS:
        raise UsageError(f"there is no format '{form}'; choose one of {', '.join(FORMATS)}")
    if form == "json":
        return json.dumps(summaries, indent=2, ensure_ascii=False) + "\n"
    return format_table(table(summaries), markdown=form == "markdown")
