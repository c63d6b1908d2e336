"""The codes of an experiment: which it makes, from which text or other codes, and their records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike, open_output
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import Config, Experiment
from mt_scaffold.experiment.configuration.layout import Layout
from mt_scaffold.experiment.configuration.systems import CodesSetting, with_what_they_are_made_of
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.runtime.bleu import bleu_with
from mt_scaffold.experiment.runtime.result_warnings import ResultWarning, print_warnings
from mt_scaffold.methods import Trimmed
from mt_scaffold.methods.learn import learn
from mt_scaffold.methods.trimming import SAME, trim

# A rough number of characters in a dictionary.
_CHARACTERS = 300


def learned_from(layout: TranslationLayout, codes: str) -> list[Path]:
    """Return the training words that codes are learned from."""
    return [layout.words("train", language) for language in made_codes(layout.config)[codes].languages]


def untrimmed_codes(config: Experiment, codes: str) -> str:
    """Return the name of the codes that trimmed ones are made from."""
    made_of = config.all_codes[codes].made_of
    assert made_of is not None
    return made_of.name


def made_codes(config: Experiment) -> dict[str, CodesSetting]:
    """Return all codes that a run makes, by name: those of the systems, and those that trimmed ones are made from."""
    return with_what_they_are_made_of(config.all_codes)


def given_codes(config: Experiment) -> list[str]:
    """Return the codes that are copied from files."""
    return [name for name, codes in config.all_codes.items() if codes.file is not None]


def learned_codes(config: Experiment, suffix: str = "") -> list[str]:
    """Return the codes and other models that are learned from words alone; suffix: only those with this file suffix."""
    made = made_codes(config).items()
    learned = {name: codes.kind.suffix for name, codes in made if codes.method is not None and codes.made_of is None}
    return [name for name in learned if suffix in ("", learned[name])]


def trimmed_codes(config: Experiment) -> list[str]:
    """Return the codes that are made by trimming others."""
    return [name for name, codes in config.all_codes.items() if codes.made_of is not None]


def records(layout: Layout[Any]) -> list[Path]:
    """Return the records of the codes that the experiment learns or trims."""
    return [
        layout.step_record(f"learn-{name}") for name in (*learned_codes(layout.config), *trimmed_codes(layout.config))
    ]


def check_packages(config: Config) -> None:
    """Raise MTScaffoldError if the method of a system, or BLEU, needs a Python package that is not installed."""
    # Loading a tokeniser with a SentencePiece model would download it.
    if config.bleu_tokeniser.endswith("-mecab"):
        bleu_with("bleu", config.bleu_tokeniser)
    for name, system in config.systems.items():
        try:
            system.kind.check_installed()
        except MTScaffoldError as error:
            raise MTScaffoldError(f"systems.{name}: {error}") from None


def check_codes(config: Experiment, with_ids: bool = False) -> None:
    """Raise UsageError if a codes file that a system names is missing, malformed or incompatible with the system.

    with_ids: require codes of bytes after a pre-tokeniser.
    """
    for name, system in config.systems.items():
        for key, path in zip(system.file_keys, system.files, strict=True):
            try:
                codes = Codes.read(path)
                _ = codes.merges
            except MTScaffoldError as error:
                raise UsageError(f"systems.{name}.{key}: {error}") from None
            if with_ids and codes.header.end_of_word:
                raise UsageError(f"systems.{name}.{key}: {path}: codes without ids; learn codes with --pretokenise")


def dictionary_size(codes: CodesSetting) -> int:
    """Return the approximate number of entries in the dictionary of codes: merged symbols and characters."""
    if codes.file is not None:
        return len(Codes.read(codes.file).merges) + _CHARACTERS
    return int(getattr(codes.method, "symbols", 0)) + _CHARACTERS


def copy_codes(source: PathLike, output: PathLike) -> None:
    """Copy a given codes file. Raises MTScaffoldError if it is not a codes file."""
    codes = Codes.read(source)
    _ = codes.merges  # parsed on first use, which refuses malformed lines
    with open_output(output) as stream:
        stream.write(codes.text)


@dataclass(frozen=True)
class LearnRecord:
    """The outcome of learning. symbols: requested. tokens: normal merged tokens in the codes; None for other models."""

    codes: str
    method: str
    symbols: int
    tokens: int | None = field(metadata={"omit_none": True})
    warnings: list[ResultWarning] = field(default_factory=list)


def _record(name: str, method: str, symbols: int, learned: Any, with_base_symbols: bool = False) -> LearnRecord:
    tokens = None
    if hasattr(learned, "codes"):
        merges = learned.codes.merges
        tokens = len(merges) if all(merge.normal for merge in merges) else len(learned.codes.normal)
    warnings = []
    if learned.exhausted and tokens is not None:
        base = " and the base symbols" if with_base_symbols else ""
        warnings.append(ResultWarning("few-tokens", name, f"{tokens:,}{base} of {symbols:,}"))
    print_warnings(warnings)
    return LearnRecord(name, method, symbols, tokens, warnings)


def learn_model(
    name: str, setting: CodesSetting, output: PathLike, num_workers: int, text: Mapping[str, Any]
) -> LearnRecord:
    """Learn codes, or another model, and return the record.

    text: the arguments of ``learn`` that select the text.
    """
    method = setting.method
    assert method is not None
    learned = learn(method=method, outfile=output, num_workers=num_workers, **text)
    return _record(name, method.name, method.amount, learned, getattr(method, "total_symbols", False))


def trim_codes(
    name: str, setting: CodesSetting, untrimmed: PathLike, output: PathLike, num_workers: int, text: Mapping[str, Any]
) -> LearnRecord:
    """Trim the vocabulary of codes, and return the record; text: as in ``learn_model``."""
    method = setting.method
    assert isinstance(method, Trimmed)
    refill: dict[str, Any] = {"refill": SAME, "min_frequency": method.min_frequency} if method.refill else {}
    which = {key: text[key] for key in ("documents", "counts") if key in text}
    trimmed = trim(untrimmed, outfile=output, below=method.below, num_workers=num_workers, **refill, **which)
    return _record(name, method.name, len(Codes.read(untrimmed).normal), trimmed)
