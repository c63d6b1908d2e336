"""Where a result comes from: versions, digests, and the configuration as it was resolved."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from typing import TYPE_CHECKING

from mt_scaffold.files import PathLike, open_input, write_text

if TYPE_CHECKING:
    from mt_scaffold.experiment.configuration import Config

# What a score may depend on, by the names of the distributions.
_DISTRIBUTIONS = ("mt-scaffold", "torch", "fairseq-fixed", "sacrebleu", "sacremoses", "numpy", "snakemake")


def versions() -> dict[str, str]:
    """The versions of Python and of the installed packages that a result may depend on, by name."""
    found = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def sha256(path: PathLike) -> str:
    """The SHA-256 digest of what is in ``path`` (of the text, where the file is compressed), in hexadecimal."""
    digest = hashlib.sha256()
    with open_input(path) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def write_config(config: Config, path: PathLike) -> None:
    """Write ``config``, every default filled in, as YAML that load_config reads, under comments with the versions."""
    import yaml

    heading = "".join(f"# {name} {version}\n" for name, version in versions().items())
    write_text(path, heading + yaml.safe_dump(config.to_dict(), sort_keys=False, allow_unicode=True))
