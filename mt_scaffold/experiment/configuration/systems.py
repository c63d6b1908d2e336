"""The systems of a configuration: how each segments words, and which of them share codes and segmentation."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mt_scaffold.corpus.glossaries import GlossaryIsolator
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration.training import SystemTrain
from mt_scaffold.experiment.configuration.unigram import check_unigram
from mt_scaffold.experiment.runtime.schema import bounds
from mt_scaffold.methods.parity import PARITY
from mt_scaffold.methods.unigram import UNIGRAM, check_alpha
from mt_scaffold.options import DEFAULT_THRESHOLD, check_dropout, check_threshold, check_uniform_sampling


def check_glossary(glossary: str) -> None:
    """Raise UsageError for a glossary that is not a regular expression, or would isolate every character."""
    GlossaryIsolator([glossary])
    if re.match(glossary, "") is not None:
        raise UsageError(f"the glossary '{glossary}' matches where there is nothing; give a word, or a longer pattern")


_DROPOUT = bounds(check=check_dropout)
_UNIFORM = bounds(check=check_uniform_sampling)
_LEAST_FREQUENCY = 2
TRIMMED = "trimmed"


@dataclass(frozen=True)
class Learn:
    """How codes are learned, where a system says nothing else (the options of learn-bpe).

    symbols: merges (bpe, parity), normal merged tokens (scaffold), merged tokens that are not removed (picky) or pieces
    beside the single characters (unigram), from source and target training words together.
    """

    symbols: int = field(metadata=bounds(least=1))
    min_frequency: int = field(default=_LEAST_FREQUENCY, metadata=bounds(least=1))
    total_symbols: bool = False


@dataclass(frozen=True)
class System:
    """One of the compared systems: how it segments words, and what else sets it apart.

    ``algorithm`` learns codes; ``symbols``, ``min_frequency`` and ``total_symbols`` replace those of the ``codes``
    section, and ``threshold`` is that of picky (docs/methods.md). Codes are joint, or with ``joint: false`` one for
    each side, of ``symbols_source`` and ``symbols_target`` where these are given. ``codes`` is a file to use instead
    (``codes_source`` and ``codes_target`` for each side).

    ``algorithm: trimmed`` is BPE whose tokens with a frequency ``below`` this in the training words are marked as
    scaffold (``mt-scaffold trim --below``); ``refill`` then learns BPE merges on until as many tokens stand again.

    ``algorithm: unigram`` is a Unigram model learned by SentencePiece (docs/methods.md); with ``sampling_alpha`` the
    training text is segmented again in every epoch, each segmentation drawn with its probability to this power.

    ``algorithm: parity`` is parity-aware BPE of source and target, which have as many subwords as each other in the
    validation words (docs/methods.md); its codes are joint.

    ``vocabulary_threshold`` splits subwords that are rarer than that in the training text of their side
    (apply-bpe --vocabulary-threshold), ``glossaries`` are words or patterns that are never split.

    ``inference: greedy`` takes the longest token from the left, in place of merges (apply-bpe --inference).

    With ``dropout`` the training text is segmented again in every epoch, each merge skipped with this probability;
    ``dropout_source`` and ``dropout_target`` replace it on one side. With ``uniform_sampling`` (and ``_source`` and
    ``_target``) each word is instead, with this probability, drawn from all of its segmentations
    (docs/methods.md).

    ``baseline`` is the system to test this one against (default: the experiment's). ``train``: its own options.
    """

    algorithm: Literal["scaffold", "bpe", "picky", "parity", "trimmed", "unigram"] | None = None
    symbols: int | None = field(default=None, metadata=bounds(least=1))
    symbols_source: int | None = field(default=None, metadata=bounds(least=1))
    symbols_target: int | None = field(default=None, metadata=bounds(least=1))
    min_frequency: int | None = field(default=None, metadata=bounds(least=1))
    total_symbols: bool | None = None
    threshold: float | None = field(default=None, metadata=bounds(check=check_threshold))
    below: int | None = field(default=None, metadata=bounds(least=1))
    refill: bool | None = None
    joint: bool = True
    codes: str | None = None
    codes_source: str | None = None
    codes_target: str | None = None
    vocabulary_threshold: int | None = field(default=None, metadata=bounds(least=1))
    glossaries: list[str] = field(default_factory=list, metadata=bounds(check=check_glossary))
    inference: Literal["merges", "greedy"] | None = None
    dropout: float = field(default=0.0, metadata=_DROPOUT)
    dropout_source: float | None = field(default=None, metadata=_DROPOUT)
    dropout_target: float | None = field(default=None, metadata=_DROPOUT)
    uniform_sampling: float = field(default=0.0, metadata=_UNIFORM)
    uniform_sampling_source: float | None = field(default=None, metadata=_UNIFORM)
    uniform_sampling_target: float | None = field(default=None, metadata=_UNIFORM)
    sampling_alpha: float | None = field(default=None, metadata=bounds(check=check_alpha))
    baseline: str | None = None
    train: SystemTrain | None = None

    @property
    def dropouts(self) -> tuple[float, float]:
        """The probability of skipping a merge on the source and on the target side."""
        own = (self.dropout_source, self.dropout_target)
        source, target = (self.dropout if value is None else value for value in own)
        return source, target

    @property
    def uniform_samplings(self) -> tuple[float, float]:
        """The probability that a word is drawn from all of its segmentations, on the source and on the target side."""
        own = (self.uniform_sampling_source, self.uniform_sampling_target)
        source, target = (self.uniform_sampling if value is None else value for value in own)
        return source, target

    @property
    def resamples(self) -> bool:
        """Whether its training text is segmented again in every epoch: with dropout or sampling of either kind."""
        return any(self.dropouts) or any(self.uniform_samplings) or self.sampling_alpha is not None


@dataclass(frozen=True)
class CodesSetting:
    """What makes a codes file: the settings it is learned (and trimmed) with, or the ``file`` it is copied from.

    languages: whose training words it is learned from and segments, one or both; none for language models.
    """

    algorithm: str | None
    symbols: int
    min_frequency: int
    total_symbols: bool
    languages: tuple[str, ...]
    file: str | None = None
    threshold: float = DEFAULT_THRESHOLD
    below: int | None = None
    refill: bool = False

    @property
    def untrimmed(self) -> CodesSetting | None:
        """The BPE codes that these mark rare tokens of; None where they are not trimmed."""
        if self.algorithm != TRIMMED:
            return None
        return dataclasses.replace(self, algorithm="bpe", below=None, refill=False)

    @property
    def name(self) -> str:
        """Its name, the same for the same settings: ``bpe-4000``, ``scaffold-4000-min5.de``, ``picky-4000-ios0.7``."""
        if self.file is not None:
            digest = hashlib.sha256(self.file.encode("utf-8", "surrogateescape")).hexdigest()[:6]
            stem = "".join(each if each.isalnum() and each.isascii() else "-" for each in Path(self.file).stem)
            name = f"given-{stem}-{digest}"
            return f"{name}.{self.languages[0]}" if len(self.languages) == 1 else name
        name = f"{self.algorithm}-{self.symbols}"
        name += f"-below{self.below}" if self.below is not None else ""
        name += "-refill" if self.refill else ""
        name += f"-min{self.min_frequency}" if self.min_frequency != _LEAST_FREQUENCY else ""
        name += "-total" if self.total_symbols else ""
        name += f"-ios{self.threshold!r}" if self.threshold != DEFAULT_THRESHOLD else ""
        return f"{name}.{self.languages[0]}" if len(self.languages) == 1 else name

    @property
    def flags(self) -> str:
        """The options of ``mt-scaffold learn-bpe`` (or ``learn-unigram``) that learn it, beyond those of the words."""
        if self.algorithm == UNIGRAM:
            return f"--symbols {self.symbols}" + " --total-symbols" * self.total_symbols
        flags = f"--algorithm {self.algorithm} --symbols {self.symbols} --min-frequency {self.min_frequency}"
        flags += f" --threshold {self.threshold!r}" if self.algorithm == "picky" else ""
        return flags + " --total-symbols" * self.total_symbols

    @property
    def file_or_name(self) -> str:
        """The file that was given, or the name of the settings."""
        return self.file or self.name


def with_untrimmed(codes: Mapping[str, CodesSetting]) -> dict[str, CodesSetting]:
    """Return codes by name, and with them those that trimmed ones are made of."""
    untrimmed = [setting.untrimmed for setting in codes.values()]
    return {**codes, **{setting.name: setting for setting in untrimmed if setting is not None}}


@dataclass(frozen=True)
class SegmentationSetting:
    """How a system segments both sides; systems with equal ones share dictionaries and binarised data."""

    source: CodesSetting
    target: CodesSetting
    vocabulary_threshold: int | None
    glossaries: tuple[str, ...]
    inference: str = "merges"

    @property
    def unigram(self) -> bool:
        """Whether words are segmented with Unigram models."""
        return self.source.algorithm == UNIGRAM

    @property
    def codes(self) -> tuple[CodesSetting, ...]:
        """The codes: one for joint ones, else those of source and target."""
        return (self.source,) if self.source == self.target else (self.source, self.target)

    @property
    def name(self) -> str:
        """Its name, the same for the same settings: that of its codes, and what is beyond them."""
        name = "+".join(codes.name for codes in self.codes)
        name += f"-threshold{self.vocabulary_threshold}" if self.vocabulary_threshold is not None else ""
        if self.glossaries:
            name += "-glossaries" + hashlib.sha256("\0".join(self.glossaries).encode()).hexdigest()[:6]
        return name + (f"-{self.inference}" if self.inference != "merges" else "")


def segmentation_of(system: System, learn: Learn, languages: tuple[str, str]) -> SegmentationSetting:
    """Return how a system segments, with everything that it leaves to the ``codes`` section filled in."""
    files = (system.codes_source or system.codes, system.codes_target or system.codes)
    sizes = (system.symbols_source, system.symbols_target)
    sides = []
    for file, size, language in zip(files, sizes, languages, strict=True):
        setting = CodesSetting(
            system.algorithm,
            size or system.symbols or learn.symbols,
            _LEAST_FREQUENCY if system.algorithm == UNIGRAM else system.min_frequency or learn.min_frequency,
            learn.total_symbols if system.total_symbols is None else system.total_symbols,
            languages if system.joint else (language,),
            threshold=system.threshold or DEFAULT_THRESHOLD,
            below=system.below,
            refill=bool(system.refill),
        )
        own = languages if files[0] == files[1] else (language,)
        sides.append(setting if file is None else CodesSetting(None, 0, 0, False, own, file))
    glossaries = tuple(system.glossaries)
    inference = system.inference or "merges"
    return SegmentationSetting(sides[0], sides[1], system.vocabulary_threshold, glossaries, inference)


def check_trimming(algorithm: str | None, below: int | None, refill: bool | None) -> Iterator[tuple[str, str]]:
    """Yield what contradicts itself in how a vocabulary is trimmed: a key, and what is wrong with it."""
    if algorithm == TRIMMED and below is None:
        yield "below", "missing: give the frequency that tokens of a trimmed vocabulary need"
    for name, value in (("below", below), ("refill", refill)):
        if algorithm not in (TRIMMED, None) and value is not None:
            yield name, "has an effect only with algorithm: trimmed; leave it out"


def check_system(system: System) -> Iterator[tuple[str, str]]:
    """Yield what contradicts itself in a system: a key, and what is wrong with it."""
    files = [name for name in ("codes", "codes_source", "codes_target") if getattr(system, name) is not None]
    learned = ["symbols", "symbols_source", "symbols_target", "min_frequency", "total_symbols", "threshold"]
    learned += ["below", "refill"]
    if files and system.algorithm is not None:
        yield files[0], "give either an algorithm, which learns codes, or files of codes"
    elif not files and system.algorithm is None:
        yield "algorithm", "missing: give bpe, scaffold, picky, parity, trimmed or unigram, or a file as codes"
    if files and files not in (["codes"], ["codes_source", "codes_target"]):
        yield files[0], "give codes, or both codes_source and codes_target"
    yield from check_trimming(system.algorithm, system.below, system.refill)
    yield from check_unigram(system)
    for name in learned:
        if files and getattr(system, name) is not None:
            yield name, "has no effect on codes that are given as a file; leave it out"
    if system.threshold is not None and system.algorithm in ("bpe", "scaffold", PARITY, TRIMMED):
        yield "threshold", f"belongs to the algorithm picky and has no effect on {system.algorithm}; leave it out"
    if system.algorithm == PARITY and not system.joint:
        yield "joint", "parity-aware BPE compares source and target; leave it out"
    if files and not system.joint:
        yield "joint", "has no effect on codes that are given as files; leave it out"
    for side, both in zip(
        ("source", "target"), zip(system.dropouts, system.uniform_samplings, strict=True), strict=True
    ):
        if all(both):
            own = getattr(system, f"uniform_sampling_{side}") is not None
            name = f"uniform_sampling_{side}" if own else "uniform_sampling"
            yield name, f"takes the place of dropout, which the {side} side has too; leave out one of them"
            break
    if system.inference == "greedy":
        for name in ("dropout", "dropout_source", "dropout_target", "vocabulary_threshold"):
            if getattr(system, name):
                yield name, "not possible with greedy inference; leave out one of them"
    if system.symbols is not None and None not in (system.symbols_source, system.symbols_target):
        yield "symbols", "has no effect beside symbols_source and symbols_target; leave it out"
    for name in ("symbols_source", "symbols_target"):
        if system.joint and getattr(system, name) is not None:
            yield name, "joint codes have one size; add joint: false, or give symbols"
