"""The YAML file of an intrinsic study: which texts, methods and sizes it measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import yaml_file
from mt_scaffold.experiment.configuration.data import NAME, NAME_SAYS
from mt_scaffold.experiment.runtime.schema import WrongValue, bounds, build, self_and_parents
from mt_scaffold.methods.inference import MERGES, inference_of
from mt_scaffold.options import check_threshold

# The parts of a text that codes are learned from, and that they are measured on besides other texts.
TRAIN, UNSEEN = "train", "unseen"
_NAMES = bounds(key_pattern=NAME, key_pattern_says=NAME_SAYS, filled=True)


@dataclass(frozen=True)
class HeldOut:
    """Blocks of ``lines`` lines that are not learned from: the last of each ``every`` of them."""

    every: int = field(default=10, metadata=bounds(least=2))
    lines: int = field(default=1, metadata=bounds(least=1))


@dataclass(frozen=True)
class Text:
    """A text of words between spaces: a file per language.

    Codes are learned from a text that has ``held_out``; ``other`` are texts of other kinds that they are then applied
    to, the first of them in figures, too. A text without ``held_out`` is only applied to.
    """

    files: dict[str, str] = field(metadata=_NAMES)
    held_out: HeldOut | None = None
    other: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Method:
    """How words become subwords; the options are those of a system of an experiment.

    below: for trimmed, tokens with less than this share of the frequency of the last BPE merge are marked. A fixed
    frequency would leave most tokens at one size and hardly any at another. stability: the texts from whose halves it
    is learned too, all of them unless given. texts: those that it is learned from at all, the same.
    """

    algorithm: Literal["bpe", "scaffold", "picky", "trimmed", "unigram", "parity"]
    below: float | None = field(default=None, metadata=bounds(least=0.0))
    refill: bool = False
    threshold: float | None = field(default=None, metadata=bounds(check=check_threshold))
    inference: str = field(default=MERGES, metadata=bounds(check=inference_of))
    texts: list[str] | None = field(default=None, metadata=bounds(filled=True))
    stability: list[str] | None = None


@dataclass(frozen=True)
class Generalisation:
    """Where Scaffold-BPE's subwords differ from BPE's: with which least frequencies, and learned from which fractions.

    fractions: 4 learns from every fourth line of the text. Every least frequency is combined with the whole text only,
    every fraction with the study's own least frequency only; both at these ``sizes``, all of the study's where empty.
    """

    sizes: list[int] = field(default_factory=list, metadata=bounds(least=1))
    min_frequencies: list[int] = field(default_factory=list, metadata=bounds(least=1))
    fractions: list[int] = field(default_factory=list, metadata=bounds(least=2))


@dataclass(frozen=True)
class Study:
    """An intrinsic study.

    sizes: normal merged tokens, N. baseline: the method that figures compare the others with.
    """

    name: str = field(metadata=bounds(pattern=NAME, pattern_says=NAME_SAYS))
    sizes: list[int] = field(metadata=bounds(least=1, filled=True))
    texts: dict[str, Text] = field(metadata=_NAMES)
    methods: dict[str, Method] = field(metadata=_NAMES)
    baseline: str
    min_frequency: int = field(default=2, metadata=bounds(least=1))
    generalisation: Generalisation = field(default_factory=Generalisation)

    @property
    def learned(self) -> dict[str, Text]:
        """The texts that codes are learned from."""
        return {name: text for name, text in self.texts.items() if text.held_out is not None}


def load_study(path: PathLike) -> Study:
    """Return the study that a YAML file describes; UsageError, with file, line and key, for what does not fit."""
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
    """Yield what contradicts itself: a key, and what is wrong with it."""
    if study.baseline not in study.methods:
        yield "baseline", f"'{study.baseline}' is none of the methods ({', '.join(study.methods)})"
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
    for name, text in study.texts.items():
        if name in (TRAIN, UNSEEN):
            yield f"texts.{name}", f"'{name}' is what results call a part of every text; choose another name"
        for other in text.other:
            if other not in study.texts:
                yield f"texts.{name}.other", f"'{other}' is none of the texts ({', '.join(study.texts)})"
        if text.other and text.held_out is None:
            yield f"texts.{name}.other", "has no effect on a text that is not learned from; leave it out"
    for name, method in study.methods.items():
        for key, texts in (("stability", method.stability), ("texts", method.texts)):
            for wanted in texts or ():
                if wanted not in study.learned:
                    yield f"methods.{name}.{key}", f"'{wanted}' is no text that is learned from"
        learned = study.learned if method.texts is None else method.texts
        if method.algorithm == "parity" and all(len(study.texts[each].files) < 2 for each in learned):
            yield f"methods.{name}", "parity compares languages, and no text that it learns from has files of several"
        yield from _method_contradictions(f"methods.{name}", method)


def _method_contradictions(key: str, method: Method) -> Iterator[tuple[str, str]]:
    trimmed = method.algorithm == "trimmed"
    if trimmed and method.below is None:
        yield f"{key}.below", "missing: give the share of the last merge's frequency that tokens need, such as 0.5"
    if not trimmed and method.below is not None:
        yield f"{key}.below", "has an effect only with algorithm: trimmed; leave it out"
    if not trimmed and method.refill:
        yield f"{key}.refill", "has an effect only with algorithm: trimmed; leave it out"
    if method.algorithm == "unigram" and method.inference != MERGES:
        yield f"{key}.inference", "not possible with unigram, which takes the most probable segmentation; leave it out"
    if method.algorithm == "picky" and not inference_of(method.inference).picky:
        yield f"{key}.inference", f"{method.inference} inference cannot follow PickyBPE's splits; choose another"
    if method.threshold is not None and method.algorithm != "picky":
        yield f"{key}.threshold", "has an effect only with algorithm: picky; leave it out"


def plain(study: Study) -> Mapping[str, Any]:
    """Return a study as ``load_study`` reads it, every default filled in."""
    import dataclasses

    from mt_scaffold.experiment.runtime.schema import without_none

    return dict(without_none(dataclasses.asdict(study)))
