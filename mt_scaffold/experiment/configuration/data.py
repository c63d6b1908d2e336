"""The data, tokenise and binarise sections of a configuration."""

from __future__ import annotations

import dataclasses
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, Literal, Self

from mt_scaffold.corpus.vocabulary_file import SPECIAL_SYMBOLS
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.runtime.schema import Pattern, WrongValue, bounds, build_dataclass, join_key, show
from mt_scaffold.options_from_signature import HIDDEN, Option

SIDES = ("source", "target")

# The stems of the generated text: nouns, verbs, adjectives and names (data/lexicon.py).
STEMS = 440
# A name becomes a folder or a file name, so ".." and "-x" are excluded.
NAME = Pattern(r"[A-Za-z0-9][A-Za-z0-9+_.-]*", "a letter or digit, then letters, digits and + _ . -")
_SHA256 = Pattern(r"[0-9a-fA-F]{64}", "64 hexadecimal digits")
_MD5 = Pattern(r"[0-9a-fA-F]{32}", "32 hexadecimal digits")
_URL = Pattern(r"https?://\S*[^/\s]", "an http or https address of a file")
# In place of the digest of an archive for which none is published.
UNKNOWN = "unknown"
_SHA256_OR_UNKNOWN = Pattern(f"{_SHA256.regex}|{UNKNOWN}", f"{_SHA256.says}, or {UNKNOWN}")


@dataclass(frozen=True)
class SyntheticData:
    """A corpus of data/synthetic.py: numbers of sentence pairs, and the seed that fixes every byte.

    stems: stems per language. clauses: clauses per sentence, at most. Small numbers make the languages quick to learn.
    """

    pairs: int = field(default=12000, metadata=bounds(least=1))
    valid: int = field(default=500, metadata=bounds(least=1))
    test: int = field(default=1000, metadata=bounds(least=1))
    seed: int = field(default=1, metadata=bounds(least=0))
    stems: int = field(default=STEMS, metadata=bounds(least=40, most=STEMS))
    clauses: int = field(default=2, metadata=bounds(least=1, most=2))


@dataclass(frozen=True)
class DataFile:
    """One side of a parallel text: a URL with its digest, or a local file (digest optional).

    A ``.gz`` file is decompressed. A path is relative to the working directory in which the experiment is started.
    """

    url: str | None = field(default=None, metadata=bounds(pattern=_URL))
    path: str | None = None
    sha256: str | None = field(default=None, metadata=bounds(pattern=_SHA256))


class Parallel:
    """Texts whose lines i translate each other. ``references``, of a test set: further ones, each such a text.

    In YAML they may take the place of ``target``, which is then the first.
    """

    references: list[Any] | None

    @classmethod
    def from_keys(cls, value: Any, key: str = "") -> Self:
        """Return the texts that a YAML file describes; raises WrongValue as ``schema.build`` does."""
        references = value.get("references") if isinstance(value, dict) else None
        if references and isinstance(references, list) and "target" not in value:
            value = value | {"target": references[0], "references": references[1:]}
        made: Self = build_dataclass(cls, value, key)
        return made


@dataclass(frozen=True)
class ParallelFiles(Parallel):
    """Two files with the same number of lines, and further references."""

    source: DataFile
    target: DataFile
    references: list[DataFile] | None = None

    @property
    def files(self) -> list[DataFile]:
        """All files."""
        return [self.source, self.target, *(self.references or ())]


@dataclass(frozen=True)
class FileData:
    """Parallel text in files; the files of a list are concatenated. With ``data.valid_every``, ``valid`` is omitted."""

    train: list[ParallelFiles] = field(metadata=bounds(filled=True))
    tests: dict[str, list[ParallelFiles]] = field(metadata=bounds(key_pattern=NAME, filled=True))
    valid: list[ParallelFiles] | None = field(default=None, metadata=bounds(filled=True))

    @property
    def corpora(self) -> dict[str, list[ParallelFiles]]:
        """The files of each corpus, by its key."""
        tests = {f"tests.{name}": pairs for name, pairs in self.tests.items()}
        return {"train": self.train, "valid": self.valid or [], **tests}


@dataclass(frozen=True)
class Tokenise:
    """How raw text becomes words (mt_scaffold.experiment.data.tokenise).

    straight_apostrophes: first turn U+2019 into an apostrophe
    lowercase: lowercase the words

    ``check`` refuses text that looks tokenised or segmented already.

    ``none``: the text is already words separated by spaces, to which only ``straight_apostrophes`` and ``lowercase``
    are applied; ``tokenise: none`` in YAML is short for it.
    ``source``, ``target``: keys that differ on one side (``tokenise: {source: none}``).
    """

    normalise_punctuation: Annotated[
        bool, Option(name="keep-punctuation", help="do not normalise quotation marks, dashes and so on")
    ] = True
    remove_nonprinting: Annotated[
        bool, Option(name="keep-nonprinting", help="do not replace non-printing characters by spaces")
    ] = True
    aggressive_dash_splitting: Annotated[
        bool, Option(name="keep-dashes", help="do not split words at dashes (well @-@ known)")
    ] = True
    straight_apostrophes: bool = False
    lowercase: bool = False
    _: KW_ONLY
    check: Annotated[bool, HIDDEN] = True
    none: Annotated[bool, HIDDEN] = False
    source: Annotated[Tokenise | None, HIDDEN] = None
    target: Annotated[Tokenise | None, HIDDEN] = None

    @classmethod
    def from_keys(cls, value: Any, key: str = "") -> Tokenise:
        """Return the section that a YAML file describes; a side inherits the keys that it does not set.

        Raises WrongValue as ``schema.build`` does.
        """
        if value == "none":
            return cls(none=True)
        if not isinstance(value, dict):
            raise WrongValue(key, f"must be none or 'key: value' lines, not {show(value)}")
        common = {name: entry for name, entry in value.items() if name not in SIDES}
        sides = {name: entry for name, entry in value.items() if name in SIDES and entry is not None}
        for name, entry in sides.items():
            if isinstance(entry, dict):
                if nested := next((each for each in SIDES if entry.get(each) is not None), None):
                    raise WrongValue(f"{join_key(key, name)}.{nested}", "a side has no sides; remove it")
                sides[name] = common | entry
        made: Tokenise = build_dataclass(cls, common | sides, key)
        return made

    def of_side(self, side: str) -> Tokenise:
        """Return how one side is tokenised (``source`` or ``target``)."""
        own: Tokenise | None = getattr(self, side)
        return dataclasses.replace(self if own is None else own, source=None, target=None)


@dataclass(frozen=True)
class Limits:
    """Which subwords get an id: the options of fairseq-preprocess of the same names.

    nwordssrc, nwordstgt: size of the dictionary, with fairseq's four special symbols (default: all subwords)
    thresholdsrc, thresholdtgt: least frequency of a subword in it
    padding_factor: pad it to a multiple of N

    A joined dictionary, of both sides, is limited by ``nwordssrc`` and ``thresholdsrc``. The subwords that resampling
    adds are exempt from these limits.
    """

    joined_dictionary: Annotated[
        bool, Option(name="separate-dictionaries", help="one for each language (default: one for both)")
    ] = True
    nwordssrc: int = -1
    nwordstgt: int = -1
    thresholdsrc: int = 0
    thresholdtgt: int = 0
    padding_factor: int = 8

    def check(self) -> Limits:
        """Return the limits; raise UsageError for a value out of range."""
        for name, least in (("thresholdsrc", 0), ("thresholdtgt", 0), ("padding_factor", 1)):
            if getattr(self, name) < least:
                raise UsageError(f"{name} must be {least} or more, not {getattr(self, name)}")
        for name in ("nwordssrc", "nwordstgt"):
            if 0 <= getattr(self, name) <= len(SPECIAL_SYMBOLS):
                raise UsageError(f"{name} must exceed {len(SPECIAL_SYMBOLS)}, the number of fairseq's special symbols")
        return self


@dataclass(frozen=True)
class Archive:
    """A tar archive, plain or compressed, by URL, with its sha256 or md5.

    ``sha256: unknown`` is for an archive without a published digest: the digest of the first download is recorded in
    the download cache and checked from then on.
    """

    url: str = field(metadata=bounds(pattern=_URL))
    sha256: str | None = field(default=None, metadata=bounds(pattern=_SHA256_OR_UNKNOWN))
    md5: str | None = field(default=None, metadata=bounds(pattern=_MD5))


@dataclass(frozen=True)
class ArchivePair(Parallel):
    """Members of an archive, by name, with the same number of lines; ``.gz`` is decompressed.

    ``markup`` is the markup of all (mt_scaffold.experiment.data.markup); without it, every line is a sentence.
    """

    archive: Archive
    source: str
    target: str
    references: list[str] | None = None
    markup: Literal["ted", "seg"] | None = None


@dataclass(frozen=True)
class ArchiveTest:
    """A test set: one of sacreBLEU's, with its references, by its name there (``wmt14/full``), or members of archives.

    ``md5`` replaces sacreBLEU's digest of its archive; ``tokenise`` replaces the experiment's.
    """

    sacrebleu: str | None = None
    md5: str | None = field(default=None, metadata=bounds(pattern=_MD5))
    pairs: list[ArchivePair] | None = field(default=None, metadata=bounds(filled=True))
    tokenise: Tokenise | None = None


@dataclass(frozen=True)
class ArchiveData:
    """Parallel text in archives; the pairs of a list are concatenated. ``valid`` as in FileData."""

    train: list[ArchivePair] = field(metadata=bounds(filled=True))
    tests: dict[str, ArchiveTest] = field(metadata=bounds(key_pattern=NAME, filled=True))
    valid: list[ArchivePair] | None = field(default=None, metadata=bounds(filled=True))

    @property
    def corpora(self) -> dict[str, list[ArchivePair]]:
        """The members of each corpus, by its key."""
        tests = {f"tests.{name}.pairs": test.pairs or [] for name, test in self.tests.items()}
        return {"train": self.train, "valid": self.valid or [], **tests}


@dataclass(frozen=True)
class Data:
    """Where the text comes from: exactly one of the kinds in DATA_KINDS.

    ``sample`` keeps only that many pairs at the start of each training corpus, to rehearse an experiment.
    ``valid_every: N`` moves every Nth pair of the training text to the validation set, counted after cleaning or
    before (``valid_cut``).
    """

    synthetic: SyntheticData | None = None
    files: FileData | None = None
    archives: ArchiveData | None = None
    sample: int | None = field(default=None, metadata=bounds(least=1))
    valid_every: int | None = field(default=None, metadata=bounds(least=2))
    valid_cut: Literal["after_cleaning", "before_cleaning"] = "after_cleaning"


# The fields of Data that name the source of the text; a new kind needs a dataclass, a field and its name here.
DATA_KINDS = ("synthetic", "files", "archives")
