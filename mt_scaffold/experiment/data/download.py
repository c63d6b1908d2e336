"""The download cache: files by URL and digest, fetched once; an interrupted download resumes.

A file already in the cache under its own name, with the right digest, is used without the network, so that
experiments run offline.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mt_scaffold.corpus.files import PathLike, explain_os_error, write_text
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration.data import UNKNOWN, Archive, DataFile
from mt_scaffold.experiment.runtime.locks import locked
from mt_scaffold.experiment.runtime.provenance import digest_of
from mt_scaffold.manifest import raw_digest

CACHE_VARIABLE = "MT_SCAFFOLD_CACHE"
TIMEOUT_SECONDS = 60
# The largest archive may take another run that long.
WAIT_SECONDS = 12 * 3600.0
_BLOCK = 1 << 20


def default_cache() -> Path:
    """Return the download cache: the folder in MT_SCAFFOLD_CACHE, or else one in the user's cache folder."""
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder)
    import pooch

    return Path(pooch.os_cache("mt-scaffold"))


def fetch(file: DataFile | Archive, cache: PathLike) -> Path:
    """Return the local path of ``file``, downloaded into ``cache`` if needed, after checking its digest.

    For ``sha256: unknown`` the digest of the first download is recorded in a file next to it, with a warning, and
    checked from then on.
    Raises MTScaffoldError if the file cannot be fetched or its digest differs.
    """
    if isinstance(file, DataFile) and file.path is not None:
        if file.sha256 is not None and (found := raw_digest(Path(file.path), "sha256")) != file.sha256.lower():
            raise MTScaffoldError(
                f"{file.path}: sha256 mismatch: found {found}, the configuration has {file.sha256}; restore the file, "
                "or correct the digest"
            )
        return Path(file.path)
    assert file.url is not None
    kind, digest = ("sha256", file.sha256) if file.sha256 is not None else ("md5", getattr(file, "md5", None))
    assert digest is not None
    base_name = unquote(urlsplit(file.url).path).rsplit("/", 1)[-1] or "download"
    if digest == UNKNOWN:
        return _fetch_unknown(file.url, Path(cache, base_name))
    digest = digest.lower()
    # Corpora share names such as train.en.gz, so a download's name has its digest; a file put there by hand needs none.
    by_hand, downloaded = Path(cache, base_name), Path(cache, f"{digest[:12]}-{base_name}")
    for candidate in (by_hand, downloaded):
        if candidate.is_file():
            if raw_digest(candidate, kind) == digest:
                return candidate
            print(f"mt-scaffold: {candidate}: {kind} mismatch (expected {digest}); file ignored", file=sys.stderr)
    return _download(file.url, f"{kind}:{digest}", downloaded, by_hand)


def _fetch_unknown(url: str, by_hand: Path) -> Path:
    """Fetch a file without a published digest: that of the first download is recorded and checked from then on."""
    downloaded = by_hand.with_name(f"{digest_of([url.encode()])[:12]}-{by_hand.name}")
    path = next((path for path in (by_hand, downloaded) if path.is_file()), None)
    path = path or _download(url, None, downloaded, by_hand)
    digest, record = raw_digest(path, "sha256"), path.with_name(f"{path.name}.sha256")
    if not record.exists():
        # In sha256sum's own format, so that `sha256sum -c` can check it.
        write_text(record, f"{digest}  {path.name}\n")
        print(
            f"mt-scaffold: {url}: no digest is published; its sha256 {digest} is recorded in {record} and checked "
            "from now on",
            file=sys.stderr,
        )
    elif (recorded := record.read_text(encoding="utf-8").split()[:1]) != [digest]:
        raise MTScaffoldError(
            f"{path}: sha256 mismatch: found {digest}, {record.name} has {' '.join(recorded) or 'nothing'}; "
            "delete the file to fetch it again, and its record too if you trust the new one"
        )
    return path


def _download(url: str, digest: str | None, path: Path, by_hand: Path) -> Path:
    """Fetch ``url`` to ``path``; only a complete file with the right digest gets that name."""
    import pooch
    import requests

    pooch.get_logger().setLevel("ERROR")
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # One download at a time: a second run waits, and then finds the first one's file.
        with locked(path.parent, "another run is downloading; waiting for it", WAIT_SECONDS):
            if digest is not None or not path.exists():
                pooch.retrieve(url, digest, fname=path.name, path=path.parent, downloader=_ResumingDownloader(part))
    except requests.RequestException as error:
        status = error.response.status_code if error.response is not None else None
        reason = f"the server answers {status}" if status else f"no connection ({type(error).__name__})"
        found = f" (the {by_hand.name} there has another digest)" if by_hand.exists() else ""
        kept = f" ({part.stat().st_size} bytes are kept; the download resumes from there)" if part.exists() else ""
        raise MTScaffoldError(
            f"{url}: cannot be fetched, {reason}; run again{kept}, or put the file into {by_hand.parent} as "
            f"{by_hand.name}{found}"
        ) from error
    except ValueError as error:
        kind, _, value = (digest or "").partition(":")
        raise MTScaffoldError(
            f"{url}: {kind} mismatch: the configuration has {value}; the download is discarded: run again, or correct "
            "the digest if the file itself was changed"
        ) from error
    except OSError as error:
        raise explain_os_error(error, error.filename or path.parent) from error
    return path


class _ResumingDownloader:
    """A pooch downloader for large files: bytes received before an interruption stay in ``part``."""

    def __init__(self, part: Path) -> None:
        self.part = part

    def __call__(self, url: str, output_file: str, _pooch: Any) -> None:
        import requests

        if self.part.is_symlink():  # not ours: do not write to its target
            self.part.unlink()
        while True:
            before = self._size()
            try:
                self._fetch_rest(url)
                break
            except (requests.ConnectionError, requests.Timeout):
                # Retry for as long as every attempt makes progress.
                if self._size() <= before:
                    raise
        os.replace(self.part, output_file)

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _fetch_rest(self, url: str) -> None:
        """Append the missing bytes to ``part``. Raises requests' errors; ConnectionError if it stays incomplete."""
        import requests
        import urllib3.exceptions

        have = self._size()
        # identity: the digest is that of the file as stored, so the server must not recompress it.
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_SECONDS) as response:
            if response.status_code == requests.codes.requested_range_not_satisfiable and have:
                if response.headers.get("Content-Range") != f"bytes */{have}":
                    # ``part`` is not the start of this file, so fetch it from the beginning.
                    self.part.unlink()
                    self._fetch_rest(url)
                return
            response.raise_for_status()
            if response.status_code != requests.codes.partial_content:
                have = 0
            length = response.headers.get("Content-Length")
            total = have + int(length) if length is not None else None
            try:
                mode = "ab" if have else "wb"
                with open(self.part, mode, opener=_open_no_link) as stream, _progress(url, have, total) as progress:
                    for block in response.raw.stream(_BLOCK, decode_content=False):
                        stream.write(block)
                        progress.update(len(block))
            except urllib3.exceptions.HTTPError as error:
                raise requests.ConnectionError(error) from error
        if total is not None and self._size() < total:
            raise requests.ConnectionError(f"{self._size()} of {total} bytes")


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _progress(url: str, have: int, total: int | None) -> Any:
    """Return a progress bar on a terminal; otherwise print one line and return a disabled bar."""
    from tqdm import tqdm

    if not sys.stderr.isatty():
        print(f"fetching {url} ({'?' if total is None else total} bytes, {have} of them already here)", file=sys.stderr)
    name = url.rsplit("/", 1)[-1]
    return tqdm(
        desc=name, initial=have, total=total, unit="B", unit_scale=True, leave=False, disable=not sys.stderr.isatty()
    )
