"""Extract named members of tar archives, among them the test sets that sacreBLEU distributes in such archives."""

from __future__ import annotations

import contextlib
import difflib
import gzip
import itertools
import os
import shutil
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, cast

from mt_scaffold.corpus.files import PathLike, explain_os_error, open_output
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration.data import UNKNOWN, Archive
from mt_scaffold.experiment.data.download import fetch

_TAR_SUFFIXES = (".tgz", ".tar.gz", ".tar", ".tar.bz2", ".tar.xz")


def extract(archive: PathLike, members: Mapping[str, PathLike], lines: int | None = None) -> None:
    """Copy the ``members`` of a tar archive, plain or compressed, to the given paths: name in the archive → path.

    The archive is read once, as a stream, up to the checksum at its end; no other member is ever written, whatever its
    name. With ``lines``, only the first ``lines`` lines are copied and reading stops after the last member; a ``.gz``
    member is then decompressed, so its path should not end in ``.gz``.
    Raises MTScaffoldError for a member that is missing or not a regular file, and for a damaged or truncated archive.
    """
    wanted = dict(members)
    others = []
    try:
        with _open_checked(archive) as stream, tarfile.open(fileobj=stream, mode="r|*") as tar:
            for entry in tar:
                name = entry.name.removeprefix("./")
                if name not in wanted:
                    others.append(name)
                    continue
                content = tar.extractfile(entry) if entry.isfile() else None
                if content is None:
                    raise MTScaffoldError(
                        f"{archive}: member {name} is not a regular file; correct its name in the configuration"
                    )
                with content, open_output(wanted.pop(name), compress=False) as output:
                    _copy(content, output, name, lines)
                if not wanted and lines is not None:
                    return
            while stream.read(1 << 20):
                pass
    except MTScaffoldError:
        raise
    # tarfile lets some errors of malformed headers escape: non-numeric sizes, a thousand names in a row.
    except (tarfile.TarError, EOFError, zlib.error, ValueError, LookupError, ArithmeticError, RecursionError) as error:
        raise _damaged(archive, error) from error
    except OSError as error:
        # Errors that gzip and bzip2 raise themselves have no errno.
        raise (_damaged(archive, error) if error.errno is None else explain_os_error(error, archive)) from error
    if not wanted:
        return
    missing = next(iter(wanted))
    near = difflib.get_close_matches(missing, others, n=3, cutoff=0.4)
    raise MTScaffoldError(
        f"{archive}: no member {missing}; correct its name in the configuration (the archive holds {len(others)} others"
        + (f", such as {', '.join(near)})" if near else ")")
    )


@contextlib.contextmanager
def _open_checked(archive: PathLike) -> Iterator[IO[bytes]]:
    """Open an archive, decompressing gzip here: the gzip module verifies the checksum, tarfile does not."""
    with open(archive, "rb") as stream:
        compressed = stream.read(2) == b"\x1f\x8b"
        stream.seek(0)
        yield cast(IO[bytes], gzip.GzipFile(fileobj=stream)) if compressed else stream


def _copy(stream: IO[bytes], output: IO[bytes], name: str, lines: int | None) -> None:
    if lines is None:
        shutil.copyfileobj(stream, output, 1 << 20)
        return
    text = gzip.GzipFile(fileobj=stream) if name.endswith(".gz") else stream
    output.writelines(itertools.islice(text, lines))


def _damaged(archive: PathLike, error: Exception) -> MTScaffoldError:
    return MTScaffoldError(f"{archive}: damaged or truncated ({error}); delete it, and the next run fetches it again")


def sacrebleu_test_set(
    name: str, source: str, target: str, cache: Path, folder: Path, md5: str | None = None
) -> tuple[Path, Path]:
    """Write source and reference of a sacreBLEU test set (``wmt14/full``) to the new ``folder`` and return their paths.

    A copy in sacreBLEU's own folder (the variable SACREBLEU, or ``sacrebleu`` in the download ``cache``) is preferred.
    Otherwise the archive is fetched into ``cache``, from sacreBLEU's URL and with its digest (or ``md5``), and
    sacreBLEU converts the members to plain text.
    Raises UsageError for a name or language pair that sacreBLEU does not know; MTScaffoldError as fetch and extract do.
    """
    from sacrebleu.dataset import DATASETS

    archives = sacrebleu_archives(name, md5)
    pair, known = f"{source}-{target}", DATASETS[name].langpairs
    if pair not in known:
        raise UsageError(f"sacreBLEU test set {name}: no language pair {pair}; choose one of {', '.join(known)}")
    ready = Path(os.environ.get("SACREBLEU") or cache / "sacrebleu")
    if not (ready / name).is_dir() and archives:
        ready = folder / "sacrebleu"
        _lay_out(name, known[pair], archives, ready, cache)
    paths = folder / f"{pair}.{source}", folder / f"{pair}.{target}"
    for path, field in zip(paths, ("src", "ref"), strict=True):
        command = [sys.executable, "-m", "sacrebleu", "-t", name, "-l", pair, "--echo", field]
        environment = {**os.environ, "SACREBLEU": os.path.abspath(ready), "PYTHONUTF8": "1"}
        with open_output(path) as output:
            done = subprocess.run(command, env=environment, stdout=output, stderr=subprocess.PIPE)
        if done.returncode:
            last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise MTScaffoldError(f"{ready / name}: sacreBLEU cannot read this test set ({last}); delete the folder")
    return paths


def sacrebleu_archives(name: str, md5: str | None = None) -> list[Archive]:
    """Return the archives of a sacreBLEU test set, with its digests or ``md5``; none if it uses other files.

    Raises UsageError for a name that sacreBLEU does not know.
    """
    from sacrebleu.dataset import DATASETS

    if name not in DATASETS:
        near = difflib.get_close_matches(name, DATASETS, n=1)
        hint = f"did you mean {near[0]}?" if near else "list them with: sacrebleu --list"
        raise UsageError(f"sacreBLEU has no test set {name}; {hint}")
    urls = DATASETS[name].data
    if not all(url.endswith(_TAR_SUFFIXES) for url in urls):
        return []
    digests = [md5] if md5 else DATASETS[name].md5 or [None] * len(urls)
    return [
        Archive(url, md5=digest) if digest else Archive(url, sha256=UNKNOWN)
        for url, digest in zip(urls, digests, strict=True)
    ]


def _lay_out(name: str, members: Sequence[str], archives: Sequence[Archive], folder: Path, cache: Path) -> None:
    """Put a test set's archives and ``members`` where sacreBLEU itself would.

    sacreBLEU's downloader cannot resume, and treats a partial archive as complete.
    """
    raw = folder / name / "raw"
    for member in members:
        (raw / member).parent.mkdir(parents=True, exist_ok=True)
    for archive in archives:
        path = fetch(archive, cache)
        (raw / f"{name.replace('/', '_')}.{archive.url.rsplit('/', 1)[-1]}").symlink_to(path.resolve())
    # In every such test set the last archive holds both sides of a pair.
    extract(path, {member: raw / member for member in members})
