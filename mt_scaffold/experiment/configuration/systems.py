"""The systems of a configuration: how each segments words, and which of them share codes and data."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from mt_scaffold.corpus.glossaries import GlossaryIsolator
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration.data import SIDES
from mt_scaffold.experiment.configuration.training import SystemTrain
from mt_scaffold.experiment.runtime.schema import WrongValue, bounds, build, join_key, known_keys, show
from mt_scaffold.methods import Method, make_method, methods
from mt_scaffold.methods.bpe import MethodWithCodes
from mt_scaffold.segment.draw import NO_DRAW, RESAMPLINGS, Draw


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


SHARED = tuple(entry.name for entry in dataclasses.fields(Learn))


class _Key(NamedTuple):
    """A key of a system: the type of its value, its limits, and the default that config.yaml names."""

    kind: Any
    limits: Mapping[str, Any] = {}  # never modified
    default: Any = None


_COUNT = bounds(least=1)


@dataclass(frozen=True)
class System:
    """One of the compared systems: how it segments words, and anything else that sets it apart.

    In YAML its keys are those of its method (``mt_scaffold.methods``) and these:

    ``algorithm`` names the method that learns codes; settings that methods share replace those of the ``codes``
    section. Codes are joint or, with ``joint: false``, separate for each side, of ``symbols_source`` and
    ``symbols_target`` if given. ``codes`` is a file to use instead (``codes_source``, ``codes_target``: one per side).

    ``vocabulary_threshold`` splits subwords that are rarer than that in the training text of their side
    (apply-bpe --vocabulary-threshold), counted without dropout; ``glossaries`` are words or patterns that are never
    split.

    ``dropout`` (also as ``dropout_source`` and ``dropout_target``) and ``sampling_alpha`` segment the training text
    again in every epoch (``mt_scaffold.segment.draw``).

    ``baseline`` is the system to test this one against (default: the experiment's). ``train``: options of its training.

    method: None for codes that are given as ``files``. shared: the settings that are left to the codes section.
    sizes, resamplings: one for each side. keys: those of the file, with defaults.
    """

    sides: ClassVar[tuple[str, ...]] = SIDES

    method: Method[Any] | None
    shared: frozenset[str]
    sizes: tuple[int | None, ...]
    files: tuple[str, ...]
    joint: bool
    resamplings: tuple[Draw, ...]
    vocabulary_threshold: int | None
    glossaries: tuple[str, ...]
    baseline: str | None
    train: SystemTrain | None
    keys: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def methods(cls) -> dict[str, type[Method[Any]]]:
        """Return the methods that systems of this kind can have, by name."""
        return methods()

    @classmethod
    def known_keys(cls, algorithm: str | None = None) -> dict[str, _Key]:
        """Return the keys of any system, in order; a setting of several methods has the limits of ``algorithm``."""
        kinds = cls.methods()
        keys = {"algorithm": _Key(Literal[tuple(kinds)])}
        for kind in (*(kinds[name] for name in (algorithm,) if name in kinds), *kinds.values()):
            hints = typing.get_type_hints(kind)
            for name, entry in kind.settings().items():
                keys.setdefault(name, _Key(hints[name], entry.metadata))
        first = ("algorithm", "symbols", "symbols_source", "symbols_target", *SHARED[1:])
        keys |= {f"symbols_{side}": _Key(int, _COUNT) for side in cls.sides}
        keys = {name: keys[name] for name in (*first, *keys) if name in keys}
        return keys | cls._keys_of_segmentation() | {"baseline": _Key(str), "train": _Key(SystemTrain)}

    @classmethod
    def _keys_of_segmentation(cls) -> dict[str, _Key]:
        keys = {"joint": _Key(bool, default=True)}
        keys |= {name: _Key(str) for name in ("codes", *(f"codes_{side}" for side in cls.sides))}
        keys["vocabulary_threshold"] = _Key(int, _COUNT)
        keys["glossaries"] = _Key(list[str], bounds(check=check_glossary), [])
        for kind in RESAMPLINGS.values():
            keys[kind.name] = _Key(float, bounds(check=kind.check), 0.0 if kind.by_side else None)
            keys |= {f"{kind.name}_{side}": _Key(float, bounds(check=kind.check)) for side in cls.sides * kind.by_side}
        return keys

    @classmethod
    def from_keys(cls, value: Any, key: str = "") -> System:
        """Return the system that a YAML file describes; raises WrongValue as ``schema.build`` does."""
        if not isinstance(value, dict):
            raise WrongValue(key, f"must be 'key: value' lines, not {show(value)}")
        algorithm = value.get("algorithm")
        known = cls.known_keys(algorithm if isinstance(algorithm, str) else None)
        value = known_keys(value, known, key)
        given = {}
        for name, entry in known.items():
            if value.get(name) is not None:
                given[name] = build(entry.kind, value[name], join_key(key, name), entry.limits)
        for name, problem in cls._contradictions(given):
            raise WrongValue(join_key(key, name), problem)
        method = None
        if "algorithm" in given:
            kind = cls.methods()[given["algorithm"]]
            try:
                method = make_method(kind.name, **{name: given[name] for name in kind.settings() if name in given})
            except UsageError as error:
                raise WrongValue(key, str(error)) from None
        files = tuple(given[name] for name in ("codes", *(f"codes_{side}" for side in cls.sides)) if name in given)
        return cls(
            method=method,
            shared=frozenset(name for name in SHARED if method and name in method.settings() and name not in given),
            sizes=tuple(given.get(f"symbols_{side}") for side in cls.sides),
            files=files,
            joint=given.get("joint", True),
            resamplings=tuple(_resampling(given, side) for side in cls.sides or ("",)),
            vocabulary_threshold=given.get("vocabulary_threshold"),
            glossaries=tuple(given.get("glossaries", ())),
            baseline=given.get("baseline"),
            train=given.get("train"),
            keys={name: given.get(name, entry.default) for name, entry in known.items()},
        )

    @classmethod
    def _contradictions(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the contradictions among the given keys, each as a key and its problem."""
        kinds = cls.methods()
        kind = kinds.get(given.get("algorithm", ""))
        files = [name for name in ("codes", *(f"codes_{side}" for side in cls.sides)) if name in given]
        if files and kind is not None:
            yield files[0], "give either an algorithm, which learns codes, or files of codes"
        elif not files and kind is None:
            yield "algorithm", f"missing: give {', '.join(kinds)}, or a file as codes"
        if files and files not in (["codes"], ["codes_source", "codes_target"]):
            yield files[0], "give codes, or both codes_source and codes_target"
        settings = [*dict.fromkeys(name for each in kinds.values() for name in each.settings())]
        settings += [f"symbols_{side}" for side in cls.sides]
        for name in settings:
            if name in given and kind is None:
                yield name, "has no effect on codes that are given as a file; leave it out"
            elif name in given and kind is not None and not name.startswith("symbols"):
                try:
                    kind.check_setting(name)
                except UsageError as error:
                    yield name, str(error)
        for name, entry in (kind.settings() if kind else {}).items():
            if name not in given and entry.default is dataclasses.MISSING:
                yield name, f"missing: give it, to {entry.metadata['help']}"
        joint = given.get("joint", True)
        if files and not joint:
            yield "joint", "has no effect on codes that are given as files; leave it out"
        sizes = [f"symbols_{side}" for side in cls.sides]
        if "symbols" in given and sizes and all(name in given for name in sizes):
            yield "symbols", "has no effect with both symbols_source and symbols_target; leave it out"
        for name in sizes:
            if joint and name in given:
                yield name, "joint codes have one size; add joint: false, or give symbols"
        yield from cls._unsupported(given, kind or MethodWithCodes)

    @classmethod
    def _unsupported(cls, given: Mapping[str, Any], kind: type[Method[Any]]) -> Iterator[tuple[str, str]]:
        """Yield keys of segmentation that a method does not support, with the problem."""
        for name in ("vocabulary_threshold", "glossaries"):
            if given.get(name) and not kind.filters:
                yield name, f"not possible with {kind.name}; leave it out"
        for resampling in RESAMPLINGS:
            for name in (resampling, *(f"{resampling}_{side}" for side in cls.sides)):
                if given.get(name) and resampling != kind.resampling:
                    with_what = "codes" if kind.has_codes else kind.name
                    yield name, f"not possible with {with_what}; give {kind.resampling} instead, or leave it out"

    @property
    def file_keys(self) -> tuple[str, ...]:
        """The keys of its ``files``."""
        return ("codes",) if len(self.files) == 1 else tuple(f"codes_{side}" for side in self.sides[: len(self.files)])

    @property
    def resamples(self) -> bool:
        """Whether its training text is segmented again in every epoch."""
        return any(self.resamplings)

    def method_with(self, learn: Learn, side: int | None = None) -> Method[Any] | None:
        """Return its method with all settings: those left to the codes section, and the size of a side."""
        if self.method is None:
            return None
        settings = {name: getattr(learn, name) for name in self.shared}
        if side is not None and (size := self.sizes[side]) is not None:
            settings["symbols"] = size
        return self.method.with_settings(**settings)

    def to_keys(self) -> dict[str, Any]:
        """Return its keys, as ``from_keys`` reads them."""
        return {**self.keys, "train": self.train and dataclasses.asdict(self.train)}


class LanguageModelSystem(System):
    """A system of language models, with a single side, which learns from bytes."""

    sides = ()

    @classmethod
    def methods(cls) -> dict[str, type[Method[Any]]]:
        """Return the methods that learn from the bytes of a single text, by name."""
        return {name: kind for name, kind in methods().items() if kind.byte_level}

    @classmethod
    def _keys_of_segmentation(cls) -> dict[str, _Key]:
        keys = super()._keys_of_segmentation()
        return {"codes": keys["codes"]}

    @classmethod
    def from_keys(cls, value: Any, key: str = "") -> System:
        """Return the system, as System does; ``dropout: 0.0`` is accepted because earlier versions wrote it."""
        if isinstance(value, dict) and "dropout" in value:
            if value["dropout"]:
                raise WrongValue(join_key(key, "dropout"), "language models are trained without BPE-dropout; remove it")
            value = {name: entry for name, entry in value.items() if name != "dropout"}
        return super().from_keys(value, key)


def _resampling(given: Mapping[str, Any], side: str) -> Draw:
    amounts = {name: given.get(f"{name}_{side}", given.get(name, 0.0)) for name in RESAMPLINGS}
    return next((Draw(name, amount) for name, amount in amounts.items() if amount), NO_DRAW)


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


def segmentation_of(system: System, learn: Learn, languages: tuple[str, str]) -> SegmentationSetting:
    """Return the segmentation of a system, with the defaults of the ``codes`` section filled in."""
    sides = []
    for side, language in enumerate(languages):
        if system.files:
            own = languages if len(system.files) == 1 or system.files[0] == system.files[1] else (language,)
            sides.append(CodesSetting(None, own, system.files[min(side, len(system.files) - 1)]))
        else:
            languages_of = languages if system.joint else (language,)
            sides.append(CodesSetting(system.method_with(learn, side), languages_of))
    return SegmentationSetting(sides[0], sides[1], system.vocabulary_threshold, system.glossaries)
