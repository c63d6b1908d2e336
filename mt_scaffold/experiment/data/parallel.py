"""Configuration → raw text: parallel text, generated or copied from files and archives."""

from __future__ import annotations

import collections
import contextlib
import io
import itertools
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from mt_scaffold.corpus.files import (
    PathLike,
    explain_os_error,
    make_folder,
    open_input,
    open_output,
    read_file,
    without_mark,
)
from mt_scaffold.corpus.text import check_parallel, decode, read_pairs, word_count
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import Config, Languages
from mt_scaffold.experiment.configuration.data import (
    ArchiveData,
    ArchivePair,
    ArchiveTest,
    FileData,
    ParallelFiles,
    SyntheticData,
)
from mt_scaffold.experiment.data.archives import extract, sacrebleu_archives, sacrebleu_test_set
from mt_scaffold.experiment.data.download import default_cache, fetch
from mt_scaffold.experiment.data.markup import Markup, plain_lines
from mt_scaffold.experiment.data.overlap import Overlap, Pairs, TestOverlap
from mt_scaffold.experiment.data.synthetic import sentence_pairs
from mt_scaffold.experiment.runtime.result_warnings import ResultWarning, print_warnings

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
    """The settings that determine a generated corpus."""

    pairs: int
    seed: int
    stems: int
    clauses: int


@dataclass
class RawRecord:
    """The origin and size of an experiment's raw text, by corpus; and how many references, if there are several."""

    experiment: str
    synthetic: bool
    corpora: dict[str, RawCorpus] = field(default_factory=dict)
    parts: dict[str, list[RawPart]] = field(default_factory=dict)
    generator: Generator | None = field(default=None, metadata={"omit_none": True})
    references: dict[str, int] = field(default_factory=dict)
    test_overlap: dict[str, TestOverlap] = field(default_factory=dict)
    warnings: list[ResultWarning] = field(default_factory=list)


def get_data(
    config: Config, output_dir: PathLike, cache: PathLike | None = None, parts: Sequence[str] | None = None
) -> RawRecord:
    """Write the raw text of ``config`` to ``output_dir`` and return its origin and size.

    Writes ``{train,valid,TEST}.{SOURCE,TARGET}`` (UTF-8), and further references as ``TEST.TARGET.2``
    and so on, unchanged except that every line gets an LF, and that byte
    order marks and the markup named in the configuration are removed; the folder is created if needed. There is no
    ``valid`` if cleaning takes it out of the training text (``data.valid_every``). ``cache`` is the download cache
    (default: default_cache()).
    With ``parts``, only these are written. If a test set is among them but ``train`` is not, the sentences that occur
    in both are counted in the training text that an earlier call wrote or, without one, in the source of that text.
    Raises UsageError for a part that the configuration does not have; MTScaffoldError for a file that cannot be
    fetched or whose digest differs from the configuration, for malformed markup, and for two sides with different
    numbers of lines.
    """
    every_part = ["train", "valid", *config.test_sets]
    wanted = set(every_part if parts is None else parts)
    if unknown := wanted.difference(every_part):
        raise UsageError(f"get-data: no part {min(unknown)}; give some of {', '.join(every_part)}")
    folder = Path(output_dir)
    make_folder(folder)
    record = RawRecord(config.name, config.synthetic)
    if config.data.synthetic is not None:
        data = config.data.synthetic
        record.generator = Generator(data.pairs, data.seed, data.stems, data.clauses)
    overlap, other_tags = Overlap(), Counter[str]()
    # A folder for each set of parts, because another call may be writing other parts at the same time.
    members = _Members(folder / f".members-{'all' if parts is None else '-'.join(sorted(wanted))}", other_tags)
    try:
        for name, text in _corpora(config, members, Path(cache) if cache is not None else None):
            if name == "train" and name not in wanted and not config.synthetic:
                text = _written_before(folder, config.languages) or text
            text = _without_marks(text)
            if name == "train" or name in wanted:
                text = overlap.watch(name, text)
            if name in wanted:
                record.corpora[name], record.parts[name] = _write(folder, name, config.languages, text)
                for number, files in enumerate(config.further_references(name), 2):
                    lines = [line for file in files for line in _lines_of(fetch(file, cache or default_cache()))]
                    check_parallel(name, record.corpora[name].lines, f"reference {number}", len(lines))
                    overlap.note_reference(name, lines)
                    record.references[name] = number
                    with open_output(folder / f"{name}.{config.languages.target}.{number}") as stream:
                        stream.writelines(lines)
            elif config.synthetic or (name == "train" and wanted.intersection(config.test_sets)):
                # Generated parts are consecutive pieces of one sequence.
                for _, pairs in text:
                    collections.deque(pairs, maxlen=0)
    finally:
        shutil.rmtree(members.folder, ignore_errors=True)
    record.test_overlap = overlap.counts()
    if config.synthetic:
        # A grammar's sentences are all alike.
        record.test_overlap = {name: replace(each, near=None) for name, each in record.test_overlap.items()}
    record.warnings = overlap.warnings(near=not config.synthetic)
    if other_tags:
        record.warnings += [ResultWarning("markup", f"<{tag}>", f"{count:,}") for tag, count in other_tags.items()]
    print_warnings(record.warnings)
    return record


def _without_marks(parts: Iterable[tuple[str, Pairs]]) -> Iterator[tuple[str, Pairs]]:
    """Yield the same parts without the byte order marks at the start of files, warning of each on stderr."""
    for origin, pairs in parts:
        yield origin, _without_mark(origin, pairs)


def _without_mark(origin: str, pairs: Pairs) -> Iterator[tuple[bytes, bytes]]:
    for number, (source, target) in enumerate(pairs):
        if number == 0:
            source, target = without_mark(source, f"{origin}, source"), without_mark(target, f"{origin}, target")
        yield source, target


def _lines_of(path: Path) -> list[bytes]:
    """Return the lines of a reference as ``get_data`` writes them."""
    content = without_mark(read_file(path), str(path))
    decode(content, str(path))
    return [line if line.endswith(b"\n") else line + b"\n" for line in io.BytesIO(content)]


def _written_before(folder: Path, languages: Languages) -> list[tuple[str, Pairs]]:
    """Return the training text that an earlier call wrote, or nothing if it does not exist."""
    paths = [folder / f"train.{language}" for language in (languages.source, languages.target)]
    return [("train", read_pairs(*paths))] if all(path.exists() for path in paths) else []


def fetch_data(config: Config, cache: PathLike | None = None) -> list[Path]:
    """Fetch the files that get_data needs into ``cache`` (default: default_cache()) and return their paths.

    This fills the cache for machines without a network. Raises MTScaffoldError as fetch does.
    """
    folder = Path(cache) if cache is not None else default_cache()
    files: dict[Any, None] = {}
    if config.data.files is not None:
        data = config.data.files
        for pair in itertools.chain(data.train, data.valid or [], *data.tests.values()):
            files |= dict.fromkeys([pair.source, pair.target, *(pair.references or [])])
    if config.data.archives is not None:
        tests = config.data.archives.tests.values()
        for of_archive in itertools.chain(
            config.data.archives.train, config.data.archives.valid or [], *(test.pairs or [] for test in tests)
        ):
            files[of_archive.archive] = None
        for test in tests:
            if test.sacrebleu is not None:
                files |= dict.fromkeys(sacrebleu_archives(test.sacrebleu, test.md5))
    return [fetch(file, folder) for file in files]


def _corpora(config: Config, members: _Members, cache: Path | None) -> Iterator[Corpus]:
    """Yield the test sets first: their sentences are looked up in the training data as it is read."""
    data = config.data
    if data.synthetic is not None:
        yield from _generated(data.synthetic, data.sample)
    if data.files is not None:
        yield from _from_files(data.files, data.sample, cache or default_cache())
    if data.archives is not None:
        yield from _from_archives(data.archives, config.languages, data.sample, members, cache or default_cache())


def _generated(data: SyntheticData, sample: int | None) -> Iterator[Corpus]:
    """Yield the test set first: it must not depend on the number of training pairs."""
    sentences = sentence_pairs(data.seed, data.stems, data.clauses)
    pairs = ((source.encode() + b"\n", target.encode() + b"\n") for source, target in sentences)
    yield "test", [("generated", itertools.islice(pairs, data.test))]
    yield "valid", [("generated", itertools.islice(pairs, data.valid))]
    yield "train", [("generated", itertools.islice(pairs, min(data.pairs, sample or data.pairs)))]


def _from_files(data: FileData, sample: int | None, cache: Path) -> Iterator[Corpus]:
    # Fetch everything before reading anything, so that a missing file is reported at once.
    train, valid = _fetch_pairs(data.train, cache), _fetch_pairs(data.valid or [], cache)
    tests = {name: _fetch_pairs(pairs, cache) for name, pairs in data.tests.items()}
    for name, pairs in tests.items():
        yield name, [(source.name, read_pairs(source, target)) for source, target in pairs]
    if valid:
        yield "valid", [(source.name, read_pairs(source, target)) for source, target in valid]
    yield "train", [(source.name, itertools.islice(read_pairs(source, target), sample)) for source, target in train]


def _fetch_pairs(pairs: Sequence[ParallelFiles], cache: Path) -> list[tuple[Path, Path]]:
    return [(fetch(pair.source, cache), fetch(pair.target, cache)) for pair in pairs]


def _from_archives(
    data: ArchiveData, languages: Languages, sample: int | None, members: _Members, cache: Path
) -> Iterator[Corpus]:
    # As in _from_files: fetch everything before reading anything.
    archives = {
        pair.archive: fetch(pair.archive, cache)
        for pairs in (data.train, data.valid or [], *(test.pairs or [] for test in data.tests.values()))
        for pair in pairs
    }

    def parts(pairs: Sequence[ArchivePair], lines: int | None = None) -> Iterator[tuple[str, Pairs]]:
        for pair in pairs:
            with _empty_folder(members.folder):
                yield pair.source, members.read(archives[pair.archive], pair, lines)

    def test_parts(test: ArchiveTest) -> Iterator[tuple[str, Pairs]]:
        if test.sacrebleu is None:
            yield from parts(test.pairs or [])
            return
        with _empty_folder(members.folder):
            source, target = languages.source, languages.target
            paths = sacrebleu_test_set(test.sacrebleu, source, target, cache, members.folder, test.md5)
            yield f"sacreBLEU {test.sacrebleu}", read_pairs(*paths)

    for name, test in data.tests.items():
        yield name, test_parts(test)
    if data.valid is not None:
        yield "valid", parts(data.valid)
    yield "train", parts(data.train, sample)


@dataclass(frozen=True)
class _Members:
    """The folder of one archive's extracted members, and counts of the tags in them that their markup does not have."""

    folder: Path
    other_tags: Counter[str]

    def read(self, archive: Path, pair: ArchivePair, lines: int | None) -> Pairs:
        """Extract two members and return their pairs, or the first ``lines`` of them, without markup."""
        paths = []
        # Only plain members can be cut while they are extracted.
        cut = lines if pair.markup is None else None
        for side, member in (("source", pair.source), ("target", pair.target)):
            (self.folder / side).mkdir()
            name = member.rsplit("/", 1)[-1]
            # With ``lines``, extract decompresses.
            paths.append(self.folder / side / (name.removesuffix(".gz") if cut is not None else name))
        extract(archive, dict(zip((pair.source, pair.target), paths, strict=True)), cut)
        if pair.markup is not None:
            members = zip(paths, (pair.source, pair.target), strict=True)
            paths = [self._plain(path, pair.markup, f"{archive}: member {name}") for path, name in members]
        return itertools.islice(read_pairs(*paths), lines)

    def _plain(self, member: Path, markup: Markup, name: str) -> Path:
        plain = member.with_name(f"{member.name.removesuffix('.gz')}.plain")
        with open_input(member) as text, open_output(plain) as output:
            output.writelines(plain_lines(text, markup, name, self.other_tags))
        return plain


@contextlib.contextmanager
def _empty_folder(folder: Path) -> Iterator[None]:
    """Create ``folder``, empty even if a killed run left files there, and delete it at the end."""
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
