"""The base class of the segmentation methods: their settings, how they learn from counted words, how they segment.

A method is a frozen dataclass. Its fields are its settings: options of its command, keys of a system in YAML, and
parts of file names; ``setting`` gives each its meaning and the values it accepts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar, cast

from mt_scaffold import _core
from mt_scaffold.codes import CodesSource
from mt_scaffold.corpus.count import Text, counted_text, sources_of
from mt_scaffold.corpus.documents import Documents, Texts
from mt_scaffold.corpus.files import PathLike, Writable
from mt_scaffold.corpus.header import CHARACTERS, CodesHeader
from mt_scaffold.corpus.inputs import Lines, TextFile, source_name
from mt_scaffold.errors import MTScaffoldError, UsageError

if TYPE_CHECKING:
    from mt_scaffold.segment.frequencies import Vocabulary
    from mt_scaffold.segment.segmenter import Segmenter

_BEYOND = 2**63


class Learned(Protocol):
    """A learned model."""

    @property
    def text(self) -> bytes:
        """The content of the model's file."""

    @property
    def exhausted(self) -> bool:
        """Whether the words yielded fewer symbols than were asked for."""


Model = TypeVar("Model", bound=Learned, covariant=True)


class TooManySymbols(MTScaffoldError):
    """More symbols were asked for than the words yield; ``most``: the most they yield, 0 if no model at all."""

    def __init__(self, message: str, most: int) -> None:
        super().__init__(message)
        self.most = most


# Counts the words of a text with the options of the call; the flag marks a development text.
Count = Callable[[Text, bool], _core.WordCounts]


# Reads count files as the counted words of one text.
Load = Callable[[Sequence[PathLike]], _core.WordCounts]


class Inputs(NamedTuple):
    """The inputs of ``learn``, of which exactly one of the first five is given."""

    infile: TextFile | None = None
    paths: Iterable[TextFile] | None = None
    lines: Lines | None = None
    documents: Texts | Sequence[Documents] | None = None
    counts: Sequence[PathLike] | None = None
    max_memory: int | str | None = None
    prune: int = 1


class Words(NamedTuple):
    """The names and counted words of the texts to learn from and, if there are any, of the development texts."""

    names: list[str]
    training: list[_core.WordCounts]
    development_names: list[str] = []  # noqa: RUF012  # never mutated
    development: list[_core.WordCounts] = []  # noqa: RUF012

    @classmethod
    def of(cls, counts: _core.WordCounts) -> Words:
        """Return the words of one text."""
        return cls(["the input"], [counts])

    def together(self) -> _core.WordCounts:
        """Return the merged counts of all texts to learn from, as a copy."""
        together = _core.WordCounts()
        for each in self.training:
            together.add(each)
        return together

    def copied(self, by_text: bool) -> Words:
        """Return a copy for learning to use up: of each text's counts, or of the merged counts."""
        copies = [Words.of(each).together() for each in self.training] if by_text else [self.together()]
        return self._replace(training=copies)


def setting(
    help: str,
    *,
    default: Any = dataclasses.MISSING,
    least: float | None = None,
    check: Callable[[Any], object] | None = None,
    label: str = "",
    short: str = "",
    metavar: str = "N",
    in_files: bool = True,
) -> Any:
    """Return a field of a method.

    help: for ``--help``. least: the least value in a configuration. check: raises UsageError for a value out of range.
    label: how a value other than the default is written in file names, such as ``-below{}``. short: the option's
    single letter. in_files: whether it is also a key of a system in YAML.
    """
    metadata: dict[str, Any] = {
        "help": help,
        "check": check,
        "label": label,
        "short": short,
        "metavar": metavar,
        "in_files": in_files,
    }
    if least is not None:
        metadata["least"] = least
    return dataclasses.field(default=default, kw_only=default is dataclasses.MISSING, metadata=metadata)


def check_amount(name: str, least: int = 1) -> Callable[[int], int]:
    """Return a check of a whole number: ``least`` to 2^63-1."""

    def check(value: int) -> int:
        if not least <= value < _BEYOND:
            said = "positive" if least == 1 else f"{least} or more"
            raise UsageError(f"the {name} must be {said} and less than 2^63, not {value}")
        return value

    return check


# The settings that several methods share.
def symbols_setting(meaning: str) -> Any:
    """Return the field of N, the number of symbols."""
    return setting(meaning, default=10000, least=1, check=check_amount("number of symbols"), short="s")


def min_frequency_setting() -> Any:
    """Return the field of the minimum frequency of a pair."""
    return setting(
        "stop when no pair of symbols has a frequency >= FREQ",
        default=2,
        least=1,
        check=check_amount("minimum frequency"),
        label="-min{}",
        metavar="FREQ",
    )


def total_symbols_setting(among: str = "") -> Any:
    """Return the field that counts the base symbols among N."""
    meaning = "subtract the number of base symbols from N, so that N estimates the symbols of segmented text"
    return setting(among or meaning, default=False, label="-total", short="t")


@dataclass(frozen=True)
class Method(Generic[Model]):
    """A segmentation method; its fields are its settings.

    name: its value of ``--algorithm`` and of a system's ``algorithm``. title: its name in prose. suffix, stem: of a
    model's file. word_start: the prefix of a word's first subword, if subwords do not end in a separator. has_codes:
    whether a model is a codes file. by_language: whether the text of each language is a separate input. byte_level:
    whether it can learn from bytes, and from pre-tokenised text.
    inferences, resamplings: the kinds that it supports, by name (``segment.inference``, ``segment.draw``).
    filters: whether it can be applied with a vocabulary, with glossaries and with a separator.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    suffix: ClassVar[str]
    stem: ClassVar[str]
    word_start: ClassVar[str | None] = None
    has_codes: ClassVar[bool] = True
    by_language: ClassVar[bool] = False
    byte_level: ClassVar[bool] = True
    filters: ClassVar[bool] = True
    inferences: ClassVar[tuple[str, ...]] = ()
    resamplings: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for entry in dataclasses.fields(self):
            value, check = getattr(self, entry.name), entry.metadata["check"]
            if check is not None and value is not None:
                check(value)

    # -- settings

    @classmethod
    def settings(cls, in_files: bool = False) -> dict[str, dataclasses.Field[Any]]:
        """Return its settings by name; in_files: only those that are keys of a system."""
        fields = dataclasses.fields(cls)
        return {entry.name: entry for entry in fields if entry.metadata["in_files"] or not in_files}

    @classmethod
    def check_setting(cls, name: str, in_files: bool = False) -> None:
        """Raise UsageError, listing the settings, unless there is one of this name."""
        if name not in cls.settings(in_files):
            known = ", ".join(cls.settings(in_files))
            raise UsageError(f"{cls.name} has no such setting; its settings are {known}")

    def with_settings(self, **settings: Any) -> Method[Model]:
        """Return a copy with these values of its settings; settings that it does not have are ignored."""
        return dataclasses.replace(self, **{name: value for name, value in settings.items() if name in self.settings()})

    @property
    def amount(self) -> int:
        """N, the number of symbols to learn."""
        return int(self.symbols)  # type: ignore[attr-defined]  # every method has this field

    @property
    def label(self) -> str:
        """Its name in file names, the same for equal settings: ``bpe-4000``, ``picky-4000-ios0.7``."""
        label = f"{self.name}-{self.amount}"
        for name, entry in self.settings(in_files=True).items():
            if (value := getattr(self, name)) != entry.default:
                label += entry.metadata["label"].format(value)
        return label

    @property
    def given(self) -> dict[str, Any]:
        """The settings that have a value, by name."""
        values = {name: getattr(self, name) for name in self.settings(in_files=True)}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def description(self) -> str:
        """The method and its settings in words."""
        return f"{self.title}, {self.amount:,} symbols"

    @property
    def variant(self) -> str:
        """Its name without N and the settings that vary with N, for a figure over several N."""
        return self.name

    @property
    def made_of(self) -> Method[Any] | None:
        """The method whose model this one changes; None if it learns from words alone."""
        return None

    @classmethod
    def check_installed(cls) -> None:
        """Raise MTScaffoldError if a Python package that it needs is not installed."""

    # -- learning

    @property
    def more_sources(self) -> Sequence[TextFile]:
        """Further inputs, besides the texts to learn from."""
        return ()

    def check_header(self, header: CodesHeader) -> None:
        """Raise UsageError unless it can learn from words of this kind."""
        if not self.byte_level and header != CHARACTERS:
            raise UsageError(f"{self.name} learns from words between spaces, and its symbols are characters")

    def texts(self, inputs: Inputs) -> list[Text]:
        """Return the texts to count separately, none for count files. Raises UsageError for wrong inputs."""
        infile, paths, lines, documents, counts, *_ = inputs
        return [counted_text(infile, paths, lines, cast("Texts | None", documents), counts)]

    def load(self, counts: Sequence[PathLike], load: Load, count: Count) -> Words:
        """Return the words of count files, which ``load`` reads, and of ``more_sources``, which ``count`` counts."""
        return Words.of(load(counts))

    def count(self, texts: Sequence[Text], count: Count, is_dict: bool = False) -> Words:
        """Return the words of texts and of ``more_sources``; ``count`` counts one of either."""
        return Words([text_name(text) for text in texts], [count(text, False) for text in texts])

    def learn(
        self,
        words: Words | _core.WordCounts,
        header: CodesHeader = CHARACTERS,
        verbose: bool = False,
        trace: Writable | None = None,
    ) -> Model:
        """Learn from counted words, which are used up.

        header: how they were counted. verbose: print each merge to stderr. trace: a file open for bytes, to which
        each step is written (``methods.trace``).
        """
        raise NotImplementedError

    # -- segmenting

    @classmethod
    def segmenter(
        cls,
        model: PathLike,
        separator: str | None = None,
        vocabulary: Sequence[str] | set[str] | None = None,
        glossaries: Sequence[str] | None = None,
        inference: str | None = None,
    ) -> Segmenter:
        """Return a segmenter with a stored model; the options are those of ``BPE``, None for its defaults."""
        raise NotImplementedError

    @classmethod
    def use(cls, model: CodesSource, counts: _core.WordCounts) -> Vocabulary:
        """Return how often counted words use each token of a stored model."""
        raise NotImplementedError


def text_name(text: Text) -> str:
    """Return the name of a text in messages."""
    first, *others = [*map(source_name, sources_of(text))] or ["the input"]
    return f"{first} and {len(others)} more" if others else first
