"""Which codes an experiment makes, from what, and with which options."""

from __future__ import annotations

import functools
import shlex
from pathlib import Path

from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike, open_output
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import Config, Experiment
from mt_scaffold.experiment.configuration.layout import Layout
from mt_scaffold.experiment.configuration.systems import CodesSetting, with_what_they_are_made_of


def learned_from(layout: Layout, codes: str) -> list[Path]:
    """Return the training words that codes are learned from."""
    return [layout.words("train", language) for language in made_codes(layout.config)[codes].languages]


def compared_on(layout: Layout, codes: str) -> list[Path]:
    """Return the validation words that a method compares languages on; none for other methods."""
    setting = made_codes(layout.config)[codes]
    return [layout.words("valid", language) for language in setting.languages if setting.kind.by_language]


def learn_flags(config: Experiment, codes: str) -> str:
    """Return the options of the command that makes some codes, beyond those of the words and files."""
    method = made_codes(config)[codes].method
    assert method is not None
    return shlex.join(method.flags)


mark_flags = learn_flags


def untrimmed_codes(config: Experiment, codes: str) -> str:
    """Return the name of the codes that others are made of."""
    made_of = config.all_codes[codes].made_of
    assert made_of is not None
    return made_of.name


def made_codes(config: Experiment) -> dict[str, CodesSetting]:
    """Return all codes that a run makes, by name: those of the systems, and those that others are made of."""
    return with_what_they_are_made_of(config.all_codes)


def given_codes(config: Experiment) -> list[str]:
    """Return the codes that are copied from files."""
    return [name for name, codes in config.all_codes.items() if codes.file is not None]


def codes_by(command: str, config: Experiment) -> list[str]:
    """Return the codes that a command makes."""
    made = made_codes(config).items()
    return [name for name, codes in made if codes.method is not None and codes.method.command == command]


# The commands of mt-scaffold that learn; each has a rule.
learned_codes = functools.partial(codes_by, "learn-bpe")
unigram_models = functools.partial(codes_by, "learn-unigram")
trimmed_codes = functools.partial(codes_by, "trim")


def check_packages(config: Config) -> None:
    """Raise MTScaffoldError where the method of a system needs a Python package that is not installed."""
    for name, system in config.systems.items():
        try:
            if system.method is not None:
                system.method.check_installed()
        except MTScaffoldError as error:
            raise MTScaffoldError(f"systems.{name}: {error}") from None


def check_codes(config: Config) -> None:
    """Raise UsageError where a codes file that a system names is missing or malformed, before anything runs."""
    for name, system in config.systems.items():
        for key, path in zip(system.file_keys, system.files, strict=True):
            try:
                _ = Codes.read(path).merges
            except MTScaffoldError as error:
                raise UsageError(f"systems.{name}.{key}: {error}") from None


def copy_codes(source: PathLike, output: PathLike) -> None:
    """Copy a codes file from elsewhere. Raises MTScaffoldError where it is not one."""
    codes = Codes.read(source)
    _ = codes.merges  # read only now, and refused where malformed
    with open_output(output) as stream:
        stream.write(codes.text)
