"""Extracted text → segments: pairs, and documents of one language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from . import cleaning, formats
from .mirror import Package

# Kinds of pairs; the first that has a pair keeps it.
KINDS = ("help", "games", "descriptions", "messages")
# Shorter paragraphs (headings, buttons, names) are not text for a language model.
LEAST_WORDS = 3


@dataclass(frozen=True)
class Pair:
    """A segment and its translation, the kind of text, and its source package."""

    kind: str
    package: str
    source: str
    target: str


@dataclass(frozen=True)
class Document:
    """Paragraphs of one language, in order: a page, a catalogue's messages, or a package's description."""

    kind: str
    package: str
    name: str
    paragraphs: tuple[str, ...]


@dataclass
class Dropped:
    """Segments and files that were left out, by reason."""

    segments: Counter[str] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Extracted:
    """All extracted text: packages with their records (archives.extract), and the descriptions of the index."""

    packages: Sequence[tuple[Package, Sequence[dict[str, Any]]]]
    descriptions: Sequence[dict[str, Any]]


def family(source: str) -> str:
    """Return a source package's name without its version, which gcc-12 and gcc-13 share.

    >>> family("gcc-12"), family("wesnoth-1.16"), family("gtk+3.0"), family("x264")
    ('gcc', 'wesnoth', 'gtk+', 'x264')
    """
    return re.sub(r"(?:(?<=\W)|-)\d+(?:\.\d+)*$|(?<=\D)\d+(?:\.\d+)+$", "", source).rstrip("-") or source


def kind_of(package: Package) -> str:
    """Return the kind of a catalogue's text: a game's, with its dialogues, or another program's messages."""
    return "games" if package.section == "games" else "messages"


def _raw_files(
    extracted: Extracted, language: str, dropped: Dropped
) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield (kind, source package, uncleaned pairs) of each file that has a translation into ``language``."""
    english: dict[str, list[formats.Block]] = {}
    for _, records in extracted.packages:
        for record in records:
            if record["language"] == "en" and "blocks" in record:
                english.setdefault(record["document"], [(t, i, x) for t, i, x in record["blocks"]])
    for package, records in extracted.packages:
        for record in records:
            if record["language"] != language:
                continue
            if "error" in record:
                dropped.files["cannot be read"] += 1
            elif "pairs" in record:
                yield kind_of(package), package.source, [(one, other) for one, other in record["pairs"]]
            elif record["document"] in english:
                pairs = formats.aligned(english[record["document"]], [(t, i, x) for t, i, x in record["blocks"]])
                if not pairs:
                    dropped.files["another structure than the English one"] += 1
                yield "help", package.source, pairs
    for entry in extracted.descriptions:
        if language in entry["texts"] and "en" in entry["texts"]:
            blocks, translated = (formats.description(entry["texts"][each]) for each in ("en", language))
            if [block[0] for block in blocks] != [block[0] for block in translated]:
                dropped.files["a description in other paragraphs than the English one"] += 1
                blocks, translated = blocks[:1], translated[:1]
            pairs = [(one[2], other[2]) for one, other in zip(blocks, translated, strict=True)]
            # <trans> marks a paragraph that is not translated yet.
            yield "descriptions", entry["source"], [pair for pair in pairs if "<trans>" not in pair[1]]


@lru_cache(cleaning.REMEMBERED)
def clean_message(source: str, target: str) -> tuple[tuple[str, str] | str, ...]:
    """Return the segments of a message with their translations, or reasons for leaving them out."""
    if cleaning.laid_out(source) or cleaning.laid_out(target):
        return ("set in columns",)
    found: list[tuple[str, str] | str] = []
    for one, other in cleaning.paragraphs(source, target):
        one = cleaning.without_context(one, other)
        one, other = cleaning.without_accelerator(one, other)
        one, other = cleaning.plain(one), cleaning.plain(other)
        found.append(cleaning.problem(one, other) or (one, other))
    return tuple(found)


def pairs(extracted: Extracted, language: str, dropped: Dropped) -> list[Pair]:
    """Return the distinct pairs of English and ``language``, in the order of KINDS and source packages."""
    found: list[Pair] = []
    for kind, package, raw in _raw_files(extracted, language, dropped):
        clean = []
        for one, other in raw:
            if not other:
                dropped.segments["not translated"] += 1
                continue
            for result in clean_message(one, other):
                if isinstance(result, str):
                    dropped.segments[result] += 1
                else:
                    clean.append(result)
        checks = [(cleaning.in_language(one, "en"), cleaning.in_language(other, language)) for one, other in clean]
        if not all(cleaning.mostly_in(side) for side in zip(*checks, strict=True)):
            dropped.files["in another language"] += 1
            dropped.segments["in a file of another language"] += len(clean)
            continue
        for (one, other), check in zip(clean, checks, strict=True):
            if False in check:
                dropped.segments["in another language"] += 1
            else:
                found.append(Pair(kind, package, one, other))
    found.sort(key=lambda pair: (KINDS.index(pair.kind), pair.package))
    distinct: dict[tuple[str, str], Pair] = {}
    for pair in found:
        distinct.setdefault((pair.source, pair.target), pair)
    dropped.segments["repeated"] += len(found) - len(distinct)
    return list(distinct.values())


def _raw_documents(extracted: Extracted, language: str) -> Iterator[tuple[str, str, str, Iterable[str]]]:
    for package, records in extracted.packages:
        for record in records:
            name = f"{package.name}/{record['path']}"
            if "blocks" in record and record["language"] == language:
                yield "documents", package.source, name, [cleaning.plain(text) for _, _, text in record["blocks"]]
            elif "pairs" in record and language in ("en", record["language"]):
                sides = [each for one, other in record["pairs"] if other for each in clean_message(one, other)]
                side = 0 if language == "en" else 1
                yield (
                    kind_of(package),
                    package.source,
                    name,
                    [each[side] for each in sides if not isinstance(each, str)],
                )
    for entry in extracted.descriptions:
        if language in entry["texts"]:
            blocks = formats.description(entry["texts"][language])
            texts = [text for _, _, text in blocks if "<trans>" not in text]
            yield "descriptions", entry["source"], entry["package"], [cleaning.plain(text) for text in texts]


def documents(extracted: Extracted, language: str, dropped: Dropped) -> list[Document]:
    """Return the text of ``language`` as documents; a paragraph that several have is kept in the first."""
    seen: set[str] = set()
    found = []
    for kind, package, name, texts in _raw_documents(extracted, language):
        distinct = []
        for text in texts:
            if cleaning.words(text) < LEAST_WORDS:
                continue
            if text in seen:
                dropped.segments["repeated"] += 1
                continue
            distinct.append(text)
        checks = [cleaning.in_language(text, language) for text in distinct]
        if not cleaning.mostly_in(checks):
            dropped.files["in another language"] += 1
            continue
        kept = []
        for text, check in zip(distinct, checks, strict=True):
            if check is False:
                dropped.segments["in another language"] += 1
            elif text not in seen:
                seen.add(text)
                kept.append(text)
        if kept:
            found.append(Document(kind, package, name, tuple(kept)))
    return found
