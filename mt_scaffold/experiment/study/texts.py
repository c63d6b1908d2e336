"""Texts → counted words: the training part of each, its two halves and its fractions, and the held-out part."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mt_scaffold.corpus.count import load_counts, merge_counts, write_counts
from mt_scaffold.corpus.files import make_folder
from mt_scaffold.corpus.text import read_lines, word_count
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.runtime.provenance import sha256
from mt_scaffold.experiment.runtime.results import read_result, write_result
from mt_scaffold.experiment.study.configuration import TRAIN as TRAIN
from mt_scaffold.experiment.study.configuration import UNSEEN as UNSEEN
from mt_scaffold.experiment.study.configuration import Text

EVEN, ODD = "even", "odd"


@dataclass(frozen=True)
class TextReport:
    """A counted text: SHA-256 of each file by language, the settings, and the number of lines with words by part."""

    sha256: dict[str, str]
    settings: str
    lines: dict[str, int]


@dataclass(frozen=True)
class Words:
    """Counted words of a part of a text. lines: the number of those with at least one word."""

    counts: dict[str, int]
    lines: int

    @property
    def total(self) -> int:
        """The number of words in the text."""
        return sum(self.counts.values())

    @property
    def bytes(self) -> int:
        """UTF-8 bytes of the text with one space between words, as ``stats`` counts them."""
        inside = sum(len(word.encode()) * count for word, count in self.counts.items())
        return inside + self.total - self.lines


class CountedText:
    """The count files of a text, one per language and part."""

    def __init__(self, folder: Path, text: Text) -> None:
        self._folder = folder
        self._languages = tuple(text.files)
        self.parallel = text.parallel

    def counts(self, part: str) -> dict[str, Path]:
        """Return the count file of each language."""
        return {language: self._folder / f"{part}.{language}.counts" for language in self._languages}

    def words(self, part: str) -> Words:
        """Return the words of all languages together."""
        report = read_result(TextReport, self._folder / "text.json")
        counts, _ = load_counts(list(self.counts(part).values()))
        return Words(dict(counts.items()), report.lines[part])

    def languages(self, part: str) -> list[Words]:
        """Return the words of each language separately, with 0 for ``lines``."""
        return [Words(dict(load_counts([path])[0].items()), 0) for path in self.counts(part).values()]

    @property
    def digest(self) -> str:
        """A string that changes with the files and their settings."""
        report = read_result(TextReport, self._folder / "text.json")
        return json.dumps([report.sha256, report.settings], sort_keys=True)


def count_text(text: Text, files: Mapping[str, Path], folder: Path, fractions: Iterable[int]) -> CountedText:
    """Count the words of a text in all its parts, unless that is done already.

    files: of each language. fractions: N also counts every Nth line of the training part.

    Raises MTScaffoldError if a file cannot be read, parallel files differ in length, or a part has no words.
    """
    settings = json.dumps([text.held_out and [text.held_out.every, text.held_out.lines], sorted(fractions)])
    done = folder / "text.json"
    digests = {language: sha256(path) for language, path in files.items()}
    if done.exists():
        report = read_result(TextReport, done)
        if (report.sha256, report.settings) == (digests, settings):
            return CountedText(folder, text)
    make_folder(folder)
    # So that after an interruption the report never describes other counts.
    done.unlink(missing_ok=True)
    lines: dict[str, int] = {}
    counted = CountedText(folder, text)
    size = None
    for language, path in files.items():
        read = read_lines(path)
        if text.parallel and size not in (None, len(read)):
            raise MTScaffoldError(
                f"{path}: {len(read):,} lines, but another language of this parallel text has {size:,}"
            )
        size = len(read)
        for part, content in _parts(read, text, fractions).items():
            lines[part] = lines.get(part, 0) + sum(1 for line in content if word_count(line.encode()))
            write_counts(counted.counts(part)[language], lines=content, num_workers=1)
        if text.held_out is not None:
            merge_counts(counted.counts(TRAIN)[language], [counted.counts(part)[language] for part in (EVEN, ODD)])
    if text.held_out is not None:
        lines[TRAIN] = lines[EVEN] + lines[ODD]
    for part, count in lines.items():
        if not count:
            raise MTScaffoldError(f"{', '.join(map(str, files.values()))}: no words in the part '{part}'; give more")
    write_result(done, TextReport(digests, settings, lines))
    return counted


def fraction_name(fraction: int) -> str:
    """Return the name of the part with every ``fraction``-th line of the training part; 1 is all of it."""
    return TRAIN if fraction == 1 else f"every-{fraction}"


def _parts(lines: list[str], text: Text, fractions: Iterable[int]) -> dict[str, list[str]]:
    """Return the lines of each part; ``train`` is merged from its halves."""
    if text.held_out is None:
        return {UNSEEN: lines}
    train = list(_kept(lines, text.held_out.every, text.held_out.lines, last=False))
    parts = {EVEN: train[::2], ODD: train[1::2]}
    parts[UNSEEN] = list(_kept(lines, text.held_out.every, text.held_out.lines, last=True))
    return parts | {fraction_name(fraction): train[::fraction] for fraction in fractions}


def _kept(lines: list[str], every: int, block: int, last: bool) -> Iterator[str]:
    return (line for number, line in enumerate(lines) if (number // block % every == every - 1) is last)
