"""The folder of an experiment with language models: every path in it, and what each step depends on.

An argument that names a system, a comparison and so on may also be a Snakemake wildcard such as ``{system}``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.documents import Documents
from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import Experiment
from mt_scaffold.experiment.configuration.experiment_folder import (
    CHECKPOINTS,
    TRAINING_REPORT,
    ExperimentFolder,
    open_folder,
    plan_experiment,
    read_folder,
    training_section,
)
from mt_scaffold.experiment.configuration.language_model import LanguageModelConfig
from mt_scaffold.experiment.runtime.locks import Lock

# The parts of the documents that are one data folder; each test set has one of its own.
TRAINED_ON = ("train", "valid")


@dataclass(frozen=True)
class LanguageModelLayout(ExperimentFolder):
    """The paths of the experiment ``config`` in ``folder``."""

    folder: Path
    config: LanguageModelConfig

    @property
    def parts(self) -> list[str]:
        """``train``, ``valid`` and the test sets."""
        return [*TRAINED_ON, *self.config.test_sets]

    # -- documents

    @property
    def written_parts(self) -> list[str]:
        """The parts that are written here: all of them where any is generated, cut or joined, else none."""
        data = self.config.data
        cut = data.held_out_every is not None or data.sample is not None
        return self.parts if data.documents is None or cut or data.documents.lines_per_document > 1 else []

    def documents(self, part: str) -> Path:
        """The documents of a part, where they are written here."""
        return self.folder / "documents" / f"{part}.jsonl"

    @property
    def documents_report(self) -> Path:
        """How many documents each part has, and where they come from."""
        return self.folder / "documents.json"

    def patterns(self, part: str) -> list[str]:
        """The files of a part's documents, as a command takes them: paths and globs."""
        if part in self.written_parts:
            return [str(self.documents(part))]
        files = self.config.data.documents
        assert files is not None
        return files.train if part == "train" else (files.valid or []) if part == "valid" else (files.tests or {})[part]

    def files(self, part: str) -> list[Path]:
        """The files of a part's documents, with globs expanded. Raises MTScaffoldError where one is missing."""
        if part in self.written_parts:
            return [self.documents(part)]
        return existing_files(self.patterns(part))

    @property
    def format_flags(self) -> list[str]:
        """How a command reads the documents."""
        files = self.config.data.documents
        if files is None or self.written_parts:
            return []
        flags = ["--format", files.format] if files.format is not None else []
        return [*flags, "--field", files.field] if files.field is not None else flags

    # -- codes and ids

    def counted(self, item: str) -> Path:
        """The counts of the words in one shard of the training documents."""
        return self.folder / "counts" / f"{item}.counts"

    @property
    def counts(self) -> Path:
        """The counts of the words in all training documents."""
        return self.folder / "counts" / "words.counts"

    def codes_of(self, system: str) -> Path:
        """The codes of a system."""
        return self.codes(self.config.codes_of(system).name)

    def binarised(self, codes: str, text: bool = False) -> Path:
        """The fairseq data folder that is trained on: ids, or text for the systems with BPE-dropout."""
        return self.folder / "binarised" / (f"{codes}.text" if text else codes)

    def binarised_of(self, system: str) -> Path:
        """The fairseq data folder that a system is trained on."""
        return self.binarised(self.config.codes_of(system).name, self.config.systems[system].resamples)

    def binarised_test(self, codes: str, test: str) -> Path:
        """The fairseq data folder of a test set."""
        return self.folder / "test-sets" / test / codes

    # -- training and scores

    def training(self, system: str, comparison: str, seed: int | str, name: str = "") -> Path:
        """The folder of a training, or the file ``name`` in it."""
        return self.folder / system / comparison / f"seed-{seed}" / name

    def training_report(self, system: str, comparison: str, seed: int | str) -> Path:
        """The outcome of a training; the file appears once it has ended."""
        return self.training(system, comparison, seed, TRAINING_REPORT)

    def checkpoints(self, system: str, comparison: str, seed: int | str) -> Path:
        """The checkpoints of a training."""
        return self.training(system, comparison, seed, CHECKPOINTS)

    def averaged(self, system: str, comparison: str, seed: int | str) -> Path:
        """The averaged model."""
        return self.training(system, comparison, seed, "averaged.pt")

    def thinned(self, system: str, comparison: str, seed: int | str) -> Path:
        """The names of the checkpoints that were thinned once they were averaged."""
        return self.training(system, comparison, seed, "thinned.txt")

    def scores(self, system: str, comparison: str, seed: int | str, test: str) -> Path:
        """The bits per byte of a model on a test set."""
        return self.training(system, comparison, seed, "scores") / f"{test}.json"

    @property
    def prompts(self) -> Path:
        """What every model continues, one prompt per line."""
        return self.folder / "prompts.txt"

    def samples(self, system: str, comparison: str, seed: int | str) -> Path:
        """What a model writes after the prompts."""
        return self.training(system, comparison, seed, "samples.txt")

    def baseline_report(self, system: str, comparison: str, seed: int | str) -> Path | None:
        """The training whose text decides how much text this one is trained on; None where a number decides."""
        other = self.config.comparisons[comparison].text_of
        return None if other is None else self.training_report(self.config.baseline, other, seed)

    def every_run(self, path: Callable[..., Path], *axes: Sequence[str]) -> list[Path]:
        """Return ``path`` (one of the methods above) for each training, and for each entry of a further axis."""
        rests: list[list[str]] = [[entry] for entry in axes[0]] if axes else [[]]
        return [
            path(system, comparison, seed, *rest)
            for rest in rests
            for system, comparison in self.config.trainings
            for seed in self.config.seeds
        ]

    @property
    def vocabulary_table(self) -> Path:
        """The statistics of the vocabularies as a table."""
        return self.folder / "statistics.txt"

    # -- what a run needs

    def depends_on(self, step: str, system: str = "", comparison: str = "") -> str:
        """Return what a step depends on in the configuration beyond its own parameters: a change repeats the step.

        step: ``documents``, or ``train`` with its system and comparison.
        """
        whole = self.config.to_dict()
        parts: list[Any] = [whole["data"]]
        if step == "train":
            parts = [training_section(whole["train"]), whole["systems"][system].get("train")]
            parts.append(whole["comparisons"][comparison])
        return json.dumps(parts, sort_keys=True)

    def open(self) -> Lock:
        """Create the folder, lock it, write the resolved configuration; see open_folder."""
        return open_folder(self.folder, self.config)


def existing_files(patterns: Sequence[str]) -> list[Path]:
    """Return the files that paths and globs name. Raises MTScaffoldError where one is missing."""
    found = [Path(str(source)) for source in Documents(patterns).sources]
    for path in found:
        if not path.exists():
            raise MTScaffoldError(f"{path}: no such file; check data.documents")
    return found


def read_layout(folder: PathLike) -> LanguageModelLayout:
    """Return the layout of an experiment that has been started; see read_folder."""
    return language_models(Path(folder), read_folder(folder))


def plan_layout(configurations: Sequence[PathLike], settings: Mapping[str, Any]) -> LanguageModelLayout:
    """Return the layout of an experiment to run; see plan_experiment."""
    folder, config, _ = plan_experiment(configurations, settings)
    return language_models(folder, config)


def language_models(folder: Path, config: Experiment) -> LanguageModelLayout:
    """Return the layout of an experiment with language models; raise UsageError for another one."""
    if not isinstance(config, LanguageModelConfig):
        raise UsageError(f"{folder}: task: {config.task}: only experiments with language models have this")
    return LanguageModelLayout(folder, config)
