"""A task: the part of an experiment that differs between translation and language models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, NamedTuple, TypeVar

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.experiment.configuration import Published
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

# A step of the workflow: its first argument is the layout, the others are options of ``mt-scaffold experiment``, of
# these types.
Step = Callable[..., None]
Cache = Annotated[str, Option("DIR", help="the download cache")]
Checkpoint = Annotated[str, Option("NAME", help="one of the last checkpoints, by itself: last-1 is the newest")]
Chunk = Annotated[str, Option("K-of-N", help="the K-th of N parts of the text")]
CodesName = Annotated[str, Option("NAME", help="the name of codes, without the suffix of their file", name="codes")]
DataName = Annotated[str, Option("NAME", help="the name of data folders and dictionaries")]
Gpus = Annotated[int, Option("N", help="GPUs (of each node; 0: all for a training, else one if there is one)")]
Language = Annotated[str, Option("CODE", help="one of the languages")]
Launcher = Annotated[str, Option("NAME", help="what starts a process per GPU: fairseq, torchrun or srun")]
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
    """One task: its layout, training options, comparison, statistics, and the steps that only it has.

    A new one is a module with a subclass, its line in ``TASKS``, and its configuration with its line there.
    """

    # The paths of its experiments.
    layout: ClassVar[type[Layout[Any]]]
    # The rules that only it has (in workflow/rules), and their steps by name.
    rules: ClassVar[str]
    steps: ClassVar[Mapping[str, Step]]
    # The values of the configuration that a step depends on, by its name: of the layout, and of what the step makes.
    # A change of them repeats the step; null where there are none.
    depends: ClassVar[Mapping[str, Callable[..., object]]]
    # The statistics beside statistics.json and figures/, by the names of the layout's properties.
    tables: ClassVar[Sequence[str]] = ()

    # -- before anything runs

    @abstractmethod
    def check_plan(self, layout: AnyLayout) -> None:
        """Raise MTScaffoldError for what would show only after hours, where it can be known before anything runs."""

    @abstractmethod
    def fairseq_calls(self, layout: AnyLayout) -> list[Call]:
        """Return the programs of fairseq that will run, each with its options; raise UsageError for wrong ones."""

    @abstractmethod
    def training_text(self, layout: AnyLayout) -> TrainingText:
        """Return what is known of the text."""

    def check_ends(self, layout: AnyLayout) -> None:
        """Raise UsageError for a training without an end."""

    def check_start(self, layout: AnyLayout) -> None:
        """Raise MTScaffoldError for what takes seconds to check, once, before the first step."""

    @abstractmethod
    def results(self, layout: AnyLayout) -> list[Path]:
        """Return what a complete run leaves behind, beyond the comparison, its statistics and stripped checkpoints."""

    @abstractmethod
    def closing_words(self, layout: AnyLayout) -> list[str]:
        """Return what a finished run prints after the comparison: its last line says where the results are."""

    # -- codes and binarised data

    @abstractmethod
    def learned_from(self, layout: AnyLayout, codes: str) -> list[Path]:
        """Return the files that codes are learned from, and those that learning compares languages on."""

    @abstractmethod
    def learning(self, layout: AnyLayout, codes: str) -> dict[str, Any]:
        """Return the arguments of ``learn_bpe`` and ``trim`` that say which text some codes are learned from."""

    @abstractmethod
    def binarised_from(self, layout: AnyLayout, data: str, *parts: str) -> list[Path]:
        """Return the files that a data folder of these parts is made of (data: its name)."""

    @abstractmethod
    def binarise(self, layout: AnyLayout, data: str, output: Path, parts: Sequence[str], workers: int) -> None:
        """Make a data folder; where the systems resample, it keeps the training text."""

    # -- trainings

    def trained_after(self, layout: AnyLayout, run: Run) -> list[Path]:
        """Return the files that a training needs beside its data folder."""
        return []

    @abstractmethod
    def options_for(
        self, config: Any, run: Run, gpus: int, data: PathLike, baseline_report: PathLike | None
    ) -> dict[str, OptionValue]:
        """Return fairseq-train's options for a run on a number of GPUs (of all nodes; 0: a CPU), resampling included.

        data: the folder that is trained on. baseline_report: the report of the training that this one depends on, if it
        does. Raises UsageError where the configuration does not fit them.
        """

    def training_options(self, layout: AnyLayout, run: Run, gpus: int) -> dict[str, OptionValue]:
        """Return the options of a run in its experiment."""
        report = next(iter(self.trained_after(layout, run)), None)
        return self.options_for(layout.config, run, gpus, layout.binarised_of(run.system), report)

    @abstractmethod
    def plan_start(self, layout: AnyLayout, run: Run, gpus: int, processes: int | None = None) -> Start | None:
        """Return what a training will be started with; None where that is not known yet.

        processes: what its options are for; by default the GPUs of all nodes.
        """

    @abstractmethod
    def tokens_from(self, layout: AnyLayout, system: str) -> list[Path]:
        """Return the files that the tokens of a system are counted in."""

    @abstractmethod
    def side_tokens(self, layout: AnyLayout, system: str) -> dict[str, SideTokens]:
        """Return the tokens of a system, of ``decoder`` and, if there is one, ``encoder``."""

    # -- results

    @abstractmethod
    def measure(self) -> Measure:
        """Return what its systems are compared by."""

    def compared(self, layout: AnyLayout) -> list[Comparable]:
        """Return the runs that are compared with each other, each in its group and as its system."""
        return [Comparable("", run) for run in layout.runs]

    @abstractmethod
    def samples(self, layout: AnyLayout) -> int:
        """Return the number of bootstrap resamples."""

    def reports(self, layout: AnyLayout) -> list[Path]:
        """Return the step reports, and the data folders, whose warnings stand above the comparison.

        Those of codes, trainings and scores are there for every task.
        """
        return []

    def published(self, layout: AnyLayout) -> Sequence[Published]:
        """Return scores from elsewhere, to be shown next to ours."""
        return ()

    @abstractmethod
    def measured(self, layout: AnyLayout) -> list[Path]:
        """Return the files that the statistics are taken from."""

    @abstractmethod
    def statistics(self, layout: AnyLayout) -> None:
        """Measure the experiment, draw its figures and write both."""


def training_section(train: Mapping[str, Any]) -> dict[str, Any]:
    """Return the train section without what changes no training: the batches that are not chosen, and so on."""
    batch = train.get("batch")
    used = {key: value for key, value in train.items() if key not in ("expected", "batches", "thin")}
    return used | ({"batches": {batch: train["batches"][batch]}} if batch is not None else {})
