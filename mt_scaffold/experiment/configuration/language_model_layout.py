"""The folder of an experiment with language models: the paths that other experiments do not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mt_scaffold.corpus.documents import Documents
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration.language_model import LanguageModelConfig
from mt_scaffold.experiment.configuration.layout import Layout, Run, for_snakemake
from mt_scaffold.experiment.runtime.results import comparison_file


@dataclass(frozen=True)
class LanguageModelLayout(Layout[LanguageModelConfig]):
    """The paths of the experiment with language models ``config`` in ``folder``."""

    task = "language_modeling"
    experiments = "experiments with language models"

    # -- documents

    @property
    def written_parts(self) -> list[str]:
        """The parts that are written to this folder: all if any is generated, cut or joined, else none."""
        data = self.config.data
        cut = data.held_out_every is not None or data.sample is not None
        return self.parts if data.documents is None or cut or data.documents.lines_per_document > 1 else []

    def documents(self, part: str) -> Path:
        """The documents of a part, if they are written to this folder."""
        return self.folder / "documents" / f"{part}.jsonl"

    @property
    def documents_record(self) -> Path:
        """The number of documents in each part, and their source."""
        return self.folder / "documents.json"

    def patterns(self, part: str) -> list[str]:
        """Return the paths and globs of a part's documents, for a command line."""
        if part in self.written_parts:
            return [str(self.documents(part))]
        files = self.config.data.documents
        assert files is not None
        return files.train if part == "train" else (files.valid or []) if part == "valid" else (files.tests or {})[part]

    def files(self, part: str) -> list[Path]:
        """Return the files of a part's documents, with globs expanded.

        Raises MTScaffoldError if one is missing, UsageError as ``for_snakemake`` does.
        """
        if part in self.written_parts:
            return [self.documents(part)]
        return [for_snakemake(path) for path in existing_files(self.patterns(part))]

    @property
    def format(self) -> tuple[str | None, str | None]:
        """The format and the field of the documents, as arguments of ``Documents``."""
        files = self.config.data.documents
        return (None, None) if files is None or self.written_parts else (files.format, files.field)

    # -- codes and ids

    def counted(self, item: str) -> Path:
        """The counts of the words in one shard of the training documents."""
        return self.folder / "counts" / f"{item}.counts"

    @property
    def counts(self) -> Path:
        """The counts of the words in all training documents."""
        return self.folder / "counts" / "words.counts"

    def segmentation_of(self, system: str) -> str:
        """Return the name of a system's codes, which determine its segmentation."""
        return self.config.codes_of(system).name

    def data_of(self, system: str) -> str:
        """Return the name of a system's codes, which determine its ids."""
        return self.segmentation_of(system)

    # -- trainings

    @property
    def runs(self) -> list[Run]:
        """All trainings; one that serves several comparisons is listed once."""
        config = self.config
        return [Run(system, seed, comparison) for system, comparison in config.trainings for seed in config.seeds]

    def run_in(self, comparison: str, system: str, seed: int) -> Run:
        """Return the training of a system that serves a comparison."""
        return Run(system, seed, self.config.run_of(system, comparison))

    def baseline_report(self, run: Run) -> Path | None:
        """The record of the training that read as much text as this one will, or None if a number is configured."""
        other = self.config.comparisons[run.comparison].text_of
        return None if other is None else self.training_record(Run(self.config.baseline, run.seed, other))

    # -- tasks

    def task_scores(self, run: Run) -> Path:
        """The scores of a model on the tasks of lm-evaluation-harness."""
        return self.training(run, "tasks.json")

    def task_comparison(self, kind: str) -> Path:
        """The comparison of all systems on the tasks in one of COMPARISON_KINDS."""
        return self.folder / comparison_file("tasks", kind)

    @property
    def task_files(self) -> list[Path]:
        """The files of the user's tasks, on which the questions depend."""
        folders = [] if self.config.tasks is None else self.config.tasks.include_path
        found = (path for folder in folders for path in sorted(Path(folder).rglob("*")))
        return [for_snakemake(path) for path in found if path.is_file() and path.suffix != ".pyc"]

    @property
    def vocabulary_table(self) -> Path:
        """The statistics of the vocabularies as a table."""
        return self.folder / "statistics.txt"


def existing_files(patterns: Sequence[str]) -> list[Path]:
    """Return the files that paths and globs name. Raises MTScaffoldError if one is missing."""
    found = [Path(str(source)) for source in Documents(patterns).sources]
    for path in found:
        if not path.exists():
            raise MTScaffoldError(f"{path}: no such file; check data.documents")
    return found
