"""The provenance of a result: versions and digests."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from collections.abc import Iterable

from mt_scaffold.corpus.files import PathLike, open_input

# The distributions that a score may depend on.
_DISTRIBUTIONS = (
    "mt-scaffold",
    "torch",
    "fairseq-fixed",
    "sacrebleu",
    "sacremoses",
    "sentencepiece",
    "numpy",
    "snakemake",
)


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages that a result may depend on, by name."""
    found = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def digest_of(blocks: Iterable[bytes]) -> str:
    """Return the SHA-256 digest of the concatenated ``blocks``, in hexadecimal."""
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


def sha256(path: PathLike) -> str:
    """Return the SHA-256 digest of the content of ``path``, decompressed if it is ``.gz``, in hexadecimal."""
    with open_input(path) as stream:
        return digest_of(iter(lambda: stream.read(1 << 20), b""))
