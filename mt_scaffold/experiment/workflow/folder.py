"""The folder of an experiment that runs: its lock, and the resolved configuration in it."""

from __future__ import annotations

from typing import Any

from mt_scaffold.corpus.files import PathLike, make_folder, write_text
from mt_scaffold.experiment.configuration import Experiment
from mt_scaffold.experiment.configuration.layout import Layout
from mt_scaffold.experiment.runtime.locks import Lock, take_lock
from mt_scaffold.experiment.runtime.provenance import versions


def open_folder(layout: Layout[Any]) -> Lock:
    """Create and lock the folder, write the resolved configuration, and return the lock; closing it releases it.

    Raises MTScaffoldError if another run is using the folder, or it cannot be written to.
    """
    make_folder(layout.folder)
    lock = take_lock(layout.folder, "another run is working in this folder; wait until it ends, or stop it")
    write_config(layout.config, layout.config_file)
    return lock


def write_config(config: Experiment, path: PathLike) -> None:
    """Write ``config`` with all defaults as YAML for load_experiment, below comments with the versions."""
    import yaml

    heading = "".join(f"# {name} {version}\n" for name, version in versions().items())
    write_text(path, heading + yaml.safe_dump(config.to_dict(), sort_keys=False, allow_unicode=True))
