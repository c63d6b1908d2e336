"""The folder of an experiment, whatever its task: what may be overridden, its lock, and the paths that all have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import PathLike, make_folder, write_text
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import Experiment, load_experiment
from mt_scaffold.experiment.configuration.yaml_file import typed
from mt_scaffold.experiment.runtime.locks import Lock, take_lock
from mt_scaffold.experiment.runtime.provenance import versions

COMPARISON_KINDS = ("txt", "md", "json", "csv")
CONFIG = "config.yaml"
# In the folder of a training.
CHECKPOINTS, TRAINING_COMMAND, TRAINING_LOG, TRAINING_REPORT = (
    "checkpoints",
    "command.txt",
    "train.log",
    "training.json",
)
# The short names that --config accepts.
_SHORT = {"sample": ("data", "sample"), "batch": ("train", "batch")}


class ExperimentFolder:
    """The paths that the folder of every experiment has."""

    folder: Path

    @property
    def config_file(self) -> Path:
        """The resolved configuration."""
        return self.folder / CONFIG

    def codes(self, name: str) -> Path:
        """A codes file (``CodesSetting.name``)."""
        return self.folder / "codes" / f"{name}.codes"

    def comparison(self, kind: str) -> Path:
        """The comparison of all systems in one of COMPARISON_KINDS."""
        return self.folder / f"comparison.{kind}"

    @property
    def statistics(self) -> Path:
        """The numbers that are shown beside the scores."""
        return self.folder / "statistics.json"

    @property
    def figures(self) -> Path:
        """The folder of the figures."""
        return self.folder / "figures"

    def log(self, name: str) -> Path:
        """The log of a step."""
        return self.folder / "logs" / f"{name}.log"

    def step_report(self, name: str) -> Path:
        """The step report of a data step: ``get-data``, ``tokenise-PART.LANGUAGE``, ``clean-PART``."""
        return self.folder / "logs" / f"{name}.json"


def open_folder(folder: Path, config: Experiment) -> Lock:
    """Create the folder, lock it, write the resolved configuration and return the lock, which closing releases.

    Raises MTScaffoldError where another run is using the folder, or it cannot be written to.
    """
    make_folder(folder)
    lock = take_lock(folder, "another run is working in this folder; wait until it ends, or stop it")
    write_config(config, folder / CONFIG)
    return lock


def read_folder(folder: PathLike) -> Experiment:
    """Return the configuration in the folder of an experiment that has been started.

    Raises MTScaffoldError for a folder that is none of an experiment, and UsageError as load_experiment does.
    """
    place = Path(folder)
    if not (place / CONFIG).is_file():
        raise MTScaffoldError(f"{folder}: not the folder of an experiment (no {CONFIG}); give experiments/NAME")
    return load_experiment(place / CONFIG)


def plan_experiment(
    configurations: Sequence[PathLike], settings: Mapping[str, Any]
) -> tuple[Path, Experiment, Path | None]:
    """Return the folder of an experiment to run, its configuration, and its download cache (None: the default one).

    configurations: exactly one configuration file. settings: the values of ``--config``, as text or already typed:
    ``output`` (folder; default: experiments/NAME), ``cache``, ``sample``, ``batch``, ``only`` (one or more systems:
    the others are left out), and any section of the configuration, whose values replace those of the file.

    Raises UsageError as load_experiment does.
    """
    if len(configurations) != 1:
        raise UsageError("give one experiment: --configfile configs/NAME.yaml")
    given = {key: typed(value) for key, value in settings.items()}
    output, cache, only = (given.pop(key, None) for key in ("output", "cache", "only"))
    for short, (section, key) in _SHORT.items():
        value = given.pop(short, None)
        if value is not None:
            inner = given.get(section, {})
            # Anything but a mapping is left for load_experiment to refuse.
            given[section] = {**inner, key: value} if isinstance(inner, Mapping) else inner
    config = load_experiment(configurations[0], given, _names(only))
    folder = Path(str(output or f"experiments/{config.name}"))
    return folder, config, None if cache is None else Path(str(cache))


def _names(only: object) -> list[str] | None:
    """Return the systems that ``--config only`` names; None where it is not given."""
    if only is None:
        return None
    names = [only] if isinstance(only, str) else only
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise UsageError("--config only: give one or more systems, such as only='[bpe, scaffold]'")
    return names


def training_section(train: Mapping[str, Any]) -> dict[str, Any]:
    """Return the train section without what changes no training: the batches that are not chosen, and so on."""
    batch = train.get("batch")
    used = {key: value for key, value in train.items() if key not in ("expected", "batches", "thin")}
    return used | ({"batches": {batch: train["batches"][batch]}} if batch is not None else {})


def write_config(config: Experiment, path: PathLike) -> None:
    """Write ``config``, every default filled in, as YAML for load_experiment, below comments with the versions."""
    import yaml

    heading = "".join(f"# {name} {version}\n" for name, version in versions().items())
    write_text(path, heading + yaml.safe_dump(config.to_dict(), sort_keys=False, allow_unicode=True))
