"""The YAML file of an intrinsic study: which texts, methods and sizes it measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import yaml_file
from mt_scaffold.experiment.configuration.data import NAME, NAME_SAYS
from mt_scaffold.experiment.configuration.systems import SHARED, System
from mt_scaffold.experiment.runtime.schema import (
    WrongValue,
    bounds,
    build,
    join_key,
    nearest,
    self_and_parents,
    show,
)
from mt_scaffold.methods import Method, methods
from mt_scaffold.segment.inference import MERGES

# The parts of a text: learned from, and held out.
TRAIN, UNSEEN = "train", "unseen"
# The names, in results, of a text's file of morphemes and of all imported codes.
MORPHEMES, IMPORTED = "morphemes", "imported"
_NAMES = bounds(key_pattern=NAME, key_pattern_says=NAME_SAYS, filled=True)


@dataclass(frozen=True)
class HeldOut:
    """Hold out the last of each ``every`` blocks of ``lines`` lines."""

    every: int = field(default=10, metadata=bounds(least=2))
    lines: int = field(default=1, metadata=bounds(least=1))


@dataclass(frozen=True)
class Text:
    """A text of words separated by spaces, with a file per language.

    Codes are learned from a text that has ``held_out``, and then applied to its ``other`` texts; figures show the first
    of them. Codes are only applied to a text without ``held_out``. parallel: the files have the same lines in each
    language. morphemes: a file with one word per line, its morphemes separated by spaces.
    """

    files: dict[str, str] = field(metadata=_NAMES)
    held_out: HeldOut | None = None
    other: list[str] = field(default_factory=list)
    parallel: bool = False
    morphemes: str | None = None


@dataclass(frozen=True)
class StudiedMethod:
    """A method of a study; in YAML it has the keys of a system of an experiment, ``texts`` and ``stability``.

    The study sets the sizes and the minimum frequency. For trimmed, give ``below`` as a share of the frequency of the
    last merge: a fixed frequency would leave most tokens at one size and hardly any at another. texts: the texts to
    learn from (default: all). stability: those whose halves to learn from as well (default: all).
    """

    method: Method[Any]
    inference: str = MERGES
    texts: list[str] | None = None
    stability: list[str] | None = None

    @classmethod
    def from_keys(cls, value: Any, key: str = "") -> StudiedMethod:
        """Return the method that lines of a YAML file describe; raises WrongValue as ``schema.build`` does."""
        if not isinstance(value, dict):
            raise WrongValue(key, f"must be 'key: value' lines, not {show(value)}")
        given = {name: entry for name, entry in value.items() if entry is not None}
        own: dict[str, list[str]] = {}
        if "texts" in given:
            own["texts"] = build(list[str], given.pop("texts"), join_key(key, "texts"), bounds(filled=True))
        if "stability" in given:
            own["stability"] = build(list[str], given.pop("stability"), join_key(key, "stability"))
        known = dict.fromkeys((*_SYSTEM_KEYS, *settings_of_methods(), "texts", "stability"))
        for name in given:
            if name not in known:
                raise WrongValue(join_key(key, name), f"unknown key{nearest(str(name), known)}")
        system = System.from_keys(given, key)
        if system.method is None:
            raise WrongValue(join_key(key, "algorithm"), "missing")
        return cls(system.method, system.inference, **own)

    @property
    def keys(self) -> dict[str, Any]:
        """The keys of the method in a YAML file, without defaults."""
        settings = {
            name: getattr(self.method, name)
            for name, entry in self.method.settings(in_files=True).items()
            if name in settings_of_methods() and getattr(self.method, name) != entry.default
        }
        inference = {} if self.inference == MERGES else {"inference": self.inference}
        return {"algorithm": self.method.name, **settings, **inference}

    def to_keys(self) -> dict[str, Any]:
        """Return the keys that ``from_keys`` reads."""
        return {**self.keys, "texts": self.texts, "stability": self.stability}


_SYSTEM_KEYS = ("algorithm", "inference")


def settings_of_methods() -> list[str]:
    """Return the names of the settings of all methods, without those that the study sets."""
    names = dict.fromkeys(name for kind in methods().values() for name in kind.settings(in_files=True))
    return [name for name in names if name not in SHARED]


@dataclass(frozen=True)
class Generalisation:
    """Further settings at which Scaffold-BPE's subwords are compared with BPE's.

    fractions: 4 learns from every fourth line of the text. Minimum frequencies are used with the whole text only,
    fractions with the study's minimum frequency only; both at these ``sizes`` (default: all of the study's).
    """

    sizes: list[int] = field(default_factory=list, metadata=bounds(least=1))
    min_frequencies: list[int] = field(default_factory=list, metadata=bounds(least=1))
    fractions: list[int] = field(default_factory=list, metadata=bounds(least=2))


@dataclass(frozen=True)
class Study:
    """An intrinsic study.

    sizes: normal merged tokens, N. baseline: the method that figures compare the others with. imported: codes files to
    measure as they are, in the folder of the texts; those of other programs need their manifest next to them.
    """

    name: str = field(metadata=bounds(pattern=NAME, pattern_says=NAME_SAYS))
    sizes: list[int] = field(metadata=bounds(least=1, filled=True))
    texts: dict[str, Text] = field(metadata=_NAMES)
    methods: dict[str, StudiedMethod] = field(metadata=_NAMES)
    baseline: str
    min_frequency: int = field(default=2, metadata=bounds(least=1))
    generalisation: Generalisation = field(default_factory=Generalisation)
    imported: dict[str, str] = field(
        default_factory=dict, metadata=bounds(key_pattern=NAME, key_pattern_says=NAME_SAYS)
    )

    @property
    def learned(self) -> dict[str, Text]:
        """The texts that codes are learned from."""
        return {name: text for name, text in self.texts.items() if text.held_out is not None}


def load_study(path: PathLike) -> Study:
    """Return the study that a YAML file describes.

    Raises UsageError, with file, line and key, for a wrong value.
    """
    document, lines = yaml_file.read(path)
    try:
        study: Study = build(Study, document)
        for key, message in _contradictions(study):
            raise WrongValue(key, message)
    except WrongValue as error:
        line = next((f":{lines[key]}" for key in self_and_parents(error.key) if key in lines), "")
        raise UsageError(f"{path}{line}: {error}") from None
    return study


def _contradictions(study: Study) -> Iterator[tuple[str, str]]:
    """Yield contradictions: a key, and what is wrong with it."""
    if study.baseline not in study.methods:
        yield "baseline", f"'{study.baseline}' is not one of the methods ({', '.join(study.methods)})"
    if not study.learned:
        yield "texts", "no text has held_out, so there is none to learn from; add held_out: {every: 10}"
    numbers = study.generalisation
    for key, values in (
        ("sizes", study.sizes),
        ("generalisation.sizes", numbers.sizes),
        ("generalisation.min_frequencies", numbers.min_frequencies),
        ("generalisation.fractions", numbers.fractions),
    ):
        if len(set(values)) < len(values):
            yield key, "duplicate number; list each once"
    cells = {f"{name}-{size}" for name in study.methods for size in study.sizes}
    for name in study.imported:
        if name in study.methods:
            yield f"imported.{name}", f"'{name}' is a method already; choose another name"
        if name in cells:
            yield f"imported.{name}", f"'{name}' is the name of a method's results already; choose another name"
    if study.imported and IMPORTED in study.texts:
        yield f"texts.{IMPORTED}", f"'{IMPORTED}' names the imported codes in the results; choose another name"
    for name, text in study.texts.items():
        if text.morphemes is not None and MORPHEMES in text.files:
            message = f"'{MORPHEMES}' names the file of morphemes in the results; choose another name"
            yield f"texts.{name}.files.{MORPHEMES}", message
        if text.parallel and len(text.files) < 2:
            yield f"texts.{name}.parallel", "has no effect on a text in one language; leave it out"
        if name in (TRAIN, UNSEEN):
            yield f"texts.{name}", f"'{name}' names a part of every text in the results; choose another name"
        for other in text.other:
            if other not in study.texts:
                yield f"texts.{name}.other", f"'{other}' is not one of the texts ({', '.join(study.texts)})"
        if text.other and text.held_out is None:
            yield f"texts.{name}.other", "has no effect on a text that is not learned from; leave it out"
    for name, method in study.methods.items():
        for key, texts in (("stability", method.stability), ("texts", method.texts)):
            for wanted in texts or ():
                if wanted not in study.learned:
                    yield f"methods.{name}.{key}", f"'{wanted}' is not a text to learn from"
        learned = study.learned if method.texts is None else method.texts
        if method.method.by_language and all(len(study.texts[each].files) < 2 for each in learned):
            problem = f"{method.method.name} needs several languages, and no text that it learns from has them"
            yield f"methods.{name}", problem


def plain(study: Study) -> Mapping[str, Any]:
    """Return the keys of a study as ``load_study`` reads them, every default filled in."""
    import dataclasses

    from mt_scaffold.experiment.runtime.schema import without_none

    methods = {name: method.to_keys() for name, method in study.methods.items()}
    return dict(without_none(dataclasses.asdict(dataclasses.replace(study, methods={})) | {"methods": methods}))
