"""The folder of a translation experiment: every path in it, and what each step depends on.

An argument that names a part, a language, a system and so on may also be a Snakemake wildcard such as ``{part}``.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import Config, Experiment
from mt_scaffold.experiment.configuration.data import DATA_KINDS
from mt_scaffold.experiment.configuration.experiment_folder import (
    CHECKPOINTS,
    TRAINING_REPORT,
    ExperimentFolder,
    open_folder,
    plan_experiment,
    read_folder,
    training_section,
)
from mt_scaffold.experiment.runtime.locks import Lock
from mt_scaffold.methods.unigram import UNIGRAM

# The parts of the data that a model is trained on; the others are the test sets.
TRAINED_ON = ("train", "valid")

# The sections of the configuration, beyond a step's own parameters, whose change makes its outputs out of date.
_DEPENDS_ON = {
    "get_data": (),
    "train": (),
    "translate": ("translate",),
    "score": (),
    "compare": ("compare_with", "paper"),
    "statistics": ("seeds",),
}


@dataclass(frozen=True)
class Layout(ExperimentFolder):
    """The paths of the experiment ``config`` in ``folder``."""

    folder: Path
    config: Config

    @property
    def source(self) -> str:
        """The source language."""
        return self.config.languages.source

    @property
    def target(self) -> str:
        """The target language."""
        return self.config.languages.target

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target language."""
        return self.source, self.target

    @property
    def parts(self) -> list[str]:
        """``train``, ``valid`` and the test sets."""
        return [*TRAINED_ON, *self.config.test_sets]

    # -- configuration and data

    def raw(self, part: str, language: str) -> Path:
        """The raw text of a part."""
        return self.folder / "raw" / f"{part}.{language}"

    def words(self, part: str, language: str) -> Path:
        """The words of a part, cleaned where it is trained on."""
        return Path(f"{self.words_prefix(part)}.{language}")

    def words_prefix(self, part: str) -> Path:
        """The path of words without the language."""
        return self.folder / "words" / part

    def uncleaned(self, part: str, language: str) -> Path:
        """The words of a part before cleaning."""
        return self.folder / "words" / f"{part}.uncleaned.{language}.gz"

    def chunk(self, language: str, item: str, suffix: str = "gz") -> Path:
        """A chunk of the tokenised training text, or (``suffix`` json) its step report."""
        return self.folder / "words" / "chunks" / f"train.{language}.{item}.{suffix}"

    def codes(self, name: str) -> Path:
        """A codes file, or the Unigram model of that name (``CodesSetting.name``)."""
        setting = self.config.all_codes.get(name)
        unigram = setting is not None and setting.algorithm == UNIGRAM
        return self.unigram_model(name) if unigram else super().codes(name)

    def unigram_model(self, name: str) -> Path:
        """The Unigram model of that name."""
        return self.folder / "codes" / f"{name}.model"

    def codes_of(self, system: str) -> tuple[Path, Path]:
        """The codes that a system segments source and target with; twice the same for joint ones."""
        setting = self.config.segmentation(system)
        return self.codes(setting.source.name), self.codes(setting.target.name)

    def segmentation_of(self, system: str) -> str:
        """The name of a system's segmentation (``SegmentationSetting.name``)."""
        return self.config.segmentation(system).name

    def vocabulary(self, segmentation: str, language: str) -> Path:
        """The subwords of the training text of a language with their frequencies, for a vocabulary threshold."""
        return self.folder / "vocabularies" / f"{segmentation}.{language}"

    def dictionaries(self, segmentation: str) -> Path:
        """The folder of a segmentation's dictionaries."""
        return self.folder / "dictionaries" / segmentation

    def dictionary(self, segmentation: str, language: str) -> Path:
        """The dictionary of a language, which may be that of both."""
        return self.dictionaries(segmentation) / f"dict.{language}.txt"

    def subwords(self, segmentation: str, part: str, language: str) -> Path:
        """The text of a part as subwords, for people: no step reads it."""
        return self.folder / "subwords" / segmentation / f"{part}.{language}"

    def binarised(self, segmentation: str, words: bool = False) -> Path:
        """The fairseq data folder that is trained on: ids, or words for the systems that resample."""
        return self.folder / "binarised" / (f"{segmentation}.words" if words else segmentation)

    def binarised_of(self, system: str) -> Path:
        """The fairseq data folder that a system is trained on."""
        return self.binarised(self.segmentation_of(system), self.config.systems[system].resamples)

    def binarised_test(self, segmentation: str, test: str) -> Path:
        """The fairseq data folder of a test set, which all systems with a segmentation translate."""
        return self.folder / "test-sets" / test / segmentation

    # -- training and translating

    def training(self, system: str, seed: int | str, name: str = "") -> Path:
        """The folder of a training, or the file ``name`` in it."""
        return self.folder / system / f"seed-{seed}" / name

    def training_report(self, system: str, seed: int | str) -> Path:
        """The outcome of a training; the file appears once it has ended."""
        return self.training(system, seed, TRAINING_REPORT)

    def checkpoints(self, system: str, seed: int | str) -> Path:
        """The checkpoints of a training."""
        return self.training(system, seed, CHECKPOINTS)

    def averaged(self, system: str, seed: int | str) -> Path:
        """The averaged model."""
        return self.training(system, seed, "averaged.pt")

    def checkpoint(self, system: str, seed: int | str, checkpoint: str) -> Path:
        """One of the last checkpoints (``last-1`` is the newest), to be scored by itself."""
        return self.training(system, seed, f"{checkpoint}.pt")

    def thinned(self, system: str, seed: int | str) -> Path:
        """The names of the checkpoints that were thinned once they were averaged."""
        return self.training(system, seed, "thinned.txt")

    def translation(self, system: str, seed: int | str, test: str, form: str = "", checkpoint: str = "") -> Path:
        """A translation by the averaged model or one checkpoint, detokenised or (``form``) ``words``, ``subwords``."""
        return self.training(system, seed, "translations") / checkpoint / _with(f"{test}.{self.target}", form)

    def translated_source(self, system: str, seed: int | str, test: str, checkpoint: str = "") -> Path:
        """The source of a translation, in words, beside it."""
        return self.training(system, seed, "translations") / checkpoint / f"{test}.{self.source}.words"

    def scores(self, system: str, seed: int | str, test: str, checkpoint: str = "") -> Path:
        """The scores of a translation."""
        return self.training(system, seed, "scores") / checkpoint / f"{test}.json"

    @property
    def last_checkpoints(self) -> list[str]:
        """The names of the last checkpoints that are scored by themselves, the newest first."""
        return [f"last-{number + 1}" for number in range(self.config.score.last_checkpoints)]

    def every_scores(self) -> list[Path]:
        """The scores of all translations: of the averaged models, and of the last checkpoints if they are wanted."""
        return self.every_run(self.scores, self.config.test_sets, ["", *self.last_checkpoints])

    def every_run(self, path: Callable[..., Path], *axes: Sequence[str]) -> list[Path]:
        """Return ``path`` (one of the methods above) for each system and seed, and for each entry of further axes."""
        return [
            path(system, seed, *rest)
            for rest in itertools.product(*axes)
            for system in self.config.systems
            for seed in self.config.seeds
        ]

    # -- results

    @property
    def compression(self) -> Path:
        """Bytes per token beside the paper's."""
        return self.folder / "bytes-per-token.txt"

    @property
    def data_report(self) -> Path:
        """The data report: lines, words and dropped pairs after every data step."""
        return self.folder / "data-report.json"

    @property
    def report(self) -> Path:
        """The HTML report."""
        return self.folder / "report.html"

    # -- what a run needs

    def depends_on(self, step: str, name: str = "") -> str:
        """Return what a step depends on in the configuration, as text: a change repeats the step.

        name: the test set that is fetched, or the system that is trained.
        """
        whole = self.config.to_dict()
        parts = [whole.get(section) for section in _DEPENDS_ON[step]]
        if step == "get_data":
            parts = [_data_of(whole["data"], name), whole["languages"]]
        elif step == "train":
            parts = [training_section(whole["train"]), whole["systems"][name].get("train")]
        elif step == "translate" and self.config.translate.engine == "fairseq":
            # As it was before there was a choice, so that no finished experiment is translated again.
            parts = [{key: value for key, value in whole["translate"].items() if key != "engine"}]
        elif step == "score":
            parts = [self.config.score.metrics, self.config.score.comet]
        elif step == "statistics":
            parts.append({system: self.segmentation_of(system) for system in self.config.systems})
        elif step == "compare":
            parts.append([self.config.baseline_of(system) for system in self.config.systems])
        return json.dumps(parts, sort_keys=True)

    def open(self) -> Lock:
        """Create the folder, lock it, write the resolved configuration and return the lock, which closing releases.

        Raises MTScaffoldError where another run is using the folder, or it cannot be written to.
        """
        return open_folder(self.folder, self.config)


def read_layout(folder: PathLike) -> Layout:
    """Return the layout of an experiment that has been started, from the configuration in its folder.

    Raises MTScaffoldError for a folder that is none of an experiment, and UsageError as load_config does.
    """
    return _translation(Path(folder), read_folder(folder))


def plan_layout(configurations: Sequence[PathLike], settings: Mapping[str, Any]) -> tuple[Layout, Path | None]:
    """Return the layout of a translation experiment to run, and its download cache, as plan_experiment does."""
    folder, config, cache = plan_experiment(configurations, settings)
    return _translation(folder, config), cache


def _translation(folder: Path, config: Experiment) -> Layout:
    if not isinstance(config, Config):
        raise UsageError(f"{folder}: task: {config.task}: only translation experiments have this")
    return Layout(folder, config)


def _with(name: str, suffix: str) -> str:
    return f"{name}.{suffix}" if suffix else name


def _data_of(data: Mapping[str, Any], test: str) -> object:
    """Return the part of the data section that the training data depends on, or (``test``) that test set.

    That is everything but the other test sets: the report of a test set counts its sentences in the training data, too.
    """
    kind = next(key for key in DATA_KINDS if key in data)
    # All synthetic text comes out of one sequence.
    if kind == "synthetic":
        return data
    section = {key: value for key, value in data[kind].items() if key != "tests"}
    return {**data, kind: section | ({"tests": {test: data[kind]["tests"][test]}} if test else {})}
