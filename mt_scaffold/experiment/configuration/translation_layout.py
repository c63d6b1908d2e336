"""The folder of a translation experiment: the paths that other experiments do not have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mt_scaffold.experiment.configuration import Config
from mt_scaffold.experiment.configuration.layout import Layout, Run


@dataclass(frozen=True)
class TranslationLayout(Layout[Config]):
    """The paths of the translation experiment ``config`` in ``folder``."""

    task = "translation"
    experiments = "translation experiments"

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

    # -- data

    def raw(self, part: str, language: str) -> Path:
        """The raw text of a part."""
        return self.folder / "raw" / f"{part}.{language}"

    def references(self, test: str) -> list[Path]:
        """The raw references of a test set."""
        further = range(2, 2 + self.config.further_references(test))
        return [self.raw(test, self.target), *(self.raw(test, f"{self.target}.{number}") for number in further)]

    def words(self, part: str, language: str) -> Path:
        """The words of a part; those of train and valid are cleaned."""
        return Path(f"{self.words_prefix(part)}.{language}")

    def words_prefix(self, part: str) -> Path:
        """The path of words without the language."""
        return self.folder / "words" / part

    def uncleaned(self, part: str, language: str) -> Path:
        """The words of a part before cleaning."""
        return self.folder / "words" / f"{part}.uncleaned.{language}.gz"

    # -- codes and dictionaries

    def codes_of(self, system: str) -> tuple[Path, Path]:
        """Return the codes for source and target of a system; joint codes are returned twice."""
        setting = self.config.segmentation(system)
        return self.codes(setting.source.name), self.codes(setting.target.name)

    def segmentation_of(self, system: str) -> str:
        """Return the name of a system's segmentation (``SegmentationSetting.name``)."""
        return self.config.segmentation(system).name

    def data_of(self, system: str) -> str:
        """Return the name of a system's dictionaries and data (``DataSetting.name``)."""
        return self.config.data_setting(system).name

    def segmentation_behind(self, data: str) -> str:
        """Return the name of the segmentation that dictionaries and data (``data_of``) are made with."""
        return self.config.data_settings[data].segmentation.name

    def resamples(self, system: str) -> bool:
        """Return whether a system's training text is segmented again in every epoch."""
        return self.config.systems[system].resamples

    def vocabulary(self, segmentation: str, language: str) -> Path:
        """The subwords and frequencies in the training text of a language, for a vocabulary threshold."""
        return self.folder / "vocabularies" / f"{segmentation}.{language}"

    def dictionaries(self, data: str) -> Path:
        """The folder of dictionaries (``data_of``)."""
        return self.folder / "dictionaries" / data

    def dictionary(self, data: str, language: str) -> Path:
        """The dictionary of a language; a joined one is stored for each."""
        return self.dictionaries(data) / f"dict.{language}.txt"

    # -- trainings and translations

    @property
    def runs(self) -> list[Run]:
        """All trainings, in the order of the configuration."""
        return [Run(system, seed) for system in self.config.systems for seed in self.config.seeds]

    def translation(self, run: Run, test: str, form: str = "") -> Path:
        """A translation by the averaged model, detokenised or in the form ``words`` or ``subwords``."""
        name = f"{test}.{self.target}"
        return self.training(run, "translations") / (f"{name}.{form}" if form else name)

    def translated_source(self, run: Run, test: str) -> Path:
        """The source of a translation, as words, next to it."""
        return self.training(run, "translations") / f"{test}.{self.source}.words"

    # -- results

    @property
    def data_record(self) -> Path:
        """The record of the data: lines, words and dropped pairs after every data step."""
        return self.folder / "data-report.json"

    @property
    def compared_with_losses(self) -> Path:
        """An empty file: the comparison has the bits per byte of the references."""
        return self.folder / "logs" / "compare-with-losses.done"
