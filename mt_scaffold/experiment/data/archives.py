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
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration.data import UNKNOWN, Archive
from mt_scaffold.experiment.data.download import fetch
from mt_scaffold.experiment.runtime.bleu import sacrebleu_set

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


def sacrebleu_test_set(name: str, pair: str, cache: Path, folder: Path, md5: str | None = None) -> list[Path]:
    """Return the paths of the source and the references of a sacreBLEU test set (``wmt14/full``).

    A copy in sacreBLEU's own folder (the variable SACREBLEU, or ``sacrebleu`` in the download ``cache``) is preferred.
    Otherwise the archive is fetched into ``cache``, from sacreBLEU's URL and with its digest (or ``md5``), and
    sacreBLEU converts the members to plain text in the new ``folder``.
    Raises UsageError as ``sacrebleu_set`` does; MTScaffoldError as fetch and extract do.
    """
    found, references = sacrebleu_set(name, pair)
    archives = sacrebleu_archives(name, pair, md5)
    ready = Path(os.environ.get("SACREBLEU") or cache / "sacrebleu")
    if not (ready / name).is_dir() and archives:
        ready = folder / "sacrebleu"
        members = found.langpairs[pair]
        _lay_out(name, [members["path"]] if isinstance(members, dict) else members, archives, ready, cache)
    # The files that sacreBLEU scores with: its --echo ref prints only one of them, and not always the right one.
    command = [sys.executable, "-c", _PRINT_FILES, name, pair]
    environment = {**os.environ, "SACREBLEU": os.path.abspath(ready), "PYTHONUTF8": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", errors="replace")
    paths = [Path(line) for line in done.stdout.splitlines()]
    if done.returncode or len(paths) != 1 + references:
        last = done.stderr.strip().rpartition("\n")[2] or f"{len(paths) - 1} references instead of {references}"
        raise MTScaffoldError(f"{ready / name}: sacreBLEU cannot read this test set ({last}); delete the folder")
    return paths


# References are sorted, because sacreBLEU returns those of an XML file in an order that varies between runs.
_PRINT_FILES = """
import sys
from sacrebleu.dataset import DATASETS
found, pair = DATASETS[sys.argv[1]], sys.argv[2]
print(found.get_source_file(pair), *sorted(found.get_reference_files(pair)), sep="\\n")
"""


def sacrebleu_archives(name: str, pair: str, md5: str | None = None) -> list[Archive]:
    """Return the archives of a sacreBLEU test set, with its digests or ``md5``; none if it uses other files.

    Raises UsageError as ``sacrebleu_set`` does.
    """
    found, _ = sacrebleu_set(name, pair)
    if not all(url.endswith(_TAR_SUFFIXES) for url in found.data):
        return []
    digests = [md5] if md5 else found.md5 or [None] * len(found.data)
    return [
        Archive(url, md5=digest) if digest else Archive(url, sha256=UNKNOWN)
        for url, digest in zip(found.data, digests, strict=True)
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
    # In every such test set the last archive holds all sides of a pair.
    extract(path, {member: raw / member for member in members})
