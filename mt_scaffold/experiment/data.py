"""→ raw text: the parallel text of an experiment, generated or from files and archives, otherwise untouched."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from mt_scaffold.experiment.archives import extract, sacrebleu_archives, sacrebleu_test_set
from mt_scaffold.experiment.configuration import (
    ArchiveData,
    ArchivePair,
    ArchiveTest,
    Config,
    FileData,
    Languages,
    ParallelFiles,
    SyntheticData,
)
from mt_scaffold.experiment.download import default_cache, fetch
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.files import PathLike, explain_os_error, open_output, read_pairs
from mt_scaffold.experiment.data_report import count_words
from mt_scaffold.experiment.synthetic import sentence_pairs

# Beside the raw text: the members of one archive at a time.
_MEMBERS = ".members"
Pairs = Iterable[tuple[bytes, bytes]]
# A corpus: its name, then the parts that it is put together from, each with where it comes from.
Corpus = tuple[str, Iterable[tuple[str, Pairs]]]


def get_data(config: Config, output_dir: PathLike, cache: PathLike | None = None) -> dict[str, Any]:
    """Write the raw text of ``config`` to ``output_dir`` and return its numbers.

    Writes ``{train,valid,TEST}.{SOURCE,TARGET}`` (UTF-8 as it comes, LF at the end of every line); the folder is made
    where there is none. The dictionary returned says where the text comes from and how many lines and words each
    corpus has. ``cache`` is the download cache (default: default_cache()).
    Raises MTScaffoldError for a file that cannot be had, has another digest than the configuration says, or has
    another number of lines than its other side.
    """
    folder = Path(output_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise explain_os_error(error, folder) from error
    numbers: dict[str, Any] = {"experiment": config.name, "synthetic": config.synthetic, "corpora": {}, "parts": {}}
    if config.data.synthetic is not None:
        numbers["generator"] = {"pairs": config.data.synthetic.pairs, "seed": config.data.synthetic.seed}
    overlap = _Overlap()
    try:
        for name, parts in _corpora(config, folder, Path(cache) if cache is not None else None):
            watched = overlap.watch(name, parts)
            numbers["corpora"][name], numbers["parts"][name] = _write(folder, name, config.languages, watched)
    finally:
        shutil.rmtree(folder / _MEMBERS, ignore_errors=True)
    numbers["test_overlap"] = overlap.counts()
    numbers["warnings"] = overlap.warnings()
    for warning in numbers["warnings"]:
        print(f"mt-scaffold: warning: {warning}", file=sys.stderr)
    return numbers


class _Overlap:
    """Counts the test sentences that occur in the training data; the test sets must pass before it."""

    def __init__(self) -> None:
        self._tests: dict[str, list[tuple[bytes, bytes]]] = {}
        self._sources: dict[bytes, bool] = {}
        self._targets: dict[bytes, bool] = {}
        self._pairs: dict[tuple[bytes, bytes], bool] = {}

    def watch(self, corpus: str, parts: Iterable[tuple[str, Pairs]]) -> Iterator[tuple[str, Pairs]]:
        """The same parts, looked at as they pass."""
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

    def counts(self) -> dict[str, dict[str, int]]:
        """Test set → its lines, and those whose source, target, or both as a pair occur in the training data."""
        return {
            name: {
                "lines": len(test),
                "source_in_train": sum(self._sources[source] for source, _ in test),
                "target_in_train": sum(self._targets[target] for _, target in test),
                "pair_in_train": sum(self._pairs[pair] for pair in test),
            }
            for name, test in self._tests.items()
        }

    def warnings(self) -> list[str]:
        """One line for each test set that the training data holds some of."""
        return [
            f"{name}: of its {count['lines']} sentences {count['source_in_train']} occur in the training data as a "
            f"source, {count['target_in_train']} as a target, {count['pair_in_train']} with the same translation"
            for name, count in self.counts().items()
            if count["source_in_train"] or count["target_in_train"]
        ]


def fetch_data(config: Config, cache: PathLike | None = None) -> list[Path]:
    """Fetch everything that get_data needs from the network into ``cache`` (default: default_cache()); the paths.

    For machines without a network, whose cache is filled from elsewhere. Raises MTScaffoldError as fetch does.
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
    """The test sets first: what of them occurs in the training data is looked for while that passes."""
    data = config.data
    if data.synthetic is not None:
        yield from _generated(data.synthetic, data.sample)
    if data.files is not None:
        yield from _from_files(data.files, data.sample, cache or default_cache())
    if data.archives is not None:
        yield from _from_archives(data.archives, config.languages, data.sample, folder, cache or default_cache())


def _generated(data: SyntheticData, sample: int | None) -> Iterator[Corpus]:
    """The test set comes first: it must not change with the number of training pairs."""
    pairs = ((source.encode() + b"\n", target.encode() + b"\n") for source, target in sentence_pairs(data.seed))
    yield "test", [("generated", itertools.islice(pairs, data.test))]
    yield "valid", [("generated", itertools.islice(pairs, data.valid))]
    yield "train", [("generated", itertools.islice(pairs, min(data.pairs, sample or data.pairs)))]


def _from_files(data: FileData, sample: int | None, cache: Path) -> Iterator[Corpus]:
    # All files are fetched before the first is read: what is missing is found out at once.
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
    # The same here: all archives before the first is read.
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
        # What is cut to some lines is decompressed on the way.
        paths.append(folder / side / (name.removesuffix(".gz") if lines is not None else name))
    extract(archive, dict(zip((pair.source, pair.target), paths, strict=True)), lines)
    return read_pairs(*paths)


@contextlib.contextmanager
def _empty_folder(folder: Path) -> Iterator[None]:
    """``folder``, new, and removed at the end; what a killed run has left there goes too."""
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
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Write one corpus, both sides or neither; its numbers, and the lines of its parts."""
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
                source_words += count_words(source_line)
                target_words += count_words(target_line)
            origins.append({"from": origin, "lines": lines - before})
        if not lines:
            raise MTScaffoldError(f"{name}: the corpus is empty")
    return {"lines": lines, "words": {languages.source: source_words, languages.target: target_words}}, origins


def _write_line(stream: BinaryIO, line: bytes) -> None:
    stream.write(line if line.endswith(b"\n") else line + b"\n")
