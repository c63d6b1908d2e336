"""The configuration of an experiment with language models (``task: language_modeling``): schema and defaults."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Literal

from mt_scaffold.corpus.pretokenise import pretokeniser_of
from mt_scaffold.experiment.configuration.data import NAME, STEMS
from mt_scaffold.experiment.configuration.shared import AnyConfig
from mt_scaffold.experiment.configuration.systems import CodesSetting, LanguageModelSystem, Learn
from mt_scaffold.experiment.configuration.training import (
    OPTION,
    Average,
    TrainOptions,
)
from mt_scaffold.experiment.runtime.schema import OptionValue, bounds, check_seed
from mt_scaffold.options import check_prune, memory_size


@dataclass(frozen=True)
class SyntheticDocuments:
    """Generated documents (data/synthetic.py): their numbers, and the seed that fixes every byte.

    sentences: sentences per document. stems: stems of the language. clauses: clauses per sentence, at most.
    """

    documents: int = field(default=1000, metadata=bounds(least=1))
    valid: int = field(default=50, metadata=bounds(least=1))
    test: int = field(default=100, metadata=bounds(least=1))
    sentences: int = field(default=10, metadata=bounds(least=1))
    seed: int = field(default=1, metadata=bounds(least=0))
    stems: int = field(default=STEMS, metadata=bounds(least=37, most=STEMS))
    clauses: int = field(default=2, metadata=bounds(least=1, most=2))


@dataclass(frozen=True)
class DocumentFiles:
    """Documents in files: paths or globs, relative to the working directory in which the experiment is started.

    format, field: as in mt_scaffold.corpus.documents (format: by default, inferred from the file names). ``valid`` and
    ``tests`` are left out with ``data.held_out_every``. lines_per_document: the number of lines that are joined to one
    document, for documents that are lines.
    """

    train: list[str] = field(metadata=bounds(filled=True))
    valid: list[str] | None = field(default=None, metadata=bounds(filled=True))
    tests: dict[str, list[str]] | None = field(default=None, metadata=bounds(key_pattern=NAME, filled=True))
    format: Literal["lines", "files", "jsonl", "parquet"] | None = None
    field: str | None = None
    lines_per_document: int = dataclasses.field(default=1, metadata=bounds(least=1))


@dataclass(frozen=True)
class DocumentData:
    """Where the documents come from: exactly one of the kinds in DOCUMENT_KINDS.

    ``held_out_every: N`` takes two of every N documents of train: the last for the test set ``test``, the one before
    it for validation. ``sample`` keeps only that many documents at the start of train, to rehearse an experiment.
    """

    synthetic: SyntheticDocuments | None = None
    documents: DocumentFiles | None = None
    held_out_every: int | None = field(default=None, metadata=bounds(least=3))
    sample: int | None = field(default=None, metadata=bounds(least=1))


DOCUMENT_KINDS = ("synthetic", "documents")


@dataclass(frozen=True)
class Counting:
    """How the words of the training documents are counted: the number of jobs, and the memory of each (``8G``).

    prune: words with a count below this are dropped before merging (learn-bpe --prune), which can change the codes.
    """

    shards: int = field(default=1, metadata=bounds(least=1))
    max_memory: str | None = field(default=None, metadata=bounds(check=memory_size))
    prune: int = field(default=1, metadata=bounds(check=check_prune))


@dataclass(frozen=True)
class LearnFromBytes(Learn):
    """How codes are learned: as in Learn, after pre-tokenisation.

    pretokenise: how text is split into words: ``gpt2``, ``cl100k``, ``o200k`` or a pattern. split_digits:
    every digit is a separate word. bytes: the symbols are bytes; language models allow nothing else.
    """

    pretokenise: str = field(default="gpt2", metadata=bounds(check=pretokeniser_of))
    split_digits: bool = True
    bytes: bool = True


@dataclass(frozen=True)
class Padding:
    """The size of a dictionary is padded to a multiple of ``padding_factor``."""

    padding_factor: int = field(default=8, metadata=bounds(least=1))


@dataclass(frozen=True)
class EqualAmount:
    """When the trainings of a comparison end; exactly one of these.

    tokens: tokens of the training documents, including one end token each. text: bytes of the documents. text_of: the
    name of another comparison, to read as many bytes as its baseline did; the baseline is not trained again.
    """

    tokens: int | None = field(default=None, metadata=bounds(least=1))
    text: int | None = field(default=None, metadata=bounds(least=1))
    text_of: str | None = None


@dataclass(frozen=True)
class TrainLanguageModels(TrainOptions):
    """Options of fairseq-train, as in TrainOptions, except those that end a training.

    ``schedule``: after the warm-up, the learning rate decays to ``min-lr`` along half a cosine or a line, and reaches
    it at the end of the training, however many updates that takes.
    """

    schedule: Literal["cosine", "linear"] | None = None


@dataclass(frozen=True)
class Evaluate:
    """How models are compared: options of ``mt-scaffold evaluate``, and the number of bootstrap resamples."""

    options: dict[str, OptionValue] = field(default_factory=dict, metadata=bounds(key_pattern=OPTION))
    bootstrap_samples: int = field(default=1000, metadata=bounds(least=2))


@dataclass(frozen=True)
class HarnessTasks:
    """The tasks of lm-evaluation-harness that every model is asked.

    names: tasks of the harness. num_fewshot: the number of solved questions that precede each question; a score is the
    mean over several numbers. last_checkpoints: the number of a
    training's last checkpoints whose mean is its score; 0: the score of the averaged model. include_path: folders with
    the user's tasks. limit: ask only the first questions of a task, up to this number. batch_size: requests at once.
    """

    names: list[str] = field(metadata=bounds(filled=True))
    num_fewshot: list[int] = field(default_factory=lambda: [0], metadata=bounds(least=0, filled=True))
    last_checkpoints: int = field(default=0, metadata=bounds(least=0))
    include_path: list[str] = field(default_factory=list)
    limit: int | None = field(default=None, metadata=bounds(least=1))
    batch_size: int | None = field(default=None, metadata=bounds(least=1))


@dataclass(frozen=True)
class LanguageModelConfig(AnyConfig):
    """An experiment with language models, with every default filled in and every value checked."""

    task: Literal["language_modeling"]
    name: str = field(metadata=bounds(pattern=NAME))
    data: DocumentData
    codes: LearnFromBytes
    systems: dict[str, LanguageModelSystem] = field(metadata=bounds(key_pattern=NAME, filled=True))
    baseline: str
    comparisons: dict[str, EqualAmount] = field(metadata=bounds(key_pattern=NAME, filled=True))
    train: TrainLanguageModels
    description: str = ""
    prepare: Counting = field(default_factory=Counting)
    binarise: Padding = field(default_factory=Padding)
    seeds: list[int] = field(default_factory=lambda: [1], metadata=bounds(least=1, filled=True, check=check_seed))
    average: Average = field(default_factory=lambda: Average(last=1))
    evaluate: Evaluate = field(default_factory=Evaluate)
    tasks: HarnessTasks | None = None

    @property
    def wanted_checkpoints(self) -> int:
        """The number of a training's last checkpoints that are needed, to be averaged or asked tasks."""
        return max(self.average.last, 0 if self.tasks is None else self.tasks.last_checkpoints)

    @property
    def test_sets(self) -> list[str]:
        """The names of the test sets, in the order of the configuration."""
        files = self.data.documents
        return ["test"] if files is None or files.tests is None else list(files.tests)

    def codes_of(self, system: str) -> CodesSetting:
        """Return the setting of a system's codes, with the defaults of the ``codes`` section filled in."""
        own = self.systems[system]
        return CodesSetting(own.method_with(self.codes), (), *own.files)

    @property
    def all_codes(self) -> dict[str, CodesSetting]:
        """The distinct codes of all systems, by name."""
        return {codes.name: codes for codes in map(self.codes_of, self.systems)}

    def run_of(self, system: str, comparison: str) -> str:
        """Return the comparison whose training of ``system`` serves this one: for the baseline, its ``text_of``."""
        other = self.comparisons[comparison].text_of
        return other if other is not None and system == self.baseline else comparison

    @property
    def trainings(self) -> list[tuple[str, str]]:
        """The distinct trainings of each seed, as pairs of system and comparison."""
        pairs = ((system, self.run_of(system, name)) for name in self.comparisons for system in self.systems)
        return list(dict.fromkeys(pairs))
