"""The folder of an experiment with language models: the paths that only these have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mt_scaffold.corpus.documents import Documents
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration.language_model import LanguageModelConfig
from mt_scaffold.experiment.configuration.layout import Layout, Run, for_snakemake

TASK_KINDS = ("txt", "md", "tex", "json", "csv")


@dataclass(frozen=True)
class LanguageModelLayout(Layout[LanguageModelConfig]):
    """The paths of the experiment ``config`` in ``folder``."""

    task = "language_modeling"
    experiments = "experiments with language models"

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
        """The files of a part's documents, with globs expanded.

        Raises MTScaffoldError where one is missing, UsageError as ``for_snakemake`` does.
        """
        if part in self.written_parts:
            return [self.documents(part)]
        return [for_snakemake(path) for path in existing_files(self.patterns(part))]

    @property
    def format(self) -> tuple[str | None, str | None]:
        """How the documents are stored, and in which field, as ``Documents`` takes them."""
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
        """Return the name of a system's codes, which are all of its segmentation."""
        return self.config.codes_of(system).name

    def data_of(self, system: str) -> str:
        """Return the name of a system's codes, which all ids follow from."""
        return self.segmentation_of(system)

    # -- trainings and samples

    @property
    def runs(self) -> list[Run]:
        """All trainings: none twice, where one serves several comparisons."""
        config = self.config
        return [Run(system, seed, comparison) for system, comparison in config.trainings for seed in config.seeds]

    def run_in(self, comparison: str, system: str, seed: int) -> Run:
        """The training of a system that serves a comparison."""
        return Run(system, seed, self.config.run_of(system, comparison))

    @property
    def prompts(self) -> Path:
        """What every model continues, one prompt per line."""
        return self.folder / "prompts.txt"

    def samples(self, run: Run) -> Path:
        """What a model writes after the prompts."""
        return self.training(run, "samples.txt")

    def baseline_report(self, run: Run) -> Path | None:
        """The training whose text decides how much text this one is trained on; None where a number decides."""
        other = self.config.comparisons[run.comparison].text_of
        return None if other is None else self.training_report(Run(self.config.baseline, run.seed, other))

    # -- tasks

    def task_scores(self, run: Run) -> Path:
        """The answers of a model to the tasks of lm-evaluation-harness."""
        return self.training(run, "tasks.json")

    def task_comparison(self, kind: str) -> Path:
        """The comparison of all systems on the tasks in one of TASK_KINDS."""
        return self.folder / f"tasks.{kind}"

    @property
    def task_files(self) -> list[Path]:
        """The files of the user's tasks and of StoryCloze: what is asked changes with them."""
        tasks = self.config.tasks
        if tasks is None:
            return []
        folders = [*tasks.include_path, *([] if tasks.storycloze is None else [tasks.storycloze])]
        found = (path for folder in folders for path in sorted(Path(folder).rglob("*")))
        return [for_snakemake(path) for path in found if path.is_file() and path.suffix != ".pyc"]

    @property
    def vocabulary_table(self) -> Path:
        """The statistics of the vocabularies as a table."""
        return self.folder / "statistics.txt"


def existing_files(patterns: Sequence[str]) -> list[Path]:
    """Return the files that paths and globs name. Raises MTScaffoldError where one is missing."""
    found = [Path(str(source)) for source in Documents(patterns).sources]
    for path in found:
        if not path.exists():
            raise MTScaffoldError(f"{path}: no such file; check data.documents")
    return found
