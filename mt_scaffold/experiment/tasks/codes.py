"""Which codes an experiment makes, from what, and with which options."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike, open_output
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import Config, Experiment
from mt_scaffold.experiment.configuration.systems import CodesSetting, with_untrimmed
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.methods.learn import learn_bpe
from mt_scaffold.methods.parity import PARITY
from mt_scaffold.methods.trimming import SAME, trim
from mt_scaffold.methods.unigram import UNIGRAM, learn_unigram


def learned_from(layout: TranslationLayout, codes: str) -> list[Path]:
    """Return the training words that codes are learned from."""
    return [layout.words("train", language) for language in made_codes(layout.config)[codes].languages]


def compared_on(layout: TranslationLayout, codes: str) -> list[Path]:
    """Return the validation words that parity-aware BPE compares languages on; none for other codes."""
    setting = made_codes(layout.config)[codes]
    return [layout.words("valid", language) for language in setting.languages if setting.algorithm == PARITY]


def untrimmed_codes(config: Experiment, codes: str) -> str:
    """Return the name of the BPE codes that trimmed ones are made of."""
    untrimmed = config.all_codes[codes].untrimmed
    assert untrimmed is not None
    return untrimmed.name


def made_codes(config: Experiment) -> dict[str, CodesSetting]:
    """Return all codes that a run makes, by name: those of the systems, and what trimmed ones are made of."""
    return with_untrimmed(config.all_codes)


def given_codes(config: Experiment) -> list[str]:
    """Return the codes that are copied from files."""
    return [name for name, codes in config.all_codes.items() if codes.file is not None]


def learned_codes(config: Experiment) -> list[str]:
    """Return the codes that are learned."""
    made = made_codes(config).items()
    beside = {*unigram_models(config)}
    return [name for name, codes in made if codes.file is None and codes.untrimmed is None and name not in beside]


def unigram_models(config: Experiment) -> list[str]:
    """Return the Unigram models, which SentencePiece learns."""
    return [name for name, codes in config.all_codes.items() if codes.algorithm == UNIGRAM]


def check_sentencepiece(config: Config) -> None:
    """Raise MTScaffoldError where a system has a Unigram model, and SentencePiece is not installed."""
    if unigram_models(config) and find_spec("sentencepiece") is None:
        name = next(name for name, system in config.systems.items() if system.algorithm == UNIGRAM)
        raise MTScaffoldError(
            f"systems.{name}: unigram needs the Python package sentencepiece, which is not installed: in the source "
            "folder, pip install '.[unigram]', or make venv for everything"
        )


def trimmed_codes(config: Experiment) -> list[str]:
    """Return the codes that are made of others by trimming."""
    return [name for name, codes in config.all_codes.items() if codes.untrimmed is not None]


def check_codes(config: Config) -> None:
    """Raise UsageError where a codes file that a system names is missing or malformed, before anything runs."""
    for name, system in config.systems.items():
        for key in ("codes", "codes_source", "codes_target"):
            if (path := getattr(system, key)) is not None:
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


def learn(setting: CodesSetting, output: PathLike, num_workers: int, text: Mapping[str, Any]) -> None:
    """Learn codes, or a Unigram model; text: the arguments of ``learn_bpe`` that say what to learn from."""
    if setting.algorithm == UNIGRAM:
        words = text["documents"].sources
        return learn_unigram(output, setting.symbols, words, setting.total_symbols, num_workers)
    learn_bpe(
        outfile=output,
        num_symbols=setting.symbols,
        min_frequency=setting.min_frequency,
        algorithm=setting.algorithm or "",
        total_symbols=setting.total_symbols,
        threshold=setting.threshold if setting.algorithm == "picky" else None,
        num_workers=num_workers,
        **text,
    )
    return None


def trim_codes(
    setting: CodesSetting, untrimmed: PathLike, output: PathLike, num_workers: int, text: Mapping[str, Any]
) -> None:
    """Trim the vocabulary of codes; text: as of ``learn``."""
    refill: dict[str, Any] = {"refill": SAME, "min_frequency": setting.min_frequency} if setting.refill else {}
    which = {key: text[key] for key in ("documents", "counts") if key in text}
    trim(untrimmed, outfile=output, below=setting.below, num_workers=num_workers, **refill, **which)
