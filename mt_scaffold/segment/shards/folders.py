"""The folder that shards are written to: on a file system, or in a store that fsspec knows."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from mt_scaffold.corpus.files import (
    PathLike,
    explain_os_error,
    make_folder,
    shown,
    temporary_folder,
)
from mt_scaffold.corpus.storage.remote import (
    create_remote,
    creates_exclusively,
    is_remote,
    read_remote,
    remote_names,
    remote_size,
    remove_remote,
    upload,
    write_remote,
)
from mt_scaffold.errors import MTScaffoldError

# In the folder, until all shards are finished: who encodes which shard.
CLAIMS = ".claims"
_PARTS = ".parts-"
_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK, errno.EACCES)


class Folder(Protocol):
    """What sharing a folder needs of it. A name is that of a file, or ``.claims/`` and that of a file.

    exclusive: whether ``create`` succeeds for only one of several processes. Every method raises MTScaffoldError where
    the folder cannot be read or written.
    """

    name: str
    exclusive: bool

    def path(self, name: str) -> str:
        """Return the path or URL of a file."""
        ...

    def prepare(self) -> None:
        """Create the folder, where it is one that needs creating."""
        ...

    def names(self, below: str = "") -> set[str]:
        """Return the names of the files in the folder, or in the folder ``below`` it."""
        ...

    def size(self, name: str) -> int | None:
        """Return the size of a file in bytes; None if there is none."""
        ...

    def read(self, name: str) -> bytes | None:
        """Return the content of a small file; None if there is none."""
        ...

    def create(self, name: str, content: bytes) -> bool:
        """Write a small file, completely or not at all, unless there is one; return whether there was none."""
        ...

    def replace(self, name: str, content: bytes) -> None:
        """Write a small file, completely or not at all, in place of one that is there."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...

    def beat(self, name: str, content: bytes) -> bool:
        """Change the stamp of a small file, whose content is this; return False if there is none any more."""
        ...

    def stamp(self, name: str) -> object:
        """Return a value that changes with every beat; None if there is no such file."""
        ...

    def staging(self, claim: str) -> AbstractContextManager[str]:
        """Give the path of an empty folder on a file system for the holder of a claim, which is removed at the end."""
        ...

    def discard(self, claim: str) -> None:
        """Remove what the holder of a claim has left of its folder."""
        ...

    def publish(self, path: str, name: str) -> None:
        """Move a file out of a staging folder to its name."""
        ...

    def clear_claims(self) -> None:
        """Remove the folder of claims."""
        ...


def is_folder(path: PathLike) -> bool:
    """Return whether an output is a folder: one that exists, a name that ends in ``/``, a URL without ``.bin``."""
    name = os.fspath(path)
    return name.endswith("/") or (not name.endswith(".bin") if is_remote(name) else os.path.isdir(name))


def folder_at(path: PathLike) -> Folder:
    """Return the folder with this path or URL, whether it exists or not."""
    name = os.fspath(path)
    return _RemoteFolder(name) if is_remote(name) else _LocalFolder(name)


class _LocalFolder:
    exclusive = True

    def __init__(self, name: str) -> None:
        self.name = shown(name)
        self._root = name

    def path(self, name: str) -> str:
        return os.path.join(self._root, name)

    def prepare(self) -> None:
        make_folder(self._root)

    def names(self, below: str = "") -> set[str]:
        try:
            return set(os.listdir(self.path(below)))
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise explain_os_error(error, self.path(below)) from error

    def size(self, name: str) -> int | None:
        try:
            return os.stat(self.path(name)).st_size
        except FileNotFoundError:
            return None
        except OSError as error:
            raise explain_os_error(error, self.path(name)) from error

    def read(self, name: str) -> bytes | None:
        try:
            with open(self.path(name), "rb") as stream:
                return stream.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise explain_os_error(error, self.path(name)) from error

    def create(self, name: str, content: bytes) -> bool:
        """Link a complete file to the name, which network file systems do atomically too."""
        path = self.path(name)
        try:
            with self._written(name, content) as complete:
                try:
                    os.link(complete, path)
                except OSError as error:
                    # A file server that is asked again, because its answer was lost, says that the file exists.
                    if os.stat(complete).st_nlink == 2:
                        return True
                    if error.errno in _NO_LINKS:
                        return _created(path, content)
                    if error.errno == errno.EEXIST:
                        return False
                    raise
        except FileNotFoundError:
            # The last process removed the folder of claims at this moment.
            return self.create(name, content) if os.path.isdir(self._root) else self._missing()
        except OSError as error:
            raise explain_os_error(error, path) from error
        return True

    @contextlib.contextmanager
    def _written(self, name: str, content: bytes) -> Iterator[str]:
        """Write a file for ``name`` among the claims, under a name that no process on any machine uses.

        It is removed at the end; what a killed process leaves of it, with the claims.
        """
        folder = self.path(CLAIMS)
        path = os.path.join(folder, f"{os.path.basename(name)}.new-{uuid.uuid4().hex}")
        os.makedirs(folder, exist_ok=True)
        try:
            with open(path, "xb") as stream:
                stream.write(content)
            yield path
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def _missing(self) -> bool:
        raise MTScaffoldError(f"{self.name}: the folder was removed meanwhile")

    def replace(self, name: str, content: bytes) -> None:
        try:
            with self._written(name, content) as complete:
                _replace(complete, self.path(name))
        except OSError as error:
            raise explain_os_error(error, self.path(name)) from error

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(name))

    def beat(self, name: str, content: bytes) -> bool:
        try:
            os.utime(self.path(name))
        except FileNotFoundError:
            return False
        return True

    def stamp(self, name: str) -> object:
        # Opening asks the server of a network file system; its client may remember what stat returns.
        try:
            with open(self.path(name), "rb") as stream:
                return os.fstat(stream.fileno()).st_mtime_ns
        except FileNotFoundError:
            return None

    @contextlib.contextmanager
    def staging(self, claim: str) -> Iterator[str]:
        path = self.path(f"{claim}{_PARTS}{uuid.uuid4().hex}")
        make_folder(path)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def discard(self, claim: str) -> None:
        for name in self.names(CLAIMS):
            if f"{CLAIMS}/{name}".startswith(f"{claim}{_PARTS}"):
                shutil.rmtree(self.path(f"{CLAIMS}/{name}"), ignore_errors=True)

    def publish(self, path: str, name: str) -> None:
        try:
            _replace(path, self.path(name))
        except OSError as error:
            raise explain_os_error(error, self.path(name)) from error

    def clear_claims(self) -> None:
        shutil.rmtree(self.path(CLAIMS), ignore_errors=True)


def _replace(path: str, target: str) -> None:
    """Rename a file, which gets the mode of one that it replaces."""
    with contextlib.suppress(FileNotFoundError):
        shutil.copymode(target, path)
    os.replace(path, target)


def _created(path: str, content: bytes) -> bool:
    """Create a file where there are no hard links: at once, but its content only follows."""
    try:
        with open(path, "xb") as stream:
            stream.write(content)
    except FileExistsError:
        return False
    return True


class _RemoteFolder:
    def __init__(self, url: str) -> None:
        self.name = url.rstrip("/")
        self.exclusive = creates_exclusively(url)

    def path(self, name: str) -> str:
        return f"{self.name}/{name}" if name else self.name

    def prepare(self) -> None:
        """Stores have no folders."""

    def names(self, below: str = "") -> set[str]:
        return remote_names(self.path(below))

    def size(self, name: str) -> int | None:
        return remote_size(self.path(name))

    def read(self, name: str) -> bytes | None:
        return read_remote(self.path(name))

    def create(self, name: str, content: bytes) -> bool:
        return create_remote(self.path(name), content)

    def replace(self, name: str, content: bytes) -> None:
        write_remote(self.path(name), content)

    def remove(self, name: str) -> None:
        remove_remote(self.path(name))

    def beat(self, name: str, content: bytes) -> bool:
        if self.size(name) is None:
            return False
        write_remote(self.path(name), content + uuid.uuid4().hex.encode())
        return True

    def stamp(self, name: str) -> object:
        return self.read(name)

    @contextlib.contextmanager
    def staging(self, claim: str) -> Iterator[str]:
        with tempfile.TemporaryDirectory(dir=temporary_folder()) as path:
            yield path

    def discard(self, claim: str) -> None:
        """It is on the machine of the holder."""

    def publish(self, path: str, name: str) -> None:
        upload(path, self.path(name))
        os.unlink(path)

    def clear_claims(self) -> None:
        for name in self.names(CLAIMS):
            self.remove(f"{CLAIMS}/{name}")
