"""The systems of a configuration: how each segments words, and which of them share codes and data."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from mt_scaffold.corpus.glossaries import GlossaryIsolator
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration.training import SystemTrain
from mt_scaffold.experiment.runtime.schema import WrongValue, bounds, build_dataclass, join_key
from mt_scaffold.methods import Method, Picky, PlainBPE, RandomlyTrimmed, Trimmed, method_type, methods
from mt_scaffold.methods.bpe import MethodWithCodes
from mt_scaffold.segment.draw import NO_DRAW, Draw, check_alpha, check_dropout


def check_glossary(glossary: str) -> None:
    """Raise UsageError if a glossary is not a regular expression, or matches the empty string."""
    GlossaryIsolator([glossary])
    if re.match(glossary, "") is not None:
        raise UsageError(f"the glossary '{glossary}' matches the empty string; give a word, or a longer pattern")


@dataclass(frozen=True)
class Learn:
    """How codes are learned, unless a system says otherwise: the settings that methods share.

    symbols: merges (bpe), normal merged tokens (scaffold), merged tokens that are not removed (picky) or pieces
    besides the single characters (unigram), from source and target training words together.
    """

    symbols: int = field(metadata=bounds(least=1))
    min_frequency: int = field(default=2, metadata=bounds(least=1))
    total_symbols: bool = False


Algorithm = Literal["scaffold", "bpe", "picky", "trimmed", "random", "unigram"]
AlgorithmOfBytes = Literal["scaffold", "bpe", "picky", "trimmed", "random"]
_COUNT = bounds(least=1)
_DROPOUT = bounds(check=check_dropout)


def _setting(method: type[Method[Any]], name: str) -> Any:
    """Return the field of a method's setting, with the limits that the method gives it."""
    return field(default=None, metadata=method.settings()[name].metadata)


@dataclass(frozen=True)
class AnySystem:
    """The keys that systems of all tasks have, and their meaning."""

    algorithm: str | None = None
    symbols: int | None = _setting(PlainBPE, "symbols")
    min_frequency: int | None = _setting(PlainBPE, "min_frequency")
    total_symbols: bool | None = None
    threshold: float | None = _setting(Picky, "threshold")
    below: float | None = _setting(Trimmed, "below")
    refill: bool | None = None
    draw: int | None = _setting(RandomlyTrimmed, "draw")
    codes: str | None = None
    baseline: str | None = None
    train: SystemTrain | None = None
    # The values of algorithm, and the keys that name files of codes.
    algorithms: ClassVar[tuple[str, ...]]
    code_keys: ClassVar[tuple[str, ...]] = ("codes",)

    @classmethod
    def from_keys(cls, value: Any, key: str = "") -> Self:
        """Return the system that a YAML file describes; a key without a value is left out.

        Raises WrongValue as ``schema.build`` does, also for keys that contradict each other.
        """
        if isinstance(value, dict):
            known = cls.__dataclass_fields__
            value = {name: entry for name, entry in value.items() if entry is not None or name not in known}
        system: Self = build_dataclass(cls, value, key)
        for name, problem in system._contradictions():
            raise WrongValue(join_key(key, name), problem)
        return system

    def _contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield the contradictions among the keys, each as a key and its problem."""
        if self.files and self.algorithm is not None:
            yield self.file_keys[0], "give either an algorithm, which learns codes, or files of codes"
        elif not self.files and self.algorithm is None:
            yield "algorithm", f"missing: give {', '.join(self.algorithms)}, or a file as codes"
        settings = dict.fromkeys(name for each in methods().values() for name in each.settings())
        for name in (name for name in settings if getattr(self, name) is not None):
            if self.algorithm is None:
                yield name, "has no effect on codes that are given as a file; leave it out"
            else:
                try:
                    self.kind.check_setting(name)
                except UsageError as error:
                    yield name, str(error)
        for name, entry in self.kind.settings().items():
            if getattr(self, name) is None and entry.default is dataclasses.MISSING:
                yield name, f"missing: give it, to {entry.metadata['help']}"

    @property
    def kind(self) -> type[Method[Any]]:
        """Its method, with which it segments."""
        return MethodWithCodes if self.algorithm is None else method_type(self.algorithm)

    def method_with(self, learn: Learn, symbols: int | None = None) -> Method[Any] | None:
        """Return its method with all settings, or None if it is given codes.

        learn: the codes section, for settings that the system leaves out. symbols: the size of one side, if it has one.
        """
        if self.algorithm is None:
            return None
        own = {name: getattr(self, name) for name in self.kind.settings()} | {"symbols": symbols or self.symbols}
        settings = dataclasses.asdict(learn) | {name: value for name, value in own.items() if value is not None}
        return self.kind(**{name: value for name, value in settings.items() if name in self.kind.settings()})

    @property
    def file_keys(self) -> tuple[str, ...]:
        """The keys of its ``files``."""
        return tuple(name for name in self.code_keys if getattr(self, name) is not None)

    @property
    def files(self) -> tuple[str, ...]:
        """The files of codes that it is given."""
        return tuple(getattr(self, name) for name in self.file_keys)

    @property
    def resamplings(self) -> tuple[Draw, ...]:
        """The resampling of each side."""
        return ()

    @property
    def resamples(self) -> bool:
        """Whether its training text is segmented again in every epoch."""
        return any(self.resamplings)


@dataclass(frozen=True)
class System(AnySystem):
    """One of the compared systems: how it segments words, and anything else that sets it apart.

    ``algorithm`` names the method that learns codes (``mt_scaffold.methods``). Settings of methods follow; those that
    methods share replace those of the ``codes`` section. Codes are joint or, with ``joint: false``, separate for each
    side, of ``symbols_source`` and ``symbols_target`` if given. ``codes`` is a file to use instead (``codes_source``,
    ``codes_target``: one per side).

    ``vocabulary_threshold`` splits subwords that are rarer than that in the training text of their side
    (apply-bpe --vocabulary-threshold), counted without dropout; ``glossaries`` are words or patterns that are never
    split.

    ``dropout`` (also as ``dropout_source`` and ``dropout_target``) and ``sampling_alpha`` segment the training text
    again in every epoch (``mt_scaffold.segment.draw``).

    ``baseline`` is the system to test this one against (default: the experiment's). ``train``: options of its training.
    """

    algorithm: Algorithm | None = None
    symbols_source: int | None = field(default=None, metadata=_COUNT)
    symbols_target: int | None = field(default=None, metadata=_COUNT)
    joint: bool = True
    codes_source: str | None = None
    codes_target: str | None = None
    vocabulary_threshold: int | None = field(default=None, metadata=_COUNT)
    glossaries: list[str] = field(default_factory=list, metadata=bounds(check=check_glossary))
    dropout: float = field(default=0.0, metadata=_DROPOUT)
    dropout_source: float | None = field(default=None, metadata=_DROPOUT)
    dropout_target: float | None = field(default=None, metadata=_DROPOUT)
    sampling_alpha: float | None = field(default=None, metadata=bounds(check=check_alpha))

    algorithms = typing.get_args(Algorithm)
    code_keys = ("codes", "codes_source", "codes_target")

    def _contradictions(self) -> Iterator[tuple[str, str]]:
        yield from super()._contradictions()
        if self.files and self.file_keys not in (("codes",), ("codes_source", "codes_target")):
            yield self.file_keys[0], "give codes, or both codes_source and codes_target"
        if self.files and not self.joint:
            yield "joint", "has no effect on codes that are given as files; leave it out"
        sizes = [name for name in ("symbols_source", "symbols_target") if getattr(self, name) is not None]
        if self.symbols is not None and len(sizes) == 2:
            yield "symbols", "has no effect with both symbols_source and symbols_target; leave it out"
        for name in sizes:
            if self.files:
                yield name, "has no effect on codes that are given as a file; leave it out"
            if self.joint:
                yield name, "joint codes have one size; add joint: false, or give symbols"
        for name in ("vocabulary_threshold", "glossaries"):
            if getattr(self, name) and not self.kind.has_codes:
                yield name, f"not possible with {self.kind.name}; leave it out"
        for name in ("dropout", "dropout_source", "dropout_target", "sampling_alpha"):
            if getattr(self, name) and not name.startswith(self.kind.resampling):
                with_what = "codes" if self.kind.has_codes else self.kind.name
                yield name, f"not possible with {with_what}; give {self.kind.resampling} instead, or leave it out"

    @property
    def resamplings(self) -> tuple[Draw, Draw]:
        """The resampling of source and target."""
        if self.sampling_alpha is not None:
            draw = Draw("sampling_alpha", self.sampling_alpha)
            return draw, draw
        dropout = (self.dropout if own is None else own for own in (self.dropout_source, self.dropout_target))
        source, target = (Draw("dropout", amount) if amount else NO_DRAW for amount in dropout)
        return source, target

    def segmentation(self, learn: Learn, languages: tuple[str, str]) -> SegmentationSetting:
        """Return how it segments words, with the defaults of the ``codes`` section filled in."""
        sides = []
        for side, (language, symbols) in enumerate(
            zip(languages, (self.symbols_source, self.symbols_target), strict=True)
        ):
            if self.files:
                own = languages if self.files[0] == self.files[-1] else (language,)
                sides.append(CodesSetting(None, own, self.files[min(side, len(self.files) - 1)]))
            else:
                own = languages if self.joint else (language,)
                sides.append(CodesSetting(self.method_with(learn, symbols), own))
        return SegmentationSetting(sides[0], sides[1], self.vocabulary_threshold, tuple(self.glossaries))


@dataclass(frozen=True)
class LanguageModelSystem(AnySystem):
    """A system of language models, with a single side, which learns from bytes; the keys are those of System."""

    algorithm: AlgorithmOfBytes | None = None

    algorithms = typing.get_args(AlgorithmOfBytes)


@dataclass(frozen=True)
class CodesSetting:
    """The origin of a codes file: the method that learns (and trims) it, or the ``file`` that it is copied from.

    languages: one or both; it is learned from their training words and segments these. Empty for language models.
    """

    method: Method[Any] | None
    languages: tuple[str, ...]
    file: str | None = None

    @property
    def made_of(self) -> CodesSetting | None:
        """The codes that these are made from, or None if they are learned from words alone."""
        made_of = None if self.method is None else self.method.made_of
        return None if made_of is None else dataclasses.replace(self, method=made_of)

    @property
    def kind(self) -> type[Method[Any]]:
        """The method that segments with it."""
        return MethodWithCodes if self.method is None else type(self.method)

    @property
    def name(self) -> str:
        """Its name, equal for equal settings: ``bpe-4000``, ``scaffold-4000-min5.de``, ``picky-4000-ios0.7``."""
        if self.method is not None:
            name = self.method.label
        else:
            file = str(self.file)
            digest = hashlib.sha256(file.encode("utf-8", "surrogateescape")).hexdigest()[:6]
            name = f"given-{''.join(each if each.isalnum() and each.isascii() else '-' for each in Path(file).stem)}"
            name += f"-{digest}"
        return f"{name}.{self.languages[0]}" if len(self.languages) == 1 else name

    @property
    def file_or_name(self) -> str:
        """The given file, or the name of the settings, for the HTML report."""
        return self.file or self.name


def with_what_they_are_made_of(codes: Mapping[str, CodesSetting]) -> dict[str, CodesSetting]:
    """Return ``codes``, by name, together with the codes that they are made from."""
    made_of = [setting.made_of for setting in codes.values()]
    return {**codes, **{setting.name: setting for setting in made_of if setting is not None}}


@dataclass(frozen=True)
class SegmentationSetting:
    """How a system segments both sides."""

    source: CodesSetting
    target: CodesSetting
    vocabulary_threshold: int | None
    glossaries: tuple[str, ...]

    @property
    def kind(self) -> type[Method[Any]]:
        """The method that segments with the codes."""
        return self.source.kind

    @property
    def codes(self) -> tuple[CodesSetting, ...]:
        """The codes: one if they are joint, else those of source and target."""
        return (self.source,) if self.source == self.target else (self.source, self.target)

    @property
    def name(self) -> str:
        """Its name, which is equal for equal settings: that of its codes, and the settings beyond them."""
        name = "+".join(codes.name for codes in self.codes)
        name += f"-threshold{self.vocabulary_threshold}" if self.vocabulary_threshold is not None else ""
        if self.glossaries:
            name += "-glossaries" + hashlib.sha256("\0".join(self.glossaries).encode()).hexdigest()[:6]
        return name


@dataclass(frozen=True)
class DataSetting:
    """The setting of dictionaries and binarised data; systems with equal ones share these.

    reach: the kind of subwords that resampling can produce on each side (``Draw.reach``), which dictionaries include.
    """

    segmentation: SegmentationSetting
    reach: tuple[str, str]
    languages: tuple[str, str]

    @property
    def resampled(self) -> bool:
        """Whether the training text is kept as words, to be segmented again in every epoch."""
        return any(self.reach)

    @property
    def name(self) -> str:
        """The name of segmentation and resampling: ``bpe-4000``, ``bpe-4000.dropout``, ``bpe-4000.dropout-en``."""
        if self.reach[0] == self.reach[1]:
            suffixes = [self.reach[0]] if self.resampled else []
        else:
            sides = zip(self.reach, self.languages, strict=True)
            suffixes = [f"{reach}-{language}" for reach, language in sides if reach]
        return ".".join([self.segmentation.name, *suffixes])
