"""Words + codes → how strings occur: as separate tokens, or inside longer ones (the paper's "zona" and "ing")."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mt_scaffold.analysis.stats import counts_for
from mt_scaffold.codes import Codes, CodesSource
from mt_scaffold.corpus.inputs import Lines, TextFile
from mt_scaffold.corpus.text import END_OF_WORD, bytes_to_notation
from mt_scaffold.errors import UsageError
from mt_scaffold.options import FORMATS, check_choice, check_top
from mt_scaffold.segment.frequencies import Vocabulary, use_of_vocabulary
from mt_scaffold.tables import format_table, token_cell

_SPACE = "Ġ"


@dataclass(frozen=True)
class TokenShare:
    """A token that contains a string.

    token: as in the codes file. frequency: in the segmented text. share: of the summed frequency of all tokens that
    contain the string. scaffold: whether the codes mark it as scaffold, so that segmented text never contains it.
    """

    token: str
    frequency: int
    share: float
    scaffold: bool = False


@dataclass(frozen=True)
class Containing:
    """How the occurrences of ``string`` divide among the tokens that contain it, with one codes file (``codes``).

    tokens: first the string as a separate token, inside words and at their ends, if it is in the codes; then the
        other tokens that occur, by frequency.
    """

    codes: str
    string: str
    tokens: list[TokenShare]

    def to_dict(self) -> dict[str, Any]:
        """Return the content under the keys of the JSON output."""
        return asdict(self)


def containing(
    codes: Sequence[CodesSource],
    strings: Sequence[str],
    infile: TextFile | None = None,
    num_workers: int | None = None,
    *,
    paths: Iterable[TextFile] | None = None,
    lines: Lines | None = None,
) -> list[Containing]:
    """Measure in which tokens strings occur: one result per string and codes file, a string's results together.

    codes: codes files, each as ``BPE`` takes it. infile: a path (``.gz`` too) or an open file, with words separated
    by spaces (not segmented). paths: several of them, read as one text. lines: an iterable of strings. Exactly one of
    the three is given. num_workers: threads, as in ``count_words``.

    A string that no token contains gives an empty list. Raises MTScaffoldError if a file is malformed, missing or
    not UTF-8, or the text has no words; UsageError for none or several inputs, and for a string that no token can
    contain: an empty one, or one with a space.
    """
    read = [Codes.of(source) for source in codes]  # a missing file is reported before the long count
    for string in strings:
        if not string or (" " in string and any(source.header.end_of_word for source in read)):
            raise UsageError(f"'{string}' cannot be part of a token: give strings without spaces, not empty ones")
    counts = counts_for(read, infile, num_workers, paths, lines)
    measured = [use_of_vocabulary(source, counted.words) for source, counted in zip(read, counts, strict=True)]
    return [_containing(string, vocabulary) for string in strings for vocabulary in measured]


def _containing(string: str, vocabulary: Vocabulary) -> Containing:
    header = vocabulary.codes.header
    part = bytes_to_notation(string.encode("utf-8", "surrogateescape")) if header.bytes else string
    own_scaffold = _own(part, header.end_of_word) & vocabulary.scaffold
    rows = tokens_with(part, vocabulary.frequencies | dict.fromkeys(own_scaffold, 0), None, header.end_of_word)
    return Containing(vocabulary.codes.name, string, [TokenShare(*row, row[0] in own_scaffold) for row in rows])


def _own(part: str, end_of_word: bool) -> set[str]:
    """Return the tokens that are exactly this string: inside a word and at its end, or without and with a space."""
    return {part, part + END_OF_WORD if end_of_word else _SPACE + part}


def tokens_with(
    part: str, frequencies: Mapping[str, int], top: int | None = 10, end_of_word: bool = True
) -> list[tuple[str, int, float]]:
    """Return the tokens that contain ``part``: token, frequency, share of all their frequencies; the ``top`` first.

    frequencies: token as in a codes file → frequency (``Vocabulary.frequencies``). end_of_word: whether tokens carry
    ``</w>``. The token ``part`` itself, inside words and at their ends, or without and with a space before it,
    comes first; the others follow by frequency. top: None for all. The list is empty if none of them occurs.
    """
    marker = END_OF_WORD if end_of_word else ""
    found = {token: count for token, count in frequencies.items() if part in token.removesuffix(marker)}
    total = sum(found.values())
    if not total:
        return []
    own = _own(part, end_of_word)
    ordered = sorted(found.items(), key=lambda entry: (entry[0] not in own, -entry[1], entry[0]))
    return [(token, count, count / total) for token, count in ordered[:top] if count or token in own]


def format_containing(found: Sequence[Containing], form: str = "text", top: int | None = 20) -> str:
    """Return the result of ``containing`` as tables for reading (``text``, ``markdown``) or in full as ``json``.

    top: show only the ``top`` first tokens of each string, None for all. Raises UsageError for another form or a
    negative number.
    """
    check_choice("format", form, FORMATS)
    check_top(top)
    if form == "json":
        return json.dumps([entry.to_dict() for entry in found], indent=2, ensure_ascii=False) + "\n"
    return "\n".join(_table(entry, top, form == "markdown") for entry in found)


def _table(entry: Containing, top: int | None, markdown: bool) -> str:
    heading = f"{token_cell(entry.string, markdown)} in {entry.codes}"
    if not entry.tokens:
        return f"{heading}: no token that occurs in the text contains it\n"
    listed = entry.tokens[:top]
    rows = [[heading, "frequency", "share"]]
    for row in listed:
        mark = " (scaffold)" if row.scaffold else ""
        rows.append([token_cell(row.token, markdown) + mark, f"{row.frequency:,}", f"{row.share:.2%}"])
    drawn = format_table(rows, markdown)
    if others := entry.tokens[len(listed) :]:
        # In Markdown a line right below a table would be another row.
        drawn += "\n" if markdown else ""
        drawn += f"and {len(others):,} more, with {sum(row.share for row in others):.2%}\n"
    return drawn
