"""Files named by URLs, ``s3://bucket/name``, in stores that fsspec knows: S3, Google Cloud Storage, the Hub, memory.

Credentials, endpoints and other settings are those of fsspec (``~/.config/fsspec``, ``FSSPEC_S3_ENDPOINT_URL``) and of
each store's package (``AWS_ACCESS_KEY_ID``).
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from typing import Any

from mt_scaffold.errors import MTScaffoldError

_URL = re.compile(r"([a-z][a-z0-9+.-]+)://")
# Bytes fetched at a time.
_BLOCK = 1 << 23


def is_remote(path: object) -> bool:
    """Return whether a path is a URL, such as ``s3://bucket/name``.

    >>> is_remote("s3://bucket/train.jsonl.zst"), is_remote("train.jsonl.zst")
    (True, False)
    """
    return isinstance(path, str) and _URL.match(path) is not None


@contextlib.contextmanager
def _explained(url: str) -> Iterator[None]:
    """Turn every error of a store into one line; stores' exceptions have no common base class."""
    try:
        yield
    except MTScaffoldError:
        raise
    except FileNotFoundError as error:
        raise MTScaffoldError(f"{url}: no such file") from error
    except Exception as error:
        reason = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
        raise MTScaffoldError(f"{url}: {reason.splitlines()[0]}") from error


def store_of(url: str) -> tuple[Any, str]:
    """Return the file system of fsspec for a URL, and the path within it.

    Raises MTScaffoldError if fsspec, or its package for the store, is not installed.
    """
    try:
        import fsspec.core
    except ModuleNotFoundError as error:
        raise MTScaffoldError(
            f"{url}: URLs need the Python package fsspec: in the source folder, pip install '.[remote]'"
        ) from error
    with _explained(url):
        try:
            # No cache, as other processes change the store.
            store, path = fsspec.core.url_to_fs(url, use_listings_cache=False)
        except ImportError as error:
            reason = str(error).rstrip(".").splitlines()[0]
            raise MTScaffoldError(f"{url}: {reason}: in the source folder, pip install '.[remote]'") from error
    return store, path


def open_remote(url: str) -> io.BufferedReader:
    """Open a file for reading bytes, as stored. Raises MTScaffoldError if it cannot be read, now or later."""
    store, path = store_of(url)
    with _explained(url):
        stream = store.open(path, "rb", block_size=_BLOCK)
        # Some stores open a folder as an empty file.
        _refuse_folder(url, getattr(stream, "details", None))
        return io.BufferedReader(_RemoteFile(stream, url), 1 << 18)


class _RemoteFile(io.RawIOBase):
    def __init__(self, stream: Any, url: str) -> None:
        self._stream = stream
        self.name = url

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._stream.seekable())

    def readinto(self, buffer: Any, /) -> int:
        with _explained(self.name):
            data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        with _explained(self.name):
            return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def remote_matches(url: str) -> tuple[list[str], list[str]]:
    """Return the files and the folders that a glob in a URL matches, as URLs, sorted."""
    store, path = store_of(url)
    with _explained(url):
        found = sorted((store.unstrip_protocol(name), each) for name, each in store.glob(path, detail=True).items())
        folders = [name for name, each in found if each["type"] == "directory"]
        return [name for name, each in found if each["type"] != "directory"], folders


def remote_size(url: str) -> int:
    """Return the size of a file in bytes. Raises MTScaffoldError if there is no such file."""
    store, path = store_of(url)
    with _explained(url):
        found = store.info(path)
        _refuse_folder(url, found)
        return int(found["size"])


def _refuse_folder(url: str, details: object) -> None:
    if isinstance(details, dict) and details.get("type") == "directory":
        raise MTScaffoldError(f"{url}: a folder; name its files, such as {url.rstrip('/')}/*.jsonl")


def remote_exists(url: str) -> bool:
    """Return whether there is a file or folder of this name."""
    store, path = store_of(url)
    with _explained(url):
        return bool(store.exists(path))


def name_of(url: str) -> str:
    """Return the name whose ending gives a file's format: an HTTP URL without its query or fragment.

    >>> name_of("https://host/train.jsonl.gz?signature=1"), name_of("s3://bucket/what?.gz")
    ('https://host/train.jsonl.gz', 's3://bucket/what?.gz')
    """
    return re.split("[?#]", url, maxsplit=1)[0] if url.startswith(("http://", "https://")) else url


def remote_files(url: str) -> dict[str, int]:
    """Return the files in a folder, by name, with their sizes in bytes; none if there is no such folder."""
    store, path = store_of(url)
    with _explained(url):
        try:
            found = store.ls(path, detail=True)
        except FileNotFoundError:
            return {}
        files = [each for each in found if each["type"] != "directory"]
        return {each["name"].rstrip("/").rpartition("/")[2]: int(each["size"]) for each in files}


def upload(local: str, url: str) -> None:
    """Copy a file to a URL, where it appears when complete."""
    store, path = store_of(url)
    with _explained(url):
        store.put_file(local, path)


def remove_remote(url: str) -> None:
    """Remove a file, if it is there."""
    store, path = store_of(url)
    with _explained(url), contextlib.suppress(FileNotFoundError):
        store.rm_file(path)
