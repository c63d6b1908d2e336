"""The folder of an experiment: its runs, the paths common to all tasks, and overrides of its configuration.

An argument that names a system, a part, a test set and so on may also be a Snakemake wildcard such as ``{system}``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import Experiment, load_experiment
from mt_scaffold.experiment.configuration.yaml_file import typed
from mt_scaffold.experiment.runtime.results import comparison_file
from mt_scaffold.methods.bpe import MethodWithCodes
from mt_scaffold.options_from_signature import Option

CONFIG = "config.yaml"
# In the folder of a training.
CHECKPOINTS, TRAINING_COMMAND, TRAINING_LOG, TRAINING_RECORD = (
    "checkpoints",
    "command.txt",
    "train.log",
    "training.json",
)
# The parts of the data that a training reads; the others are the test sets.
TRAINED_ON = ("train", "valid")
# The short names that --config accepts.
_SHORT = {"sample": ("data", "sample"), "batch": ("train", "batch")}

AnyConfig = TypeVar("AnyConfig", bound=Experiment)


@dataclass(frozen=True)
class Run:
    """One training: a system, its seed and, for language models, the comparison that ends it.

    system: the system of the run
    seed: the random seed of the run
    comparison: the comparison of the run, for language models
    """

    system: Annotated[str, Option("NAME")]
    seed: int | str
    comparison: Annotated[str, Option("NAME")] = ""

    @property
    def folder(self) -> Path:
        """Its folder, relative to that of the experiment."""
        return Path(self.system) / self.comparison / f"seed-{self.seed}"

    @property
    def name(self) -> str:
        """Its name in the file names of logs."""
        return "-".join(filter(None, (self.system, self.comparison, str(self.seed))))

    @property
    def arguments(self) -> list[str]:
        """The arguments that select it in a step of ``mt-scaffold experiment``."""
        comparison = ["--comparison", self.comparison] if self.comparison else []
        return ["--system", self.system, "--seed", str(self.seed), *comparison]


@dataclass(frozen=True)
class Layout(ABC, Generic[AnyConfig]):
    """The paths of the experiment ``config`` in ``folder`` that are common to all tasks."""

    folder: Path
    config: AnyConfig

    # The task's name in a configuration, and the term for its experiments in errors.
    task: ClassVar[str]
    experiments: ClassVar[str]

    @classmethod
    def of(cls, folder: PathLike, config: Experiment) -> Self:
        """Return the layout of an experiment; raise UsageError if its task is another one."""
        if config.task != cls.task:
            raise UsageError(f"{folder}: task: {config.task}: only {cls.experiments} have this")
        return cls(Path(folder), config)  # type: ignore[arg-type]

    @classmethod
    def read(cls, folder: PathLike) -> Self:
        """Return the layout of an experiment that has been started, from the configuration in its folder.

        Raises MTScaffoldError if it is not the folder of an experiment, and UsageError as load_experiment does.
        """
        return cls.of(folder, read_folder(folder))

    def of_systems(self, systems: Collection[str]) -> Self:
        """Return the layout restricted to some of the systems: their trainings, scores and results."""
        chosen: Any = {name: system for name, system in self.config.systems.items() if name in systems}
        return dataclasses.replace(self, config=dataclasses.replace(self.config, systems=chosen))

    def showing(self, systems: str) -> Self:
        """Return the layout restricted to comma-separated systems ("": all). Raises UsageError for an unknown one."""
        names = systems.split(",") if systems else list(self.config.systems)
        if unknown := [name for name in names if name not in self.config.systems]:
            raise UsageError(f"{self.config_file}: no system is called {unknown[0]}")
        return self.of_systems(names)

    @property
    def parts(self) -> list[str]:
        """``train``, ``valid`` and the test sets."""
        return [*TRAINED_ON, *self.config.test_sets]

    @property
    def config_file(self) -> Path:
        """The resolved configuration."""
        return self.folder / CONFIG

    def log(self, name: str) -> Path:
        """The log of a step."""
        return self.folder / "logs" / f"{name}.log"

    def step_record(self, name: str) -> Path:
        """The record of a step: ``get-data``, ``tokenise-PART.LANGUAGE``, ``clean-PART``, ``learn-CODES``."""
        return self.folder / "logs" / f"{name}.json"

    # -- codes and binarised data

    def codes(self, name: str) -> Path:
        """The codes file, or other model, of that name (``CodesSetting.name``)."""
        setting = self.config.all_codes.get(name)
        return self.model(name, MethodWithCodes.suffix if setting is None else setting.kind.suffix)

    def model(self, name: str, suffix: str) -> Path:
        """The file with the codes, or other model, that a method has learned."""
        return self.folder / "codes" / f"{name}{suffix}"

    @abstractmethod
    def segmentation_of(self, system: str) -> str:
        """Return the name of a system's segmentation."""

    @abstractmethod
    def data_of(self, system: str) -> str:
        """Return the name of a system's data folders; systems with the same one share them."""

    def binarised(self, data: str) -> Path:
        """The fairseq data folder for training: ids, or words for the systems that resample."""
        return self.folder / "binarised" / data

    def binarised_of(self, system: str) -> Path:
        """The fairseq data folder for training a system."""
        return self.binarised(self.data_of(system))

    def binarised_test(self, data: str, test: str) -> Path:
        """The fairseq data folder of a test set."""
        return self.folder / "test-sets" / test / data

    def binarised_test_of(self, system: str, test: str) -> Path:
        """The fairseq data folder of a test set for a system."""
        return self.binarised_test(self.data_of(system), test)

    # -- trainings and scores

    @property
    @abstractmethod
    def runs(self) -> list[Run]:
        """All trainings, in the order of the configuration."""

    @property
    def wildcards(self) -> Run:
        """A run of Snakemake wildcards, for paths that match any run."""
        return Run("{system}", "{seed}", "{comparison}" if self.runs[0].comparison else "")

    def every_run(self, path: Callable[..., Path], *axes: Sequence[str]) -> list[Path]:
        """Return ``path`` (one of the methods below) for each run and each combination of entries from the axes."""
        return [path(run, *rest) for rest in itertools.product(*axes) for run in self.runs]

    def training(self, run: Run, name: str = "") -> Path:
        """The folder of a training, or the file ``name`` in it."""
        return self.folder / run.folder / name

    def training_record(self, run: Run) -> Path:
        """The outcome of a training; the file appears once it has ended."""
        return self.training(run, TRAINING_RECORD)

    def checkpoints(self, run: Run) -> Path:
        """The checkpoints of a training."""
        return self.training(run, CHECKPOINTS)

    def averaged(self, run: Run) -> Path:
        """The averaged model."""
        return self.training(run, "averaged.pt")

    def stripped(self, run: Run) -> Path:
        """The names of the checkpoints that were stripped of their optimiser state after averaging."""
        return self.training(run, "thinned.txt")

    def scores(self, run: Run, test: str) -> Path:
        """The scores of a model on a test set."""
        return self.training(run, "scores") / f"{test}.json"

    def losses(self, run: Run, test: str) -> Path:
        """The parts of the loss of a model on a test set."""
        return self.training(run, "scores") / f"{test}.losses.json"

    def trained_tokens(self, run: Run) -> Path:
        """The table of how well each token was trained."""
        return self.training(run, "tokens.csv")

    def every_scores(self) -> list[Path]:
        """The scores of all models."""
        return self.every_run(self.scores, self.config.test_sets)

    # -- results

    @property
    def title(self) -> str:
        """The heading of the tables."""
        return f"{self.config.name}: {self.config.description}".removesuffix(": ")

    def comparison(self, kind: str) -> Path:
        """The comparison of all systems in one of COMPARISON_KINDS."""
        return self.folder / comparison_file("comparison", kind)

    @property
    def statistics(self) -> Path:
        """The statistics that are shown alongside the scores."""
        return self.folder / "statistics.json"

    @property
    def report(self) -> Path:
        """The HTML report."""
        return self.folder / "report.html"

    @property
    def figures(self) -> Path:
        """The folder of the figures."""
        return self.folder / "figures"


def read_folder(folder: PathLike) -> Experiment:
    """Return the configuration in the folder of an experiment that has been started.

    Raises MTScaffoldError if it is not the folder of an experiment, and UsageError as load_experiment does.
    """
    place = Path(folder)
    if not (place / CONFIG).is_file():
        raise MTScaffoldError(f"{folder}: not the folder of an experiment (no {CONFIG}); give experiments/NAME")
    return load_experiment(place / CONFIG)


@contextlib.contextmanager
def of_finished(folder: PathLike) -> Iterator[None]:
    """Within the block, add to an error about a missing file of a finished experiment what to do."""
    try:
        yield
    except MTScaffoldError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        raise MTScaffoldError(f"{error}; run the experiment in {folder} again: only what is missing is made") from error


class Requested(NamedTuple):
    """An experiment to run: its folder, its configuration, the systems to train, its download cache (None: default).

    The whole configuration decides which steps systems share, whichever of them are trained.
    """

    folder: Path
    experiment: Experiment
    systems: list[str]
    cache: Path | None


def requested_experiment(configurations: Sequence[PathLike], settings: Mapping[str, Any]) -> Requested:
    """Return the experiment that Snakemake is asked to run.

    configurations: exactly one configuration file. settings: the values of ``--config``, as text or already typed:
    ``output`` (folder; default: experiments/NAME), ``cache``, ``sample``, ``batch``, ``only`` (one or more systems to
    train; default: all), and any section of the configuration, whose values replace those of the file.

    Raises UsageError as load_experiment and for_snakemake do, and for an unknown system.
    """
    if len(configurations) != 1:
        raise UsageError("give one experiment: --configfile configs/NAME.yaml")
    # Paths are not YAML: a folder may be called "no", "12" or "runs #2".
    output, cache = settings.get("output"), settings.get("cache")
    given = {key: typed(value) for key, value in settings.items() if key not in ("output", "cache")}
    only = given.pop("only", None)
    for short, (section, key) in _SHORT.items():
        value = given.pop(short, None)
        if value is not None:
            inner = given.get(section, {})
            # load_experiment refuses anything but a mapping.
            given[section] = {**inner, key: value} if isinstance(inner, Mapping) else inner
    config = load_experiment(configurations[0], given)
    folder = for_snakemake(Path(str(output or f"experiments/{config.name}")))
    for codes in config.all_codes.values():
        if codes.file is not None:
            for_snakemake(Path(codes.file))
    return Requested(folder, config, _chosen(only, config), None if cache is None else Path(str(cache)))


def for_snakemake(path: Path) -> Path:
    """Return a path that can be an input or output of a rule; raise UsageError for one with braces."""
    if {"{", "}"} & {*str(path)}:
        raise UsageError(f"{path}: Snakemake would treat the braces in this path as wildcards; rename it")
    return path


def _chosen(only: object, config: Experiment) -> list[str]:
    """Return the systems that ``--config only`` names, in the order of the configuration; by default, all."""
    if only is None:
        return list(config.systems)
    names = [only] if isinstance(only, str) else only
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise UsageError("only: give one or more systems, such as --only bpe or --config only='[bpe, scaffold]'")
    if unknown := [name for name in names if name not in config.systems]:
        raise UsageError(f"only: no system '{unknown[0]}' (there are {', '.join(config.systems)})")
    return [name for name in config.systems if name in names]
