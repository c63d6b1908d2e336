"""Configuration → raw text: parallel text, generated or from files and archives, and otherwise untouched."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.archives import extract, sacrebleu_archives, sacrebleu_test_set
from mt_scaffold.experiment.configuration import Config, Languages
from mt_scaffold.experiment.configuration.data import (
    ArchiveData,
    ArchivePair,
    ArchiveTest,
    FileData,
    ParallelFiles,
    SyntheticData,
)
from mt_scaffold.experiment.download import default_cache, fetch
from mt_scaffold.experiment.synthetic import sentence_pairs
from mt_scaffold.files import PathLike, explain_os_error, make_folder, open_output
from mt_scaffold.text import read_pairs, word_count

# Holds the extracted members of one archive at a time, beside the raw text.
_MEMBERS = ".members"
Pairs = Iterable[tuple[bytes, bytes]]
# The name of a corpus, and its parts in order, each with its origin.
Corpus = tuple[str, Iterable[tuple[str, Pairs]]]


@dataclass(frozen=True)
class RawCorpus:
    """The size of one corpus: its lines, and its words (between ASCII spaces) by language."""

    lines: int
    words: dict[str, int]


@dataclass(frozen=True)
class RawPart:
    """How many lines of a corpus come from one file, archive member or generator."""

    origin: str = field(metadata={"key": "from"})
    lines: int


@dataclass(frozen=True)
class Generator:
    """What determines a generated corpus."""

    pairs: int
    seed: int
    stems: int
    clauses: int


@dataclass(frozen=True)
class TestOverlap:
    """Lines of a test set, and how many of them the training data has too: as a source, as a target, as a pair."""

    __test__ = False  # pytest would collect the class because of its name

    lines: int
    source_in_train: int
    target_in_train: int
    pair_in_train: int


@dataclass
class RawReport:
    """The origin and size of an experiment's raw text, by corpus."""

    experiment: str
    synthetic: bool
    corpora: dict[str, RawCorpus] = field(default_factory=dict)
    parts: dict[str, list[RawPart]] = field(default_factory=dict)
    generator: Generator | None = field(default=None, metadata={"omit_none": True})
    test_overlap: dict[str, TestOverlap] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def get_data(config: Config, output_dir: PathLike, cache: PathLike | None = None) -> RawReport:
    """Write the raw text of ``config`` to ``output_dir`` and return its origin and size.

    Writes ``{train,valid,TEST}.{SOURCE,TARGET}`` (UTF-8, unchanged but for an LF at the end of every line); the folder
    is created where needed. ``cache`` is the download cache (default: default_cache()).
    Raises MTScaffoldError for a file that cannot be fetched or whose digest differs from the configuration, and for
    two sides with different numbers of lines.
    """
    folder = Path(output_dir)
    make_folder(folder)
    report = RawReport(config.name, config.synthetic)
    if config.data.synthetic is not None:
        data = config.data.synthetic
        report.generator = Generator(data.pairs, data.seed, data.stems, data.clauses)
    overlap = _Overlap()
    try:
        for name, parts in _corpora(config, folder, Path(cache) if cache is not None else None):
            watched = overlap.watch(name, parts)
            report.corpora[name], report.parts[name] = _write(folder, name, config.languages, watched)
    finally:
        shutil.rmtree(folder / _MEMBERS, ignore_errors=True)
    report.test_overlap = overlap.counts()
    report.warnings = overlap.warnings()
    for warning in report.warnings:
        print(f"mt-scaffold: warning: {warning}", file=sys.stderr)
    return report


class _Overlap:
    """Counts the test sentences that also occur in the training data, which must be watched after the test sets."""

    def __init__(self) -> None:
        self._tests: dict[str, list[tuple[bytes, bytes]]] = {}
        self._sources: dict[bytes, bool] = {}
        self._targets: dict[bytes, bool] = {}
        self._pairs: dict[tuple[bytes, bytes], bool] = {}

    def watch(self, corpus: str, parts: Iterable[tuple[str, Pairs]]) -> Iterator[tuple[str, Pairs]]:
        """Yield the same parts, noting or looking up each pair on the way."""
        for origin, pairs in parts:
            if corpus == "train":
                yield origin, self._look(pairs)
            elif corpus == "valid":
                yield origin, pairs
            else:
                yield origin, self._note(self._tests.setdefault(corpus, []), pairs)

    def _note(self, test: list[tuple[bytes, bytes]], pairs: Pairs) -> Iterator[tuple[bytes, bytes]]:
        for pair in pairs:
            source, target = pair[0].strip(), pair[1].strip()
            test.append((source, target))
            self._sources[source] = self._targets[target] = self._pairs[source, target] = False
            yield pair

    def _look(self, pairs: Pairs) -> Iterator[tuple[bytes, bytes]]:
        for pair in pairs:
            source, target = pair[0].strip(), pair[1].strip()
            in_source, in_target = source in self._sources, target in self._targets
            if in_source:
                self._sources[source] = True
            if in_target:
                self._targets[target] = True
            if in_source and in_target and (source, target) in self._pairs:
                self._pairs[source, target] = True
            yield pair

    def counts(self) -> dict[str, TestOverlap]:
        """Return the overlap of each test set with the training data, once that has been read."""
        return {
            name: TestOverlap(
                lines=len(test),
                source_in_train=sum(self._sources[source] for source, _ in test),
                target_in_train=sum(self._targets[target] for _, target in test),
                pair_in_train=sum(self._pairs[pair] for pair in test),
            )
            for name, test in self._tests.items()
        }

    def warnings(self) -> list[str]:
        """Return one line for each test set that shares sentences with the training data."""
        return [
            f"{name}: of its {count.lines} sentences, {count.source_in_train} occur in the training data as a "
            f"source, {count.target_in_train} as a target, {count.pair_in_train} with the same translation"
            for name, count in self.counts().items()
            if count.source_in_train or count.target_in_train
        ]


def fetch_data(config: Config, cache: PathLike | None = None) -> list[Path]:
    """Fetch what get_data needs from the network into ``cache`` (default: default_cache()) and return the paths.

    This fills the cache of a machine that has no network. Raises MTScaffoldError as fetch does.
    """
    folder = Path(cache) if cache is not None else default_cache()
    files: dict[Any, None] = {}
    if config.data.files is not None:
        data = config.data.files
        for pair in itertools.chain(data.train, data.valid, *data.tests.values()):
            files |= {pair.source: None, pair.target: None}
    if config.data.archives is not None:
        tests = config.data.archives.tests.values()
        for of_archive in itertools.chain(
            config.data.archives.train, config.data.archives.valid, *(test.pairs or [] for test in tests)
        ):
            files[of_archive.archive] = None
        for test in tests:
            if test.sacrebleu is not None:
                files |= dict.fromkeys(sacrebleu_archives(test.sacrebleu, test.md5))
    return [fetch(file, folder) for file in files]


def _corpora(config: Config, folder: Path, cache: Path | None) -> Iterator[Corpus]:
    """Yield the test sets first: their sentences are looked up in the training data as it is read."""
    data = config.data
    if data.synthetic is not None:
        yield from _generated(data.synthetic, data.sample)
    if data.files is not None:
        yield from _from_files(data.files, data.sample, cache or default_cache())
    if data.archives is not None:
        yield from _from_archives(data.archives, config.languages, data.sample, folder, cache or default_cache())


def _generated(data: SyntheticData, sample: int | None) -> Iterator[Corpus]:
    """Yield the test set first: it must not depend on the number of training pairs."""
    sentences = sentence_pairs(data.seed, data.stems, data.clauses)
    pairs = ((source.encode() + b"\n", target.encode() + b"\n") for source, target in sentences)
    yield "test", [("generated", itertools.islice(pairs, data.test))]
    yield "valid", [("generated", itertools.islice(pairs, data.valid))]
    yield "train", [("generated", itertools.islice(pairs, min(data.pairs, sample or data.pairs)))]


def _from_files(data: FileData, sample: int | None, cache: Path) -> Iterator[Corpus]:
    # Fetch everything before reading anything, so that a missing file is reported at once.
    train, valid = _fetch_pairs(data.train, cache), _fetch_pairs(data.valid, cache)
    tests = {name: _fetch_pairs(pairs, cache) for name, pairs in data.tests.items()}
    for name, pairs in tests.items():
        yield name, [(source.name, read_pairs(source, target)) for source, target in pairs]
    yield "valid", [(source.name, read_pairs(source, target)) for source, target in valid]
    yield "train", [(source.name, itertools.islice(read_pairs(source, target), sample)) for source, target in train]


def _fetch_pairs(pairs: Sequence[ParallelFiles], cache: Path) -> list[tuple[Path, Path]]:
    return [(fetch(pair.source, cache), fetch(pair.target, cache)) for pair in pairs]


def _from_archives(
    data: ArchiveData, languages: Languages, sample: int | None, folder: Path, cache: Path
) -> Iterator[Corpus]:
    # As in _from_files: fetch everything before reading anything.
    members = folder / _MEMBERS
    archives = {
        pair.archive: fetch(pair.archive, cache)
        for pairs in (data.train, data.valid, *(test.pairs or [] for test in data.tests.values()))
        for pair in pairs
    }

    def parts(pairs: Sequence[ArchivePair], lines: int | None = None) -> Iterator[tuple[str, Pairs]]:
        for pair in pairs:
            with _empty_folder(members):
                yield pair.source, _from_archive(archives[pair.archive], pair, lines, members)

    def test_parts(test: ArchiveTest) -> Iterator[tuple[str, Pairs]]:
        if test.sacrebleu is None:
            yield from parts(test.pairs or [])
            return
        with _empty_folder(members):
            source, target = languages.source, languages.target
            paths = sacrebleu_test_set(test.sacrebleu, source, target, cache, members, test.md5)
            yield f"sacreBLEU {test.sacrebleu}", read_pairs(*paths)

    for name, test in data.tests.items():
        yield name, test_parts(test)
    yield "valid", parts(data.valid)
    yield "train", parts(data.train, sample)


def _from_archive(archive: Path, pair: ArchivePair, lines: int | None, folder: Path) -> Pairs:
    paths = []
    for side, member in (("source", pair.source), ("target", pair.target)):
        (folder / side).mkdir()
        name = member.rsplit("/", 1)[-1]
        # With ``lines``, extract decompresses.
        paths.append(folder / side / (name.removesuffix(".gz") if lines is not None else name))
    extract(archive, dict(zip((pair.source, pair.target), paths, strict=True)), lines)
    return read_pairs(*paths)


@contextlib.contextmanager
def _empty_folder(folder: Path) -> Iterator[None]:
    """Create ``folder`` empty, whatever a killed run left there, and delete it at the end."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir()
        yield
    except OSError as error:
        raise explain_os_error(error, error.filename or folder) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(
    folder: Path, name: str, languages: Languages, parts: Iterable[tuple[str, Pairs]]
) -> tuple[RawCorpus, list[RawPart]]:
    """Write one corpus, both sides or neither."""
    lines, source_words, target_words = 0, 0, 0
    origins = []
    with contextlib.ExitStack() as stack:
        source, target = (
            stack.enter_context(open_output(folder / f"{name}.{language}"))
            for language in (languages.source, languages.target)
        )
        for origin, pairs in parts:
            before = lines
            for source_line, target_line in pairs:
                _write_line(source, source_line)
                _write_line(target, target_line)
                lines += 1
                source_words += word_count(source_line)
                target_words += word_count(target_line)
            origins.append(RawPart(origin, lines - before))
        if not lines:
            raise MTScaffoldError(f"{name}: the corpus is empty; check its files in the configuration")
    return RawCorpus(lines, {languages.source: source_words, languages.target: target_words}), origins


def _write_line(stream: BinaryIO, line: bytes) -> None:
    stream.write(line if line.endswith(b"\n") else line + b"\n")
