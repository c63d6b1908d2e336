"""→ raw text: the parallel text of an experiment, generated or from files, one sentence a line, otherwise untouched.

Files come from a download cache. A file that lies there under its own name (``train.en.gz``) with the right digest is
used without the network, so that one can work where there is none.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from mt_scaffold.config import Config, DataFile, FileData, Languages, ParallelFiles, SyntheticData
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.files import PathLike, explain_os_error, open_output, read_pairs
from mt_scaffold.report import count_words
from mt_scaffold.synthetic import sentence_pairs

CACHE_VARIABLE = "MT_SCAFFOLD_CACHE"
TIMEOUT_SECONDS = 60

# A corpus: its name, then its pairs of lines.
Corpus = tuple[str, Iterable[tuple[bytes, bytes]]]


def default_cache() -> Path:
    """The download cache: the folder in MT_SCAFFOLD_CACHE, or else one in the user's cache folder."""
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder)
    import pooch

    return Path(pooch.os_cache("mt-scaffold"))


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
    numbers: dict[str, Any] = {"experiment": config.name, "synthetic": config.synthetic, "corpora": {}}
    if config.data.synthetic is not None:
        numbers["generator"] = {"pairs": config.data.synthetic.pairs, "seed": config.data.synthetic.seed}
    for name, pairs in _corpora(config, Path(cache) if cache is not None else None):
        numbers["corpora"][name] = _write(folder, name, config.languages, pairs)
    return numbers


def _corpora(config: Config, cache: Path | None) -> Iterator[Corpus]:
    if config.data.synthetic is not None:
        yield from _generated(config.data.synthetic, config.data.sample)
    if config.data.files is not None:
        yield from _from_files(config.data.files, config.data.sample, cache or default_cache())


def _generated(data: SyntheticData, sample: int | None) -> Iterator[Corpus]:
    """The test set first: it must not change with the number of training pairs."""
    pairs = ((source.encode() + b"\n", target.encode() + b"\n") for source, target in sentence_pairs(data.seed))
    yield "test", itertools.islice(pairs, data.test)
    yield "valid", itertools.islice(pairs, data.valid)
    yield "train", itertools.islice(pairs, min(data.pairs, sample or data.pairs))


def _from_files(data: FileData, sample: int | None, cache: Path) -> Iterator[Corpus]:
    # All files are fetched before the first is read: what is missing is found out at once.
    train, valid = _fetch_pairs(data.train, cache), _fetch_pairs(data.valid, cache)
    tests = {name: _fetch_pairs(pairs, cache) for name, pairs in data.tests.items()}
    yield "train", itertools.chain.from_iterable(itertools.islice(read_pairs(*pair), sample) for pair in train)
    yield "valid", itertools.chain.from_iterable(read_pairs(*pair) for pair in valid)
    for name, pairs in tests.items():
        yield name, itertools.chain.from_iterable(read_pairs(*pair) for pair in pairs)


def _fetch_pairs(pairs: Sequence[ParallelFiles], cache: Path) -> list[tuple[Path, Path]]:
    return [(fetch(pair.source, cache), fetch(pair.target, cache)) for pair in pairs]


def fetch(file: DataFile, cache: PathLike) -> Path:
    """The path of ``file`` on this machine, its digest checked, downloaded into ``cache`` where needed.

    Raises MTScaffoldError where it is not to be had, or has another digest.
    """
    if file.path is not None:
        _check_digest(Path(file.path), file.sha256)
        return Path(file.path)
    assert file.url is not None and file.sha256 is not None
    digest = file.sha256.lower()
    base_name = unquote(urlsplit(file.url).path).rsplit("/", 1)[-1] or "download"
    # Corpora share names such as train.en.gz, so a downloaded file carries its digest; one put there by hand need not.
    by_hand, downloaded = Path(cache, base_name), Path(cache, f"{digest[:12]}-{base_name}")
    for candidate in (by_hand, downloaded):
        if candidate.is_file() and _digest(candidate) == digest:
            return candidate
    return _download(file.url, digest, downloaded, by_hand)


def _download(url: str, digest: str, path: Path, by_hand: Path) -> Path:
    import pooch
    import requests

    pooch.get_logger().setLevel("ERROR")
    if sys.stderr.isatty():
        print(f"fetching {url}", file=sys.stderr)
    downloader = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=TIMEOUT_SECONDS)
    try:
        pooch.retrieve(url, f"sha256:{digest}", fname=path.name, path=path.parent, downloader=downloader)
    except requests.RequestException as error:
        status = error.response.status_code if error.response is not None else None
        reason = f"the server answers {status}" if status else f"no connection ({type(error).__name__})"
        found = f" (the {by_hand.name} there has another digest)" if by_hand.exists() else ""
        raise MTScaffoldError(
            f"{url}: cannot be fetched, {reason}; put the file into {by_hand.parent} as {by_hand.name}{found}"
        ) from error
    except ValueError as error:
        raise MTScaffoldError(
            f"{url}: what came has not the sha256 {digest} that the configuration says; the file was changed or damaged"
        ) from error
    except OSError as error:
        raise explain_os_error(error, error.filename or path.parent) from error
    return path


def _digest(path: Path) -> str:
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise explain_os_error(error, path) from error


def _check_digest(path: Path, digest: str | None) -> None:
    if digest is not None and (found := _digest(path)) != digest.lower():
        raise MTScaffoldError(f"{path}: its sha256 is {found}, not {digest} as the configuration says")


def _write(folder: Path, name: str, languages: Languages, pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, Any]:
    """Write one corpus, both sides or neither, and count it."""
    lines, source_words, target_words = 0, 0, 0
    with contextlib.ExitStack() as stack:
        source, target = (
            stack.enter_context(open_output(folder / f"{name}.{language}"))
            for language in (languages.source, languages.target)
        )
        for source_line, target_line in pairs:
            _write_line(source, source_line)
            _write_line(target, target_line)
            lines += 1
            source_words += count_words(source_line)
            target_words += count_words(target_line)
        if not lines:
            raise MTScaffoldError(f"{name}: the corpus is empty")
    return {"lines": lines, "words": {languages.source: source_words, languages.target: target_words}}


def _write_line(stream: BinaryIO, line: bytes) -> None:
    stream.write(line if line.endswith(b"\n") else line + b"\n")
