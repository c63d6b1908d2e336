"""A task: the part of an experiment that differs between translation and language models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, NamedTuple, TypeVar

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.experiment.configuration import Primary, Published
from mt_scaffold.experiment.configuration.layout import Layout, Run
from mt_scaffold.experiment.runtime.fairseq_options import Call
from mt_scaffold.experiment.runtime.schema import OptionValue
from mt_scaffold.experiment.tasks.training_text import TrainingText
from mt_scaffold.experiment.training.start import Start
from mt_scaffold.options_from_signature import Option

if TYPE_CHECKING:
    from mt_scaffold.experiment.evaluation.measures import Measure
    from mt_scaffold.experiment.report.trained_tokens import SideTokens

AnyLayout = TypeVar("AnyLayout", bound=Layout[Any])

# A step of the workflow: its first argument is the layout, the others are options of ``mt-scaffold experiment``, with
# the types below.
Step = Callable[..., None]
Cache = Annotated[str, Option("DIR", help="the download cache")]
CodesName = Annotated[str, Option("NAME", help="the name of codes, without the suffix of their file", name="codes")]
DataName = Annotated[str, Option("NAME", help="the name of data folders and dictionaries")]
Gpus = Annotated[int, Option("N", help="GPUs per node (0: all for a training, otherwise one if there is one)")]
Language = Annotated[str, Option("CODE", help="one of the languages")]
Launcher = Annotated[str, Option("NAME", help="launcher of the processes, one per GPU: fairseq, torchrun or srun")]
Nodes = Annotated[int, Option("N", help="nodes to train on")]
Part = Annotated[str, Option("PART", help="train, valid or a test set")]
SegmentationName = Annotated[str, Option("NAME", help="the name of a segmentation")]
ShardName = Annotated[str, Option("K-of-N", help="the K-th of N shards of the training documents", name="shard")]
Systems = Annotated[str, Option("NAME,...", help="the systems to show (default: all)")]
TestSet = Annotated[str, Option("NAME", help="one of the test sets")]
Workers = Annotated[int, Option("N", help="threads or processes")]


class Comparable(NamedTuple):
    """A run in one of the groups of systems that are compared; the group may be empty."""

    group: str
    run: Run


class Task(ABC, Generic[AnyLayout]):
    """A task: its layout, training options, comparison, statistics, and specific steps.

    A new task needs a module with a subclass and a line in ``TASKS``, and its configuration with a line in ``SCHEMAS``.
    """

    # The paths of its experiments.
    layout: ClassVar[type[Layout[Any]]]
    # The file of its specific rules (in workflow/rules), and their steps by name.
    rules: ClassVar[str]
    steps: ClassVar[Mapping[str, Step]]
    # By the name of a step, a function of the layout and the step's arguments that returns the values of the
    # configuration on which the step depends. A changed value repeats it; a step without a function depends on none.
    depends: ClassVar[Mapping[str, Callable[..., object]]]
    # Statistics besides statistics.json and figures/, by the names of the layout's properties.
    tables: ClassVar[Sequence[str]] = ()

    # -- before anything runs

    @abstractmethod
    def check_early(self, layout: AnyLayout) -> None:
        """Raise MTScaffoldError for problems that would otherwise appear only after hours."""

    @abstractmethod
    def fairseq_calls(self, layout: AnyLayout) -> list[Call]:
        """Return the programs of fairseq that will run, with their options. Raises UsageError for wrong options."""

    @abstractmethod
    def training_text(self, layout: AnyLayout) -> TrainingText:
        """Return what is known about the text before anything runs."""

    def check_ends(self, layout: AnyLayout) -> None:
        """Raise UsageError for a training without an end."""

    def check_start(self, layout: AnyLayout) -> None:
        """Raise MTScaffoldError for problems that take seconds to find; called once, before the first step."""

    @abstractmethod
    def results(self, layout: AnyLayout) -> list[Path]:
        """Return the files of a complete run, besides the comparison, its statistics and stripped checkpoints."""

    def closing_tables(self, layout: AnyLayout) -> list[Path]:
        """Return the tables that a finished run prints after the comparison."""
        return []

    # -- codes and binarised data

    @abstractmethod
    def learned_from(self, layout: AnyLayout, codes: str) -> list[Path]:
        """Return the files that codes are learned from, and those on which learning compares languages."""

    @abstractmethod
    def learning(self, layout: AnyLayout, codes: str) -> dict[str, Any]:
        """Return the arguments for ``codes.learn_model`` and ``codes.trim_codes`` that select the text."""

    @abstractmethod
    def binarised_from(self, layout: AnyLayout, data: str, *parts: str) -> list[Path]:
        """Return the files that the data folder ``data`` with these parts is made from."""

    @abstractmethod
    def binarise(self, layout: AnyLayout, data: str, output: Path, parts: Sequence[str], workers: int) -> None:
        """Make a data folder; it keeps the words of the training text if the systems resample."""

    # -- trainings

    def trained_after(self, layout: AnyLayout, run: Run) -> list[Path]:
        """Return the files that a training needs besides its data folder."""
        return []

    @abstractmethod
    def options_for(
        self, config: Any, run: Run, gpus: int, data: PathLike, baseline_report: PathLike | None
    ) -> dict[str, OptionValue]:
        """Return fairseq-train's options for a run on a number of GPUs (of all nodes; 0: a CPU), resampling included.

        data: the folder that is trained on. baseline_report: the report of the training that this one depends on, if
        any. Raises UsageError if these do not fit the configuration.
        """

    def training_options(self, layout: AnyLayout, run: Run, gpus: int) -> dict[str, OptionValue]:
        """Return the options of a run in its experiment."""
        report = next(iter(self.trained_after(layout, run)), None)
        return self.options_for(layout.config, run, gpus, layout.binarised_of(run.system), report)

    @abstractmethod
    def start_of(self, layout: AnyLayout, run: Run, gpus: int, processes: int | None = None) -> Start | None:
        """Return the settings that a training will be started with, or None if they are not known yet.

        gpus: in all; 0 for those of this machine. processes: the number for which options are chosen (default: gpus).
        """

    def generate_arguments(self, layout: AnyLayout, run: Run) -> list[list[str]]:
        """Return the arguments of fairseq-generate for each test set that the model of a run translates."""
        return []

    @abstractmethod
    def tokens_from(self, layout: AnyLayout, system: str) -> list[Path]:
        """Return the files in which the tokens of a system are counted."""

    @abstractmethod
    def side_tokens(self, layout: AnyLayout, system: str) -> dict[str, SideTokens]:
        """Return the tokens of a system for ``decoder`` and, if there is one, ``encoder``."""

    # -- results

    @abstractmethod
    def measure(self) -> Measure:
        """Return the measure by which systems are compared."""

    def compared(self, layout: AnyLayout) -> list[Comparable]:
        """Return the runs to compare, each with the group in which it is compared."""
        return [Comparable("", run) for run in layout.runs]

    @abstractmethod
    def samples(self, layout: AnyLayout) -> int:
        """Return the number of bootstrap resamples."""

    def primary(self, layout: AnyLayout) -> Primary:
        """Return the primary measure of the comparison."""
        return Primary()

    def reports(self, layout: AnyLayout) -> list[Path]:
        """Return the step records and data folders whose warnings the comparison shows.

        The records of codes, trainings and scores are added for every task.
        """
        return []

    def published(self, layout: AnyLayout) -> Sequence[Published]:
        """Return published scores, to be shown next to ours."""
        return ()

    @abstractmethod
    def measured(self, layout: AnyLayout) -> list[Path]:
        """Return the files that the statistics are taken from."""

    @abstractmethod
    def statistics(self, layout: AnyLayout) -> None:
        """Measure the experiment, draw its figures and write both."""


def training_section(train: Mapping[str, Any]) -> dict[str, Any]:
    """Return the train section without keys that do not affect a training, such as the batches that are not chosen."""
    batch = train.get("batch")
    used = {key: value for key, value in train.items() if key not in ("batches", "thin")}
    return used | ({"batches": {batch: train["batches"][batch]}} if batch is not None else {})
