"""Detect text that is tokenised, or even segmented, already, before it is tokenised again."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from mt_scaffold.corpus.files import PathLike, open_input, without_compression
from mt_scaffold.corpus.input_checks import looks_segmented
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration.data import Tokenise

# The number of lines examined, and the share of them that must have an escape.
_LINES, _SHARE = 2000, 0.01
# A document on one line may be megabytes long: only the beginning of each line is examined, and lines are read up to a
# total of 16 MB.
_LONGEST, _MOST_BYTES = 1 << 14, 1 << 24
# Moses' escapes where Moses writes them: as words, or at one end of a word (l&apos; 's). Raw text from XML has others,
# such as &amp;, and has these within words.
_ESCAPED = re.compile(
    rb"(?:^| )(?:@-@|@/@|&(?:apos|quot|#124|#91|#93);)(?: |$)|(?:^| )&apos;(?:s|t|m|d|re|ve|ll)(?: |$)"
    rb"|[^ ]&apos;(?: |$)"
)
# Full stops and commas after a space, and those after a word: raw text in no language puts a space before them.
_APART, _ATTACHED = re.compile(rb"(?<= )[.,](?= |$)"), re.compile(rb"(?<=[^ .,])[.,](?= |$)")
_MARKS_APART, _ENOUGH_MARKS = 0.8, 10
# Two lines that open with a tag of a format of parallel text are enough; of any tag, every second line.
_KNOWN_TAG = re.compile(
    rb"\s*<(?:\?xml |!DOCTYPE |mteval|(?:srcset|refset|tstset|tmx|xliff|tuv?)[ >]|seg(?: id=|>)|(?:talkid|keywords)>)",
    re.IGNORECASE,
)
_TAG, _TAGGED = re.compile(rb"\s*</?[A-Za-z][\w:.-]*(?: [^<>]*)?/?>"), 0.5
_SUFFIXES = (".sgm", ".sgml", ".xml", ".tmx", ".xlf", ".xliff", ".html")


@dataclass(frozen=True)
class Preprocessed:
    """Evidence that a text is not raw. lines: the number examined. found: how many of these show it."""

    kind: Literal["tokenised", "segmented", "marked up"]
    lines: int
    found: int
    example: str

    def __str__(self) -> str:
        such = f" (such as '{self.example}')" if self.example else ""
        if self.kind == "marked up":
            return f"holds markup{such}, by {self.found:,} of its first {self.lines:,} lines, not a sentence per line"
        return f"looks {self.kind} already{such}, by {self.found:,} of its first {self.lines:,} lines"

    def allowed(self, choices: Tokenise) -> bool:
        """Return whether a configuration declares text of this kind."""
        return choices.none and self.kind == "tokenised"

    @property
    def way_on(self) -> str:
        """The remedy, as the end of an error message."""
        if self.kind == "marked up":
            return (
                "give the sentences alone: sacreBLEU's test set (data.archives), markup: seg or ted for a member of an "
                "archive, or text extracted from the tags; or write tokenise: {check: false} to keep tags as text"
            )
        if self.kind == "segmented":
            return (
                "give the text before segmentation, since every system segments it itself, or, if these are words, "
                "write tokenise: {check: false}, with none: true to keep them as they are"
            )
        return (
            "write tokenise: none (for one side: tokenise: {source: none}), give the raw text, or write "
            "tokenise: {check: false} to tokenise it anyway"
        )


def refuse_preprocessed(path: PathLike, choices: Tokenise) -> None:
    """Raise MTScaffoldError if raw text is tokenised or segmented already, unless ``choices`` allow that."""
    if choices.check and (found := looks_tokenised(path)) is not None and not found.allowed(choices):
        raise MTScaffoldError(f"{path}: {found}; {found.way_on}")


def looks_tokenised(path: PathLike) -> Preprocessed | None:
    """Return the evidence that a text (plain or ``.gz``, one sentence per line) is tokenised or segmented, or None.

    Only the first 2,000 lines, or 16 MB, are read. Segmented: subword-nmt's ``@@`` or SentencePiece's U+2581.
    Marked up: two lines open with tags of formats of parallel text, or half of the lines with any. Tokenised: Moses'
    escapes or ``@-@`` in one line of a hundred, or nearly every full stop and comma after a space.
    Raises MTScaffoldError if the file cannot be read.
    """
    with open_input(path) as stream:
        return lines_look_tokenised(stream)


def refuse_markup(lines: Sequence[str], name: str) -> None:
    """Raise MTScaffoldError if the lines of a text hold markup; warn of a suffix that says so."""
    found = lines_look_tokenised(line.encode("utf-8", "surrogateescape") for line in lines)
    if found is not None and found.kind == "marked up":
        raise MTScaffoldError(f"{name}: {found}; extract the text, or give --config with tokenise: {{check: false}}")
    for warning in suffix_of_markup(name):
        print(f"mt-scaffold: warning: {warning}", file=sys.stderr)


def suffix_of_markup(path: PathLike) -> list[str]:
    """Return a warning if the name of a text is that of a file with markup, otherwise none."""
    name = without_compression(path)
    return [f"{name}: marked up by its suffix, and read as a sentence per line"] if name.endswith(_SUFFIXES) else []


def lines_look_tokenised(lines: Iterable[bytes]) -> Preprocessed | None:
    """Do the same for an iterable of lines."""
    first, size = list[bytes](), 0
    for line in itertools.islice(lines, _LINES):
        first.append(line[:_LONGEST].strip())
        size += len(line)
        if size >= _MOST_BYTES:
            break
    tagged = [match for line in first if (match := _KNOWN_TAG.match(line))]
    if len(tagged) < 2:
        tagged = [match for line in first if (match := _TAG.match(line))]
        tagged = tagged if len(tagged) >= max(2, _TAGGED * len(first)) else []
    if tagged:
        return Preprocessed("marked up", len(first), len(tagged), tagged[0][0].decode("utf-8", "replace").strip())
    if (subword := looks_segmented(b"\n".join(first))) is not None:
        mark = subword.encode()[-2:] + b" " if subword.endswith("@@") else "\u2581".encode()
        return Preprocessed("segmented", len(first), sum(mark in line for line in first), subword)
    escaped = [match for line in first if (match := _ESCAPED.search(line))]
    if escaped and len(escaped) >= _SHARE * len(first):
        example = escaped[0][0].decode("utf-8", "replace").strip()
        return Preprocessed("tokenised", len(first), len(escaped), example)
    apart = [bool(_APART.search(line)) for line in first]
    marks = sum(len(_APART.findall(line)) for line in first)
    attached = sum(len(_ATTACHED.findall(line)) for line in first)
    if marks >= _ENOUGH_MARKS and marks >= _MARKS_APART * (marks + attached):
        return Preprocessed("tokenised", len(first), sum(apart), " .")
    return None
