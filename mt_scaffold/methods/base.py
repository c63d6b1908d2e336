"""The base class of the segmentation methods: their settings, how they learn from counted words, how they segment.

A method is a frozen dataclass. Its fields are its settings: options of its command, keys of a system in YAML, and
parts of file names; ``setting`` gives each its meaning and the values it accepts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from mt_scaffold import _core
from mt_scaffold.codes import CodesSource
from mt_scaffold.corpus.files import PathLike, Writable
from mt_scaffold.corpus.header import CHARACTERS, CodesHeader
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.options import whole_number

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


def setting(
    help: str,
    *,
    default: Any = dataclasses.MISSING,
    least: float | None = None,
    check: Callable[[Any], object] | None = None,
    label: str = "",
    short: str = "",
    metavar: str = "N",
) -> Any:
    """Return a field of a method.

    help: for ``--help``. least: the least value in a configuration. check: raises UsageError for a value out of range.
    label: how a value other than the default is written in file names, such as ``-below{}``. short: the option's
    single letter.
    """
    metadata: dict[str, Any] = {
        "help": help,
        "check": check,
        "label": label,
        "short": short,
        "metavar": metavar,
    }
    if least is not None:
        metadata["least"] = least
    return dataclasses.field(default=default, kw_only=default is dataclasses.MISSING, metadata=metadata)


def check_amount(name: str, least: int = 1) -> Callable[[int], int]:
    """Return a check of a whole number: ``least`` to 2^63-1."""

    def check(value: int) -> int:
        value = whole_number(f"the {name}", value)
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
    whether a model is a codes file; only such a method can learn from bytes and from pre-tokenised text, and be applied
    with a vocabulary, with glossaries and with a separator. resampling: the kind of its random segmentation, by name
    (``segment.draw``).
    """

    name: ClassVar[str]
    title: ClassVar[str]
    suffix: ClassVar[str]
    stem: ClassVar[str]
    word_start: ClassVar[str | None] = None
    has_codes: ClassVar[bool] = True
    resampling: ClassVar[str]

    def __post_init__(self) -> None:
        for entry in dataclasses.fields(self):
            value, check = getattr(self, entry.name), entry.metadata["check"]
            if check is not None and (value is not None or entry.default is not None):
                object.__setattr__(self, entry.name, check(value))

    # -- settings

    @classmethod
    def settings(cls) -> dict[str, dataclasses.Field[Any]]:
        """Return its settings by name."""
        return {entry.name: entry for entry in dataclasses.fields(cls)}

    @classmethod
    def check_setting(cls, name: str) -> None:
        """Raise UsageError, listing the settings, unless there is one of this name."""
        if name not in cls.settings():
            known = ", ".join(cls.settings())
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
        for name, entry in self.settings().items():
            if (value := getattr(self, name)) != entry.default:
                label += entry.metadata["label"].format(value)
        return label

    @property
    def given(self) -> dict[str, Any]:
        """The settings that have a value, by name."""
        values = {name: getattr(self, name) for name in self.settings()}
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

    def check_header(self, header: CodesHeader) -> None:
        """Raise UsageError unless it can learn from words of this kind."""
        if not self.has_codes and header != CHARACTERS:
            raise UsageError(f"{self.name} learns from words between spaces, and its symbols are characters")

    def learn(
        self,
        words: _core.WordCounts,
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
    ) -> Segmenter:
        """Return a segmenter with a stored model; the options are those of ``BPE``, None for its defaults."""
        raise NotImplementedError

    @classmethod
    def use(cls, model: CodesSource, counts: _core.WordCounts) -> Vocabulary:
        """Return how often counted words use each token of a stored model."""
        raise NotImplementedError
