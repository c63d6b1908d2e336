"""Check and measure the text of an experiment, as far as it is on this machine, before anything runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mt_scaffold._core import WordEndings
from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.files import (
    PathLike,
    check_plain,
    compression_of,
    format_by_name,
    open_input,
    without_compression,
)
from mt_scaffold.corpus.text import SEPARATOR, not_utf8
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration import Config
from mt_scaffold.experiment.configuration.data import SIDES, FileData, ParallelFiles
from mt_scaffold.experiment.configuration.language_model_layout import LanguageModelLayout, existing_files
from mt_scaffold.experiment.data.preprocessed import looks_tokenised, suffix_of_markup

# For estimates: bytes per line, and the compression ratio of gzip or zstd.
_BYTES_PER_LINE, _COMPRESSION = 100, 3
# The size of a file above which its lines are not read.
_MOST_READ = 2 << 30


@dataclass
class TrainingText:
    """The facts about an experiment's text before anything runs.

    described: lines for people. problems: keys of the configuration, each with its problem. warnings: possible
    problems. size: approximate bytes of the training text; None: not on this machine yet.
    """

    described: list[str] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    size: int | None = None


def parallel_text(config: Config) -> TrainingText:
    """Return what is known about the text of a translation experiment; nothing is downloaded."""
    found = TrainingText()
    if config.data.files is not None:
        _look_at_files(config, config.data.files, found)
    elif config.data.synthetic is not None:
        pairs = min(config.data.synthetic.pairs, config.data.sample or config.data.synthetic.pairs)
        found.described.append(f"train: {pairs:,} generated pairs")
        found.size = pairs * _BYTES_PER_LINE
    else:
        found.described.append("the text is in archives, which are downloaded")
        for test in config.test_sets:
            try:
                config.further_references(test)
            except MTScaffoldError as error:
                found.problems.append((f"data.archives.tests.{test}.sacrebleu", str(error)))
    return found


def documents(layout: LanguageModelLayout) -> TrainingText:
    """Return what is known about the documents of language models."""
    found, data = TrainingText(), layout.config.data
    if data.documents is None:
        assert data.synthetic is not None
        count = min(data.synthetic.documents, data.sample or data.synthetic.documents)
        found.size = count * data.synthetic.sentences * _BYTES_PER_LINE // 2
        found.described.append(f"train: {count:,} generated documents")
    else:
        parts = {"train": data.documents.train, "valid": data.documents.valid or []}
        parts |= {f"tests.{name}": patterns for name, patterns in (data.documents.tests or {}).items()}
        for part, patterns in parts.items():
            try:
                paths = existing_files(patterns)
                for path in paths:
                    if (data.documents.format or format_by_name(path)) != "parquet":
                        with open_input(path):  # refuses what is no text
                            pass
            except MTScaffoldError as error:
                found.problems.append((f"data.documents.{part}", str(error)))
                continue
            size = sum(path.stat().st_size * (_COMPRESSION if compression_of(path) else 1) for path in paths)
            if paths:
                files = f"{len(paths):,} {'file' if len(paths) == 1 else 'files'}"
                found.described.append(f"{part.removeprefix('tests.')}: {files}, {shown_size(size)}")
            if part == "train":
                found.size = size
                found.warnings += documents_look_preprocessed(paths, data.documents.format)
    return found


def documents_look_preprocessed(paths: Sequence[Path], form: str | None = None) -> list[str]:
    """Return a warning if the first file of documents in plain text is tokenised or segmented already, else nothing.

    form: the format in the configuration. This is not an error, as a text may legitimately contain such marks.
    """
    path = first_plain(paths, form)
    if path is None or (seen := looks_tokenised(path)) is None:
        return []
    return [f"{path}: {seen}; give the raw text, or bits per byte will be those of this text"]


def first_plain(paths: Sequence[Path], form: str | None = None) -> Path | None:
    """Return the first file of documents in plain text; form: the format in the configuration."""
    return next((path for path in paths if (form or format_by_name(path.name)) in ("lines", "files")), None)


def shown_size(size: float) -> str:
    """Return a size in bytes in a readable unit.

    >>> shown_size(1_500_000), shown_size(900), shown_size(20_300_000_000)
    ('1.5 MB', '1 kB', '20 GB')
    """
    for unit, of in (("GB", 1e9), ("MB", 1e6)):
        if size >= of:
            return f"{size / of:.{1 if size < 10 * of else 0}f} {unit}"
    return f"{max(1, round(size / 1000))} kB"


def _look_at_files(config: Config, files: FileData, found: TrainingText) -> None:
    endings = WordEndings(SEPARATOR)
    for corpus, pairs in files.corpora.items():
        lines, sizes, known = 0, [0, 0], bool(pairs)
        for number, pair in enumerate(pairs):
            key = f"data.files.{corpus}[{number}]"
            missing = [*_missing(pair, key)]
            found.problems += missing
            if missing or pair.source.path is None or pair.target.path is None:
                known = False
                continue
            paths = [Path(pair.source.path), Path(pair.target.path)]
            found.warnings += _swapped(config, paths)
            paths += [Path(file.path) for file in pair.references or () if file.path is not None]
            try:
                counts = [_lines_of_text(path) for path in paths]
                for side, (name, path) in enumerate(zip(SIDES, paths, strict=False)):
                    sizes[side] += path.stat().st_size * (_COMPRESSION if compression_of(path) else 1)
                    choices, seen = config.tokenise_for(corpus.removeprefix("tests."), name), looks_tokenised(path)
                    if choices.check and seen is not None and not seen.allowed(choices):
                        found.problems.append((f"{key}.{name}.path", f"{path}: {seen}; {seen.way_on}"))
                    found.warnings += suffix_of_markup(path)
                    if choices.none and path.stat().st_size <= _MOST_READ:
                        count_words(path, any_bytes=True, endings=endings)
            except MTScaffoldError as error:
                found.problems.append((key, str(error)))
                known = False
                continue
            for path, count in zip(paths[1:], counts[1:], strict=True):
                if None not in counts and count != counts[0]:
                    says = f"{paths[0]} has {counts[0]:,} lines, but {path} {count:,}; line i must translate line i"
                    found.problems.append((key, says))
            if counts[0] == 0:
                found.problems.append((f"{key}.source", f"{paths[0]}: empty; give a text"))
            lines += counts[0] or round(paths[0].stat().st_size / _BYTES_PER_LINE)
        if known:
            share = 1.0
            if corpus == "train" and config.data.sample is not None:
                share = min(1.0, config.data.sample / max(1, lines))
            languages = (config.languages.source, config.languages.target)
            of_each = " and ".join(
                f"{shown_size(size * share)} {name}" for size, name in zip(sizes, languages, strict=True)
            )
            found.described.append(f"{corpus.removeprefix('tests.')}: {round(lines * share):,} pairs, {of_each}")
            if corpus == "train":
                found.size = round(sum(sizes) * share)
        elif any(pair.source.url for pair in pairs):
            found.described.append(f"{corpus.removeprefix('tests.')}: downloaded")
    if endings.count:
        found.warnings.append(
            f"{endings.first}: {endings.count:,} words end in '{SEPARATOR}' (this is the first, of all files); models "
            f"and scores keep them; in dictionaries they are 'x{SEPARATOR}</w>'"
        )


def _lines_of_text(path: Path) -> int | None:
    """Return the number of lines, as count_text_lines does, or None for a file too large to read."""
    return None if path.stat().st_size > _MOST_READ else count_text_lines(path)


def count_text_lines(path: PathLike) -> int:
    """Return the number of lines; raise MTScaffoldError if the text is not UTF-8, or its lines end in CR only."""
    lines = offset = 0
    line = b""
    check_plain(path)
    with open_input(path) as stream:
        for line in stream:
            lines += 1
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise not_utf8(os.fspath(path), lines, offset + error.start, line[error.start]) from None
            offset += len(line)
    if lines == 1 and b"\r" in line and not line.endswith(b"\n"):
        raise MTScaffoldError(f"{path}: its lines end in CR only; convert them, as with tr '\\r' '\\n'")
    return lines


def _missing(pair: ParallelFiles, key: str) -> Iterator[tuple[str, str]]:
    further = ((f"references[{place}]", file) for place, file in enumerate(pair.references or ()))
    for side, file in (("source", pair.source), ("target", pair.target), *further):
        if file.path is not None and not os.path.isfile(file.path):
            what = "no such file; correct the path"
            if os.path.exists(file.path):
                what = f"a {'folder' if os.path.isdir(file.path) else 'pipe, which cannot be read again'}; give a file"
            yield f"{key}.{side}.path", f"{file.path}: {what} (relative to {os.getcwd()})"
        elif file.path is not None and not os.access(file.path, os.R_OK):
            yield f"{key}.{side}.path", f"{file.path}: permission denied"


def _swapped(config: Config, paths: list[Path]) -> list[str]:
    """Return a warning if the suffixes of the two files are the two languages in reverse order."""
    languages = (config.languages.source, config.languages.target)
    endings = tuple(without_compression(path.name).rpartition(".")[2] for path in paths)
    if endings == languages[::-1]:
        return [f"{paths[0]} is read as {languages[0]}, and {paths[1]} as {languages[1]}; are they swapped?"]
    return []
