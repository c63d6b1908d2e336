"""The configuration of an experiment with language models (``task: language_modeling``): schema and defaults."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

from mt_scaffold.corpus.pretokenise import pretokeniser_of
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration.data import NAME, NAME_SAYS, STEMS
from mt_scaffold.experiment.configuration.systems import CodesSetting, LanguageModelSystem, Learn
from mt_scaffold.experiment.configuration.training import (
    OPTION,
    OPTION_SAYS,
    Average,
    TrainOptions,
)
from mt_scaffold.experiment.runtime.schema import OptionValue, bounds, without_none
from mt_scaffold.options import check_prune, memory_size


@dataclass(frozen=True)
class SyntheticDocuments:
    """Generated documents (data/synthetic.py): their numbers, and the seed of every byte.

    sentences: how many a document has. stems: of the language. clauses: the most in one sentence.
    """

    documents: int = field(default=1000, metadata=bounds(least=1))
    valid: int = field(default=50, metadata=bounds(least=1))
    test: int = field(default=100, metadata=bounds(least=1))
    sentences: int = field(default=10, metadata=bounds(least=1))
    seed: int = field(default=1, metadata=bounds(least=0))
    stems: int = field(default=STEMS, metadata=bounds(least=37))
    clauses: int = field(default=2, metadata=bounds(least=1, most=2))


@dataclass(frozen=True)
class DocumentFiles:
    """Documents in files: paths or globs, relative to the folder that the experiment is started in.

    format, field: as in mt_scaffold.corpus.documents (format: from the names of the files, if not given). ``valid`` and
    ``tests`` are left out with ``data.held_out_every``. lines_per_document: with it, documents that are lines are
    joined, that many to one.
    """

    train: list[str] = field(metadata=bounds(filled=True))
    valid: list[str] | None = field(default=None, metadata=bounds(filled=True))
    tests: dict[str, list[str]] | None = field(
        default=None, metadata=bounds(key_pattern=NAME, key_pattern_says=NAME_SAYS, filled=True)
    )
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
    """How the words of the training documents are counted: in how many jobs, each within how much memory (``8G``).

    prune: words with a count below this are dropped before merging (learn-bpe --prune), which can change the codes.
    """

    shards: int = field(default=1, metadata=bounds(least=1))
    max_memory: str | None = field(default=None, metadata=bounds(check=memory_size))
    prune: int = field(default=1, metadata=bounds(check=check_prune))


@dataclass(frozen=True)
class LearnFromBytes(Learn):
    """How codes are learned: Learn, and what is done before any merge.

    pretokenise: what a word is, ``spaces``, ``gpt2``, ``cl100k``, ``o200k`` or a pattern. split_digits: every digit is
    a separate word. bytes: the symbols are bytes, which language models need; there is nothing else to choose.
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

    tokens: of the training documents, each with its end. text: their bytes. text_of: the name of another comparison,
    whose baseline was trained on as much text; the baseline itself is not trained again.
    """

    tokens: int | None = field(default=None, metadata=bounds(least=1))
    text: int | None = field(default=None, metadata=bounds(least=1))
    text_of: str | None = None

    @property
    def rules(self) -> dict[str, int | str]:
        """The rules that are set, by name."""
        given = {"tokens": self.tokens, "text": self.text, "text_of": self.text_of}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class TrainLanguageModels(TrainOptions):
    """Options of fairseq-train, as in TrainOptions, without those that end a training.

    ``schedule``: after the warm-up the learning rate falls to its least value, along half a cosine or a line, and
    reaches it where the training ends, however many updates that takes.
    """

    schedule: Literal["cosine", "linear"] | None = None


@dataclass(frozen=True)
class Evaluate:
    """How models are compared: options of ``mt-scaffold evaluate``, and the number of bootstrap resamples."""

    options: dict[str, OptionValue] = field(
        default_factory=dict, metadata=bounds(key_pattern=OPTION, key_pattern_says=OPTION_SAYS)
    )
    bootstrap_samples: int = field(default=1000, metadata=bounds(least=2))


def _check_prompt(prompt: str) -> None:
    if len(prompt.splitlines()) > 1 or prompt.endswith(("\n", "\r")):
        raise UsageError("a prompt is a single line of text; remove its line ends")
    if prompt != prompt.rstrip(" "):
        raise UsageError("a space at the end is a token by itself, which words do not follow; remove it")


def _check_top_p(top_p: float) -> None:
    if not 0 < top_p <= 1:
        raise UsageError(f"must be more than 0 and at most 1, not {top_p}")


@dataclass(frozen=True)
class Samples:
    """Texts that every model continues: ``prompts``, by ``length`` tokens drawn with ``temperature`` and ``seed``.

    top_k: only from the most probable tokens, 0: from all. top_p: only from those that make up this probability.
    """

    prompts: list[str] = field(default_factory=list, metadata=bounds(check=_check_prompt))
    length: int = field(default=100, metadata=bounds(least=1))
    temperature: float = field(default=0.8, metadata=bounds(least=0))
    top_k: int = field(default=0, metadata=bounds(least=0))
    top_p: float = field(default=1.0, metadata=bounds(check=_check_top_p))
    seed: int = field(default=1, metadata=bounds(least=0))


@dataclass(frozen=True)
class HarnessTasks:
    """The tasks of lm-evaluation-harness that every model is asked.

    names: the harness' or the paper's, ``paper`` for all of the latter. num_fewshot: how many solved questions precede
    each; the mean over several counts. last_checkpoints: a training's score is the mean over its last ones, each by
    itself; 0: the score of the averaged model. include_path: folders with the user's tasks. storycloze: the folder of
    the user's files of StoryCloze. limit: only the first questions. batch_size: requests at once. download: fetch data
    that is not in the local cache. paper_setting: of a comparison, the setting in the paper's tables whose figures are
    shown beside.
    """

    names: list[str] = field(metadata=bounds(filled=True))
    num_fewshot: list[int] = field(default_factory=lambda: [0], metadata=bounds(least=0, filled=True))
    last_checkpoints: int = field(default=0, metadata=bounds(least=0))
    include_path: list[str] = field(default_factory=list)
    storycloze: str | None = None
    limit: int | None = field(default=None, metadata=bounds(least=1))
    batch_size: int | None = field(default=None, metadata=bounds(least=1))
    download: bool = False
    paper_setting: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LanguageModelConfig:
    """One experiment with language models, complete: every default filled in, every value checked."""

    task: Literal["language_modeling"]
    name: str = field(metadata=bounds(pattern=NAME, pattern_says=NAME_SAYS))
    data: DocumentData
    codes: LearnFromBytes
    systems: dict[str, LanguageModelSystem] = field(
        metadata=bounds(key_pattern=NAME, key_pattern_says=NAME_SAYS, filled=True)
    )
    baseline: str
    comparisons: dict[str, EqualAmount] = field(
        metadata=bounds(key_pattern=NAME, key_pattern_says=NAME_SAYS, filled=True)
    )
    train: TrainLanguageModels
    description: str = ""
    prepare: Counting = field(default_factory=Counting)
    binarise: Padding = field(default_factory=Padding)
    seeds: list[int] = field(default_factory=lambda: [1], metadata=bounds(least=1, filled=True))
    average: Average = field(default_factory=lambda: Average(last=1))
    evaluate: Evaluate = field(default_factory=Evaluate)
    samples: Samples = field(default_factory=Samples)
    tasks: HarnessTasks | None = None

    @property
    def wanted_checkpoints(self) -> int:
        """How many of a training's last checkpoints are averaged or asked tasks."""
        return max(self.average.last, 0 if self.tasks is None else self.tasks.last_checkpoints)

    @property
    def synthetic(self) -> bool:
        """Whether the text is synthetic; every figure made from it must say so."""
        return self.data.synthetic is not None

    @property
    def test_sets(self) -> list[str]:
        """The names of the test sets, in the order of the configuration."""
        files = self.data.documents
        return ["test"] if files is None or files.tests is None else list(files.tests)

    def codes_of(self, system: str) -> CodesSetting:
        """Return what makes a system's codes, with everything that it leaves to the ``codes`` section filled in."""
        own = self.systems[system]
        return CodesSetting(own.method_with(self.codes), (), *own.files)

    @property
    def all_codes(self) -> dict[str, CodesSetting]:
        """The codes of all systems, by name, each once."""
        return {codes.name: codes for codes in map(self.codes_of, self.systems)}

    def baseline_of(self, system: str) -> str | None:
        """Return the system that a system is tested against; None for the experiment's baseline itself."""
        own = self.systems[system].baseline or self.baseline
        return None if own == system else own

    def run_of(self, system: str, comparison: str) -> str:
        """Return the comparison whose training of ``system`` serves this one: another one's where they are the same."""
        other = self.comparisons[comparison].text_of
        return other if other is not None and system == self.baseline else comparison

    @property
    def trainings(self) -> list[tuple[str, str]]:
        """The trainings of each seed, as system and comparison: none twice."""
        pairs = ((system, self.run_of(system, name)) for name in self.comparisons for system in self.systems)
        return list(dict.fromkeys(pairs))

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and scalars, without unset keys; parse_experiment reads them back."""
        systems = {name: system.to_keys() for name, system in self.systems.items()}
        plain = without_none(dataclasses.asdict(dataclasses.replace(self, systems={})) | {"systems": systems})
        assert isinstance(plain, dict)
        return plain
