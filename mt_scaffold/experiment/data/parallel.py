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
from typing import BinaryIO

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
    Archive,
    ArchivePair,
    ArchiveTest,
    DataFile,
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
# The lines of each reference of a test set besides the first, which come with its parts.
References = dict[str, list[list[bytes]]]
_Text = ParallelFiles | ArchivePair | ArchiveTest


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


@dataclass
class RawRecord:
    """The origin and size of an experiment's raw text, by corpus; and how many references, if there are several."""

    experiment: str
    synthetic: bool
    corpora: dict[str, RawCorpus] = field(default_factory=dict)
    parts: dict[str, list[RawPart]] = field(default_factory=dict)
    generator: SyntheticData | None = field(default=None, metadata={"omit_none": True})
    references: dict[str, int] = field(default_factory=dict)
    test_overlap: dict[str, TestOverlap] = field(default_factory=dict)
    warnings: list[ResultWarning] = field(default_factory=list)


def get_data(
    config: Config, output_dir: PathLike, cache: PathLike | None = None, parts: Sequence[str] | None = None
) -> RawRecord:
    """Write the raw text of ``config`` to ``output_dir`` and return its origin and size.

    Writes ``{train,valid,TEST}.{SOURCE,TARGET}`` (UTF-8), and further references as ``TEST.TARGET.2`` and so on,
    unchanged except that every line gets an LF, and that byte order marks and the markup named in the configuration are
    removed; the folder is created if needed. There is no ``valid`` if cleaning takes it out of the training text
    (``data.valid_every``). ``cache`` is the download cache (default: default_cache()).
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
    record = RawRecord(config.name, config.synthetic, generator=config.data.synthetic)
    overlap, other_tags = Overlap(), Counter[str]()
    further: References = {name: [[] for _ in range(config.further_references(name))] for name in config.test_sets}
    # A folder for each set of parts, because another call may be writing other parts at the same time.
    members = _Members(folder / f".members-{'all' if parts is None else '-'.join(sorted(wanted))}", other_tags)
    try:
        for name, text in _corpora(config, members, further, cache):
            if name == "train" and name not in wanted and not config.synthetic:
                text = _written_before(folder, config.languages) or text
            if name == "train" or name in wanted:
                text = overlap.watch(name, text)
            if name in wanted:
                record.corpora[name], record.parts[name] = _write(folder, name, config.languages, text)
                for number, lines in enumerate(further.get(name, []), 2):
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


def _without_marks(origin: str, pairs: Pairs) -> Iterator[tuple[bytes, bytes]]:
    """Yield the pairs without the byte order marks at the start of their files, warning of each on stderr."""
    for number, (source, target) in enumerate(pairs):
        if number == 0:
            source, target = without_mark(source, f"{origin}, source"), without_mark(target, f"{origin}, target")
        yield source, target


def _add(further: list[list[bytes]], paths: Sequence[Path]) -> None:
    """Add the lines of the further references of a part, as ``get_data`` writes them."""
    for lines, path in zip(further, paths, strict=True):
        content = without_mark(read_file(path), str(path))
        decode(content, str(path))
        lines += (line if line.endswith(b"\n") else line + b"\n" for line in io.BytesIO(content))


def _written_before(folder: Path, languages: Languages) -> list[tuple[str, Pairs]]:
    """Return the training text that an earlier call wrote, or nothing if it does not exist."""
    paths = [folder / f"train.{language}" for language in (languages.source, languages.target)]
    return [("train", read_pairs(*paths))] if all(path.exists() for path in paths) else []


def fetch_data(config: Config, cache: PathLike | None = None) -> list[Path]:
    """Fetch the files that get_data needs into ``cache`` (default: default_cache()) and return their paths.

    This fills the cache for machines without a network. Raises MTScaffoldError as fetch does.
    """
    folder = Path(cache) if cache is not None else default_cache()
    tests, pair = config.data.archives.tests.values() if config.data.archives is not None else (), config.languages.pair
    sets = [sacrebleu_archives(test.sacrebleu, pair, test.md5) for test in tests if test.sacrebleu is not None]
    of_sacrebleu = [fetch(archive, folder) for archive in dict.fromkeys(itertools.chain(*sets))]
    return [*_fetched(config, folder).values(), *of_sacrebleu]


def _fetched(config: Config, cache: Path) -> dict[DataFile | Archive, Path]:
    """Fetch everything but the test sets of sacreBLEU."""
    wanted: list[DataFile | Archive] = []
    for files in config.data.files.corpora.values() if config.data.files is not None else ():
        wanted += (file for pair in files for file in pair.files)
    for members in config.data.archives.corpora.values() if config.data.archives is not None else ():
        wanted += (pair.archive for pair in members)
    return {file: fetch(file, cache) for file in dict.fromkeys(wanted)}


def _corpora(config: Config, members: _Members, further: References, cache: PathLike | None) -> Iterator[Corpus]:
    """Yield the test sets first: their sentences are looked up in the training data as it is read."""
    if config.data.synthetic is not None:
        yield from _generated(config.data.synthetic, config.data.sample)
        return
    folder = Path(cache) if cache is not None else default_cache()
    # Everything before anything is read, so that a missing file is reported at once.
    fetched = _fetched(config, folder)

    def parts(name: str, texts: Sequence[_Text], lines: int | None = None) -> Iterator[tuple[str, Pairs]]:
        for each in texts:
            with _empty_folder(members.folder):
                if isinstance(each, ParallelFiles):
                    paths = [fetched[file] for file in each.files]
                    origin = paths[0].name
                elif isinstance(each, ArchivePair):
                    paths, origin = members.read(fetched[each.archive], each, lines), each.source
                else:
                    name_there, origin = each.sacrebleu or "", f"sacreBLEU {each.sacrebleu}"
                    paths = sacrebleu_test_set(name_there, config.languages.pair, folder, members.folder, each.md5)
                pairs = itertools.islice(read_pairs(paths[0], paths[1]), lines)
                yield origin, _without_marks(origin, pairs)
                _add(further.get(name, []), paths[2:])

    text = config.data.files or config.data.archives
    assert text is not None
    for name, test in text.tests.items():
        yield name, parts(name, (test.pairs or [test]) if isinstance(test, ArchiveTest) else test)
    if text.valid:
        yield "valid", parts("valid", text.valid)
    yield "train", parts("train", text.train, config.data.sample)


def _generated(data: SyntheticData, sample: int | None) -> Iterator[Corpus]:
    """Yield the test set first: it must not depend on the number of training pairs."""
    sentences = sentence_pairs(data.seed, data.stems, data.clauses)
    pairs = ((source.encode() + b"\n", target.encode() + b"\n") for source, target in sentences)
    yield "test", [("generated", itertools.islice(pairs, data.test))]
    yield "valid", [("generated", itertools.islice(pairs, data.valid))]
    yield "train", [("generated", itertools.islice(pairs, min(data.pairs, sample or data.pairs)))]


@dataclass(frozen=True)
class _Members:
    """The folder of one archive's extracted members, and counts of the tags in them that their markup does not have."""

    folder: Path
    other_tags: Counter[str]

    def read(self, archive: Path, pair: ArchivePair, lines: int | None) -> list[Path]:
        """Extract the members, without markup and at least their first ``lines`` lines, and return their paths."""
        paths, members = [], (pair.source, pair.target, *(pair.references or ()))
        # Only plain members can be cut while they are extracted.
        cut = lines if pair.markup is None else None
        for number, member in enumerate(members):
            (self.folder / str(number)).mkdir()
            name = member.rsplit("/", 1)[-1]
            # With ``lines``, extract decompresses.
            paths.append(self.folder / str(number) / (name.removesuffix(".gz") if cut is not None else name))
        extract(archive, dict(zip(members, paths, strict=True)), cut)
        if pair.markup is None:
            return paths
        extracted = zip(paths, members, strict=True)
        return [self._plain(path, pair.markup, f"{archive}: member {name}") for path, name in extracted]

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
