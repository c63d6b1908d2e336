"""The experiment configuration: one YAML file, its schema, its defaults and its errors.

The dataclasses here and in ``data.py``, ``systems.py`` and ``training.py`` are the whole schema of translation, and
those in ``language_model.py`` that of language models. Anything that does not fit the schema raises a UsageError of one
line that names the file, the line and the key.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import checks, language_model_checks, yaml_file
from mt_scaffold.experiment.configuration.data import NAME, ArchiveTest, Data, Limits, Tokenise
from mt_scaffold.experiment.configuration.language_model import LanguageModelConfig
from mt_scaffold.experiment.configuration.overrides import overridden
from mt_scaffold.experiment.configuration.shared import AnyConfig
from mt_scaffold.experiment.configuration.systems import (
    CodesSetting,
    DataSetting,
    Learn,
    SegmentationSetting,
    System,
)
from mt_scaffold.experiment.configuration.training import OPTION, Average, Train
from mt_scaffold.experiment.runtime.bleu import sacrebleu_set
from mt_scaffold.experiment.runtime.schema import (
    OptionValue,
    Pattern,
    WrongValue,
    bounds,
    build,
    check_seed,
    self_and_parents,
    show,
)
from mt_scaffold.segment.draw import Draw

_LANGUAGE = Pattern(r"[A-Za-z]+([_-][A-Za-z0-9]+)*", "a language code such as en")

MetricName = Literal[
    "bleu", "chrf", "chrf++", "ter", "spbleu", "tokenised_bleu", "tokenised_bleu_split", "tokenised_bleu_lc"
]
METRIC_NAMES = typing.get_args(MetricName)
# sacreBLEU's names.
BleuTokeniser = Literal[
    "13a", "zh", "ja-mecab", "ko-mecab", "intl", "char", "spm", "flores101", "flores200", "spBLEU-1K", "none"
]
# sacreBLEU's choice by target language, under its two-letter and three-letter codes, and by script. It does not
# know the other languages that are written in Chinese characters.
_BLEU_TOKENISERS: dict[str, BleuTokeniser] = {
    **dict.fromkeys(("zh", "zho", "cmn", "yue", "wuu", "gan", "hsn", "lzh", "hans", "hant"), "zh"),
    **dict.fromkeys(("ja", "jpn"), "ja-mecab"),
    **dict.fromkeys(("ko", "kor"), "ko-mecab"),
}


def bleu_tokeniser(language: str | None) -> BleuTokeniser:
    """Return the tokeniser that sacreBLEU's command chooses for a target language (``-l en-zh``).

    A region, which sacreBLEU does not know, is ignored (``zh_CN``), and so is any script but the Chinese.

    >>> bleu_tokeniser("zh"), bleu_tokeniser("ja_JP"), bleu_tokeniser("nan_Hant"), bleu_tokeniser("de_Latn")
    ('zh', 'ja-mecab', 'zh', '13a')
    """
    parts = re.split("[-_]", (language or "").lower())
    return next((_BLEU_TOKENISERS[part] for part in parts if part in _BLEU_TOKENISERS), "13a")


@dataclass(frozen=True)
class Languages:
    """The two language codes, which are the suffixes of file names and select sacremoses' rules."""

    source: str = field(metadata=bounds(pattern=_LANGUAGE))
    target: str = field(metadata=bounds(pattern=_LANGUAGE))

    @property
    def pair(self) -> str:
        """The pair, as sacreBLEU names it."""
        return f"{self.source}-{self.target}"


@dataclass(frozen=True)
class Clean:
    """Which pairs of train and valid are kept, by their word counts (mt_scaffold.experiment.data.clean)."""

    min_tokens: int = field(default=1, metadata=bounds(least=1))
    max_tokens: int = field(default=250, metadata=bounds(least=1))
    max_ratio: float = field(default=1.5, metadata=bounds(least=1))


@dataclass(frozen=True)
class Translate:
    """How test sets are translated: plain fairseq-generate options, as in Train."""

    options: dict[str, OptionValue] = field(default_factory=dict, metadata=bounds(key_pattern=OPTION))


def _check_argument(argument: str) -> None:
    known = ("source", "hypothesis", "reference", "references", "output")
    if unknown := [name for name in re.findall(r"\{(\w*)\}", argument) if name not in known]:
        raise UsageError(f"no {{{unknown[0]}}} is filled in, but {', '.join(f'{{{name}}}' for name in known)}")
    if "{references}" in argument and argument != "{references}":
        raise UsageError("{references} becomes one argument for each, and must be an argument by itself")


@dataclass(frozen=True)
class External:
    """A metric that another program computes, which writes a score for each segment.

    command: its arguments, without a shell, in which paths replace ``{source}``, ``{hypothesis}``, ``{output}``, and
    ``{reference}`` (the first) or ``{references}``. signature: the model and the versions that computed it; scores with
    different ones are not compared.
    """

    command: list[str] = field(metadata=bounds(filled=True, check=_check_argument))
    signature: str
    higher_is_better: bool = True


class Over(list[str]):
    """What a measure is compared on: ``each`` test set, the ``mean`` over all of them, or a list, that of these."""

    @classmethod
    def from_keys(cls, value: Any, key: str = "") -> Over:
        """Return the list, of a single word for each or mean; raises WrongValue as ``schema.build`` does."""
        return cls(build(list[str], [value] if value in ("each", "mean") else value, key, bounds(filled=True)))

    def tests_of_mean(self, tests: Sequence[str]) -> list[str]:
        """Return those of all test sets over which the mean is taken."""
        return [*tests] if self in (["each"], ["mean"]) else [*self]


@dataclass(frozen=True)
class Primary:
    """The primary measure, which has the first table, the summary, the figure and the correction to itself.

    metric: default: the first that all scores have, BLEU before others. over: each test set, or a mean. others: whether
    the other metrics, and the same one on other test sets, are tested, each corrected by itself.
    """

    metric: str | None = None
    over: Over = field(default_factory=lambda: Over(["each"]))
    others: Literal["tested", "untested"] = "tested"

    @property
    def of_mean(self) -> bool:
        """Whether systems are compared on a mean over test sets."""
        return self.over != ["each"]


@dataclass(frozen=True)
class Score:
    """The metrics (evaluation/metrics.py), and the number of bootstrap resamples.

    bleu_tokeniser: by default, that of the target language. external: by the names of the metrics. primary: of the
    comparison.
    """

    bootstrap_samples: int = field(default=1000, metadata=bounds(least=2))
    metrics: list[MetricName] = field(
        default_factory=lambda: ["bleu", "chrf", "chrf++", "tokenised_bleu", "tokenised_bleu_split"],
        metadata=bounds(filled=True),
    )
    bleu_tokeniser: BleuTokeniser | None = None
    external: dict[str, External] = field(default_factory=dict, metadata=bounds(key_pattern=NAME))
    primary: Primary = field(default_factory=Primary)


@dataclass(frozen=True)
class Published:
    """A published score: the publication (``by``), its ``system``, and our system to show it next to (``beside``)."""

    test_set: str
    by: str
    system: str
    beside: str
    metric: MetricName
    score: float = field(metadata=bounds(least=0))


@dataclass(frozen=True)
class Config(AnyConfig):
    """A translation experiment, with every default filled in and every value checked."""

    name: str = field(metadata=bounds(pattern=NAME))
    languages: Languages
    data: Data
    codes: Learn
    systems: dict[str, System] = field(metadata=bounds(key_pattern=NAME, filled=True))
    baseline: str
    train: Train
    task: Literal["translation"] = "translation"
    description: str = ""
    tokenise: Tokenise = field(default_factory=Tokenise)
    clean: Clean = field(default_factory=Clean)
    binarise: Limits = field(default_factory=Limits)
    seeds: list[int] = field(default_factory=lambda: [1], metadata=bounds(least=1, filled=True, check=check_seed))
    average: Average = field(default_factory=Average)
    translate: Translate = field(default_factory=Translate)
    score: Score = field(default_factory=Score)
    compare_with: list[Published] = field(default_factory=list)

    @property
    def bleu_tokeniser(self) -> BleuTokeniser:
        """The tokeniser that sacreBLEU uses on the test sets for BLEU."""
        return self.score.bleu_tokeniser or bleu_tokeniser(self.languages.target)

    @property
    def test_sets(self) -> list[str]:
        """The names of the test sets, in the order of the configuration."""
        return ["test"] if self._tests is None else list(self._tests)

    def further_references(self, test: str) -> int:
        """Return how many references a test set has besides the first; raises UsageError as ``sacrebleu_set`` does."""
        parts = (self._tests or {}).get(test, [])
        if isinstance(parts, ArchiveTest):
            if parts.sacrebleu is not None:
                return sacrebleu_set(parts.sacrebleu, self.languages.pair)[1] - 1
            parts = parts.pairs
        return len(parts[0].references or ()) if parts else 0

    @property
    def _tests(self) -> Mapping[str, Any] | None:
        """The test sets that the data section names, or None if the data is synthetic."""
        text = self.data.files or self.data.archives
        return None if text is None else text.tests

    def segmentation(self, system: str) -> SegmentationSetting:
        """Return how a system segments words."""
        languages = (self.languages.source, self.languages.target)
        return self.systems[system].segmentation(self.codes, languages)

    @property
    def segmentations(self) -> dict[str, SegmentationSetting]:
        """The distinct segmentations of all systems, by name."""
        settings = map(self.segmentation, self.systems)
        return {setting.name: setting for setting in settings}

    @property
    def all_codes(self) -> dict[str, CodesSetting]:
        """The distinct codes of all systems, by name."""
        return {codes.name: codes for setting in self.segmentations.values() for codes in setting.codes}

    def data_setting(self, system: str) -> DataSetting:
        """Return the setting of a system's dictionaries and binarised data."""
        source, target = self.systems[system].resamplings
        languages = (self.languages.source, self.languages.target)
        return DataSetting(self.segmentation(system), (source.reach, target.reach), languages)

    @property
    def data_settings(self) -> dict[str, DataSetting]:
        """The distinct data settings of all systems, by name."""
        return {setting.name: setting for setting in map(self.data_setting, self.systems)}

    def resamplings_of(self, data: str) -> tuple[Draw, Draw]:
        """Return the resampling of source and target training text for systems with this data (``DataSetting.name``).

        The amounts are those of one of the systems; all of them have the same ``reach``.
        """
        system = next(each for name, each in self.systems.items() if self.data_setting(name).name == data)
        source, target = system.resamplings
        return source, target

    def tokenise_for(self, part: str, side: str = "source") -> Tokenise:
        """Return how one side of ``part`` (``train``, ``valid`` or a test set) is tokenised.

        Either all parts are lowercased or none is.
        """
        common = self.tokenise.of_side(side)
        if self.data.archives is not None and part in self.data.archives.tests:
            own = (self.data.archives.tests[part].tokenise or self.tokenise).of_side(side)
            return dataclasses.replace(own, lowercase=common.lowercase)
        return common


Experiment = Config | LanguageModelConfig


def load_experiment(path: PathLike, overrides: Mapping[str, Any] | None = None) -> Experiment:
    """Read and check the experiment configuration in ``path`` (YAML, UTF-8), of the ``task`` that it names.

    overrides: values that replace those of the file, nested in the same way (``{"data": {"sample": 500}}``), and keys
    of the file that exclude them (``overrides.overridden``).
    Raises UsageError for a syntax error, for an unknown, missing or duplicate key, and for a value of the wrong type or
    out of range; MTScaffoldError if the file cannot be read.
    """
    document, lines = yaml_file.read(path)
    if not overrides:
        return parse_experiment(document, str(path), lines)
    return parse_experiment(overridden(document, overrides), f"{path}, as changed on the command line")


def load_config(path: PathLike, overrides: Mapping[str, Any] | None = None) -> Config:
    """Read and check the configuration of a translation experiment, as load_experiment does.

    Raises UsageError if it configures language models.
    """
    config = load_experiment(path, overrides)
    if not isinstance(config, Config):
        raise UsageError(f"{path}: task: {config.task}: give the configuration of a translation experiment")
    return config


def parse_config(document: Mapping[str, Any], origin: str = "configuration", lines: Mapping[str, int] = {}) -> Config:
    """Check the configuration of a translation experiment; otherwise as parse_experiment."""
    config = parse_experiment(document, origin, lines)
    if not isinstance(config, Config):
        raise UsageError(f"{origin}: task: {config.task}: give the configuration of a translation experiment")
    return config


def parse_experiment(
    document: Mapping[str, Any], origin: str = "configuration", lines: Mapping[str, int] = {}
) -> Experiment:
    """Check a configuration that is already a dictionary and fill in the defaults.

    ``origin`` and ``lines`` (line numbers by dotted key) locate a wrong value in the error. Raises UsageError as
    load_experiment does.
    """
    try:
        task = document.get("task", "translation")
        if not isinstance(task, str) or task not in SCHEMAS:
            raise WrongValue("task", f"must be {' or '.join(SCHEMAS)}, not {show(task)}")
        kind, check = SCHEMAS[task]
        config: Experiment = build(kind, dict(document))
        check(config)
        return config
    except WrongValue as error:
        other = next((name for name, (kind, _) in SCHEMAS.items() if error.key in kind.__dataclass_fields__), None)
        hint = f"; it is one of task: {other}" if other and ": unknown key" in str(error) else ""
        line = next((f":{lines[key]}" for key in self_and_parents(error.key) if key in lines), "")
        raise UsageError(f"{origin}{line}: {error}{hint}") from None


# The schema of a configuration and its check, by its task; the tasks are in mt_scaffold.experiment.tasks.
SCHEMAS: dict[str, tuple[Any, Callable[[Any], None]]] = {
    "translation": (Config, checks.check),
    "language_modeling": (LanguageModelConfig, language_model_checks.check),
}
