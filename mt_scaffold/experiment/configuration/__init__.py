"""The experiment configuration: one YAML file, its schema, its defaults and its errors.

The dataclasses here and in ``data.py`` are the whole schema. Whatever does not fit it raises a UsageError of one line
that names the file, the line and the key.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import checks, yaml_file
from mt_scaffold.experiment.configuration.data import NAME, NAME_SAYS, Data, Tokenise
from mt_scaffold.experiment.configuration.schema import (
    OptionValue,
    WrongValue,
    bounds,
    build,
    self_and_parents,
    without_none,
)
from mt_scaffold.files import PathLike
from mt_scaffold.options import check_dropout

_LANGUAGE = r"[A-Za-z]+([_-][A-Za-z0-9]+)*"
_LANGUAGE_SAYS = "a language code such as en"
_OPTION = r"[A-Za-z0-9][A-Za-z0-9_-]*"
_OPTION_SAYS = "an option without its leading dashes, such as max-tokens"

MetricName = Literal[
    "bleu", "chrf", "chrf++", "ter", "spbleu", "tokenised_bleu", "tokenised_bleu_split", "tokenised_bleu_lc"
]


@dataclass(frozen=True)
class Languages:
    """The two language codes, which are the suffixes of file names and select sacremoses' rules."""

    source: str = field(metadata=bounds(pattern=_LANGUAGE, pattern_says=_LANGUAGE_SAYS))
    target: str = field(metadata=bounds(pattern=_LANGUAGE, pattern_says=_LANGUAGE_SAYS))


@dataclass(frozen=True)
class Prepare:
    """How a large corpus is prepared; nothing here changes a word of it.

    The training text is tokenised in ``chunks`` jobs per language. Without ``keep_text``, the raw training text
    and its subwords are deleted as soon as no step needs them; the cleaned words stay.
    """

    chunks: int = field(default=1, metadata=bounds(least=1))
    keep_text: bool = True


@dataclass(frozen=True)
class Clean:
    """Which pairs of train and valid are kept, by their numbers of words (mt_scaffold.experiment.clean)."""

    min_tokens: int = field(default=1, metadata=bounds(least=1))
    max_tokens: int = field(default=250, metadata=bounds(least=1))
    max_ratio: float = field(default=1.5, metadata=bounds(least=1))


@dataclass(frozen=True)
class Learn:
    """How many joint merges are learned, from source and target training words together."""

    symbols: int = field(metadata=bounds(least=1))
    min_frequency: int = field(default=2, metadata=bounds(least=1))


@dataclass(frozen=True)
class System:
    """How one of the compared systems segments words.

    With ``dropout`` the training text is segmented again in every epoch, each merge skipped with this probability.
    """

    algorithm: Literal["scaffold", "bpe"]
    dropout: float = field(default=0.0, metadata=bounds(check=check_dropout))


@dataclass(frozen=True)
class Batch:
    """The plain fairseq-train options of one batch size; their ``update-freq`` is meant for this number of ``gpus``."""

    options: dict[str, OptionValue] = field(metadata=bounds(key_pattern=_OPTION, key_pattern_says=_OPTION_SAYS))
    gpus: int | None = field(default=None, metadata=bounds(least=1))


@dataclass(frozen=True)
class Train:
    """Plain fairseq-train options: ``true`` is a flag, ``false`` leaves it out, a list gives several values.

    ``batch`` chooses one of ``batches``, whose options are added to ``options``.
    """

    options: dict[str, OptionValue] = field(metadata=bounds(key_pattern=_OPTION, key_pattern_says=_OPTION_SAYS))
    batch: str | None = None
    batches: dict[str, Batch] = field(
        default_factory=dict, metadata=bounds(key_pattern=NAME, key_pattern_says=NAME_SAYS)
    )

    @property
    def all_options(self) -> dict[str, OptionValue]:
        """The options, including those of the chosen batch."""
        return self.options | (self.batches[self.batch].options if self.batch is not None else {})

    def options_on(self, gpus: int) -> dict[str, OptionValue]:
        """Return all options, with the ``update-freq`` that gives the chosen batch on this number of GPUs (0: a CPU).

        On a CPU, where such a batch is only rehearsed, ``update-freq`` is unchanged. Raises UsageError where the batch
        cannot be divided evenly.
        """
        options = self.all_options
        batch = self.batches[self.batch] if self.batch is not None else None
        if batch is None or batch.gpus is None or gpus == 0:
            return options
        update_freq = options.get("update-freq", 1)
        if type(update_freq) is not int:
            raise UsageError(
                f"train.batches.{self.batch}: update-freq must be a whole number where gpus is given, not {update_freq}"
            )
        parts = batch.gpus * update_freq
        if parts % gpus:
            raise UsageError(
                f"train.batches.{self.batch}: a batch of {batch.gpus} GPUs x update-freq {update_freq} = {parts} parts "
                f"cannot be shared by {gpus} GPUs; use a number of GPUs that divides {parts}, or another batch"
            )
        return options | {"update-freq": parts // gpus}


@dataclass(frozen=True)
class Average:
    """How many of the last epoch checkpoints are averaged; 0 takes the one with the best validation loss."""

    last: int = field(default=5, metadata=bounds(least=0))


@dataclass(frozen=True)
class Translate:
    """Plain fairseq-generate options, as in Train."""

    options: dict[str, OptionValue] = field(
        default_factory=dict, metadata=bounds(key_pattern=_OPTION, key_pattern_says=_OPTION_SAYS)
    )


@dataclass(frozen=True)
class Score:
    """The metrics (mt_scaffold.experiment.metrics), COMET's checkpoint, and the number of bootstrap resamples."""

    bootstrap_samples: int = field(default=1000, metadata=bounds(least=1))
    metrics: list[MetricName] = field(
        default_factory=lambda: ["bleu", "chrf", "chrf++", "tokenised_bleu", "tokenised_bleu_split"],
        metadata=bounds(filled=True),
    )
    comet: str | None = None


@dataclass(frozen=True)
class Published:
    """A score published elsewhere: ``by`` whom, for which ``system`` of theirs, shown ``beside`` which of ours."""

    test_set: str
    by: str
    system: str
    beside: str
    metric: MetricName
    score: float = field(metadata=bounds(least=0))


@dataclass(frozen=True)
class RepeatedText:
    """Which of the paper's experiments this one repeats, so that the paper's figures can be shown beside ours.

    text: one of the texts in ``experiment/paper.json``. test_set, metric: what the paper's BLEU is compared with.
    """

    text: str
    test_set: str
    metric: MetricName


@dataclass(frozen=True)
class Config:
    """One experiment, complete: every default filled in, every value checked."""

    name: str = field(metadata=bounds(pattern=NAME, pattern_says=NAME_SAYS))
    languages: Languages
    data: Data
    codes: Learn
    systems: dict[str, System] = field(metadata=bounds(key_pattern=NAME, key_pattern_says=NAME_SAYS, filled=True))
    baseline: str
    train: Train
    description: str = ""
    tokenise: Tokenise = field(default_factory=Tokenise)
    clean: Clean = field(default_factory=Clean)
    prepare: Prepare = field(default_factory=Prepare)
    seeds: list[int] = field(default_factory=lambda: [1], metadata=bounds(least=1, filled=True))
    average: Average = field(default_factory=Average)
    translate: Translate = field(default_factory=Translate)
    score: Score = field(default_factory=Score)
    compare_with: list[Published] = field(default_factory=list)
    paper: RepeatedText | None = None

    @property
    def synthetic(self) -> bool:
        """Whether the text is synthetic; every figure made from it must say so."""
        return self.data.synthetic is not None

    @property
    def test_sets(self) -> list[str]:
        """The names of the test sets, in the order of the configuration."""
        return ["test"] if self._tests is None else list(self._tests)

    @property
    def _tests(self) -> Mapping[str, Any] | None:
        """The test sets that the data section names (None: the data is synthetic)."""
        text = self.data.files or self.data.archives
        return None if text is None else text.tests

    def tokenise_for(self, part: str) -> Tokenise:
        """Return how ``part`` (``train``, ``valid`` or a test set) is tokenised."""
        if self.data.archives is not None and part in self.data.archives.tests:
            return self.data.archives.tests[part].tokenise or self.tokenise
        return self.tokenise

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and scalars, without unset keys; parse_config reads them back."""
        plain = without_none(dataclasses.asdict(self))
        assert isinstance(plain, dict)
        return plain


def load_config(path: PathLike, overrides: Mapping[str, Any] | None = None) -> Config:
    """Read and check the experiment configuration in ``path`` (YAML, UTF-8).

    overrides: values that replace those of the file, nested as they are there: ``{"data": {"sample": 500}}``.
    Raises UsageError for a syntax error, a key that is unknown, missing or duplicate, and for a value of the wrong
    type or out of range; MTScaffoldError where the file cannot be read.
    """
    document, lines = yaml_file.read(path)
    if not overrides:
        return parse_config(document, str(path), lines)
    return parse_config(yaml_file.merged(document, overrides), f"{path} with --config")


def parse_config(document: Mapping[str, Any], origin: str = "configuration", lines: Mapping[str, int] = {}) -> Config:
    """Check a configuration that is already a dictionary and fill in the defaults.

    ``origin`` and ``lines`` (line numbers by dotted key) locate a wrong value in the error. Raises UsageError as
    load_config does.
    """
    try:
        config: Config = build(Config, dict(document))
        checks.check(config)
    except WrongValue as error:
        line = next((f":{lines[key]}" for key in self_and_parents(error.key) if key in lines), "")
        raise UsageError(f"{origin}{line}: {error}") from None
    return config
