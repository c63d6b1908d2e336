"""The experiment configuration: one YAML file, its schema, its defaults and its errors.

The schema is the dataclasses below, and only they: a key is known if a dataclass has a field of that name,
its type is the field's type, its range stands beside the field. Whatever does not fit is a UsageError of one
line that names the file, the line and the key.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

from mt_scaffold.errors import UsageError
from mt_scaffold.files import PathLike, open_input

OptionValue = bool | int | float | str | list[int | float | str]

# A name becomes a folder or a file name, so it starts with a letter or digit ("..", "-x" would not do).
_NAME = r"[A-Za-z0-9][A-Za-z0-9+_.-]*"
_LANGUAGE = r"[A-Za-z]+([_-][A-Za-z0-9]+)*"
_SHA256 = r"[0-9a-fA-F]{64}"
_MD5 = r"[0-9a-fA-F]{32}"
_URL = r"https?://\S*[^/\s]"
_URL_SAYS = "an http or https address of a file"
# In place of the digest of an archive for which nobody has published one.
UNKNOWN = "unknown"


def _bounds(
    *,
    least: float | None = None,
    most: float | None = None,
    pattern: str | None = None,
    pattern_says: str = "",
    key_pattern: str | None = None,
    key_pattern_says: str = "",
    filled: bool = False,
) -> dict[str, Any]:
    """What ``_build`` checks in a field beyond its type: range of numbers, form of text and of keys, not empty."""
    return {
        "least": least,
        "most": most,
        "pattern": pattern,
        "pattern_says": pattern_says,
        "key_pattern": key_pattern,
        "key_pattern_says": key_pattern_says,
        "filled": filled,
    }


# Folders that lie beside the systems' own folders in experiments/NAME.
RESERVED_NAMES = ("raw", "words", "codes", "logs", "figures")
_NAME_SAYS = "a letter or digit, then letters, digits and + _ . -"
_LANGUAGE_SAYS = "a language code such as en"
_OPTION = r"[A-Za-z0-9][A-Za-z0-9_-]*"
_OPTION_SAYS = "an option without its leading dashes, such as max-tokens"


@dataclass(frozen=True)
class Languages:
    """The two language codes: they end the file names and choose sacremoses' rules."""

    source: str = field(metadata=_bounds(pattern=_LANGUAGE, pattern_says=_LANGUAGE_SAYS))
    target: str = field(metadata=_bounds(pattern=_LANGUAGE, pattern_says=_LANGUAGE_SAYS))


@dataclass(frozen=True)
class SyntheticData:
    """A corpus from mt_scaffold.experiment.synthetic: numbers of sentence pairs, and the seed that fixes every byte."""

    pairs: int = field(default=12000, metadata=_bounds(least=1))
    valid: int = field(default=500, metadata=_bounds(least=1))
    test: int = field(default=1000, metadata=_bounds(least=1))
    seed: int = field(default=1, metadata=_bounds(least=0))


@dataclass(frozen=True)
class DataFile:
    """One side of a parallel text: a URL with its digest, or a file of one's own (digest optional).

    ``.gz`` names are decompressed. A path is relative to the folder the experiment is started in.
    """

    url: str | None = field(default=None, metadata=_bounds(pattern=_URL, pattern_says=_URL_SAYS))
    path: str | None = None
    sha256: str | None = field(default=None, metadata=_bounds(pattern=_SHA256, pattern_says="64 hexadecimal digits"))


@dataclass(frozen=True)
class ParallelFiles:
    """Two files with the same number of lines: line i of one translates line i of the other."""

    source: DataFile
    target: DataFile


@dataclass(frozen=True)
class FileData:
    """Parallel text in files; the files of a list are put one after the other."""

    train: list[ParallelFiles] = field(metadata=_bounds(filled=True))
    valid: list[ParallelFiles] = field(metadata=_bounds(filled=True))
    tests: dict[str, list[ParallelFiles]] = field(
        metadata=_bounds(key_pattern=_NAME, key_pattern_says=_NAME_SAYS, filled=True)
    )


@dataclass(frozen=True)
class Tokenise:
    """What is done to raw text before it is words (mt_scaffold.experiment.tokenise).

    ``straight_apostrophes`` makes the right single quotation mark (U+2019) an apostrophe, before all else.
    """

    normalise_punctuation: bool = True
    remove_nonprinting: bool = True
    aggressive_dash_splitting: bool = True
    straight_apostrophes: bool = False


@dataclass(frozen=True)
class Archive:
    """A tar archive, plain or compressed, by URL, with its sha256 or md5.

    ``sha256: unknown`` stands for an archive without a published digest: the digest of what is fetched first is
    recorded in the download cache, and checked ever after.
    """

    url: str = field(metadata=_bounds(pattern=_URL, pattern_says=_URL_SAYS))
    sha256: str | None = field(
        default=None,
        metadata=_bounds(pattern=f"{_SHA256}|{UNKNOWN}", pattern_says=f"64 hexadecimal digits, or {UNKNOWN}"),
    )
    md5: str | None = field(default=None, metadata=_bounds(pattern=_MD5, pattern_says="32 hexadecimal digits"))


@dataclass(frozen=True)
class ArchivePair:
    """Two members of an archive, by their names in it, with the same number of lines; ``.gz`` is decompressed."""

    archive: Archive
    source: str
    target: str


@dataclass(frozen=True)
class ArchiveTest:
    """A test set: one that sacreBLEU knows, by its name there (``wmt14/full``), or members of archives.

    ``md5`` takes the place of the digest that sacreBLEU has for its archive; ``tokenise`` that of the experiment's.
    """

    sacrebleu: str | None = None
    md5: str | None = field(default=None, metadata=_bounds(pattern=_MD5, pattern_says="32 hexadecimal digits"))
    pairs: list[ArchivePair] | None = field(default=None, metadata=_bounds(filled=True))
    tokenise: Tokenise | None = None


@dataclass(frozen=True)
class ArchiveData:
    """Parallel text in archives; the pairs of a list are put one after the other."""

    train: list[ArchivePair] = field(metadata=_bounds(filled=True))
    valid: list[ArchivePair] = field(metadata=_bounds(filled=True))
    tests: dict[str, ArchiveTest] = field(metadata=_bounds(key_pattern=_NAME, key_pattern_says=_NAME_SAYS, filled=True))


@dataclass(frozen=True)
class Data:
    """Where the text comes from: exactly one of the kinds in DATA_KINDS.

    ``sample`` takes only the first so many pairs of each training corpus, to rehearse an experiment.
    """

    synthetic: SyntheticData | None = None
    files: FileData | None = None
    archives: ArchiveData | None = None
    sample: int | None = field(default=None, metadata=_bounds(least=1))


# The fields of Data that say where the text comes from. A further kind is a dataclass, a field and its name here.
DATA_KINDS = ("synthetic", "files", "archives")


@dataclass(frozen=True)
class Prepare:
    """How a large corpus is prepared: nothing here changes a word of it.

    The training text is tokenised in ``chunks`` jobs for each language. Without ``keep_text``, the raw training text
    and its subwords are deleted as soon as no step needs them; the cleaned words stay.
    """

    chunks: int = field(default=1, metadata=_bounds(least=1))
    keep_text: bool = True


@dataclass(frozen=True)
class Clean:
    """Which pairs of train and valid stay, counted in words, before segmentation (mt_scaffold.experiment.clean)."""

    min_tokens: int = field(default=1, metadata=_bounds(least=1))
    max_tokens: int = field(default=250, metadata=_bounds(least=1))
    max_ratio: float = field(default=1.5, metadata=_bounds(least=1))


@dataclass(frozen=True)
class Codes:
    """How many joint merges are learned, from source and target training words together."""

    symbols: int = field(metadata=_bounds(least=1))
    min_frequency: int = field(default=2, metadata=_bounds(least=1))


@dataclass(frozen=True)
class System:
    """How one of the compared systems segments words.

    With ``dropout`` the training text is segmented anew in every epoch, each merge left out with this probability.
    """

    algorithm: Literal["scaffold", "bpe"]
    dropout: float = field(default=0.0, metadata=_bounds(least=0, most=1))


@dataclass(frozen=True)
class Batch:
    """What goes with one size of batch, as plain fairseq-train options; ``update-freq`` is that of so many ``gpus``."""

    options: dict[str, OptionValue] = field(metadata=_bounds(key_pattern=_OPTION, key_pattern_says=_OPTION_SAYS))
    gpus: int | None = field(default=None, metadata=_bounds(least=1))


@dataclass(frozen=True)
class Train:
    """Plain fairseq-train options: ``true`` is a flag, ``false`` leaves it out, a list gives several values.

    ``batch`` chooses one of ``batches``, whose options are added to ``options``.
    """

    options: dict[str, OptionValue] = field(metadata=_bounds(key_pattern=_OPTION, key_pattern_says=_OPTION_SAYS))
    batch: str | None = None
    batches: dict[str, Batch] = field(
        default_factory=dict, metadata=_bounds(key_pattern=_NAME, key_pattern_says=_NAME_SAYS)
    )

    @property
    def all_options(self) -> dict[str, OptionValue]:
        """The options with those of the chosen batch."""
        return self.options | (self.batches[self.batch].options if self.batch is not None else {})

    def options_on(self, gpus: int) -> dict[str, OptionValue]:
        """All options, with the ``update-freq`` that makes the chosen batch on this number of GPUs (0: a CPU).

        On a CPU, where such a batch is only rehearsed, ``update-freq`` stays as it is. Raises UsageError where the
        batch cannot be shared out evenly.
        """
        options = self.all_options
        batch = self.batches[self.batch] if self.batch is not None else None
        if batch is None or batch.gpus is None or gpus == 0:
            return options
        update_freq = options.get("update-freq", 1)
        if type(update_freq) is not int:
            raise UsageError(f"train.batches.{self.batch}: with gpus, update-freq must be a number, not {update_freq}")
        parts = batch.gpus * update_freq
        if parts % gpus:
            raise UsageError(
                f"train.batches.{self.batch}: a batch of {batch.gpus} GPUs x update-freq {update_freq} = {parts} parts "
                f"cannot be shared by {gpus} GPUs: take a number of GPUs that divides {parts}, or another batch"
            )
        return options | {"update-freq": parts // gpus}


@dataclass(frozen=True)
class Average:
    """``last`` epoch checkpoints are averaged; 0 takes the one with the best validation loss."""

    last: int = field(default=5, metadata=_bounds(least=0))


@dataclass(frozen=True)
class Translate:
    """Plain fairseq-generate options, as in Train."""

    options: dict[str, OptionValue] = field(
        default_factory=dict, metadata=_bounds(key_pattern=_OPTION, key_pattern_says=_OPTION_SAYS)
    )


@dataclass(frozen=True)
class Score:
    """Paired bootstrap resampling: the number of resamples."""

    bootstrap_samples: int = field(default=1000, metadata=_bounds(least=1))


@dataclass(frozen=True)
class Published:
    """A score that others have published: ``by`` whom, for which ``system`` of theirs, ``beside`` which of ours."""

    test_set: str
    by: str
    system: str
    beside: str
    metric: Literal["bleu", "tokenised_bleu", "tokenised_bleu_split"]
    score: float = field(metadata=_bounds(least=0))


@dataclass(frozen=True)
class Config:
    """One experiment, complete: every default filled in, every value checked."""

    name: str = field(metadata=_bounds(pattern=_NAME, pattern_says=_NAME_SAYS))
    languages: Languages
    data: Data
    codes: Codes
    systems: dict[str, System] = field(metadata=_bounds(key_pattern=_NAME, key_pattern_says=_NAME_SAYS, filled=True))
    baseline: str
    train: Train
    description: str = ""
    tokenise: Tokenise = field(default_factory=Tokenise)
    clean: Clean = field(default_factory=Clean)
    prepare: Prepare = field(default_factory=Prepare)
    seeds: list[int] = field(default_factory=lambda: [1], metadata=_bounds(least=1, filled=True))
    average: Average = field(default_factory=Average)
    translate: Translate = field(default_factory=Translate)
    score: Score = field(default_factory=Score)
    compare_with: list[Published] = field(default_factory=list)

    @property
    def synthetic(self) -> bool:
        """Whether the text is generated: every figure made from it must say so."""
        return self.data.synthetic is not None

    @property
    def test_sets(self) -> list[str]:
        """The names of the test sets, in the order of the configuration."""
        return ["test"] if self._tests is None else list(self._tests)

    @property
    def _tests(self) -> Mapping[str, Any] | None:
        """The test sets of the data that are named there (None: the data is generated)."""
        text = self.data.files or self.data.archives
        return None if text is None else text.tests

    def tokenise_for(self, part: str) -> Tokenise:
        """How ``part`` (``train``, ``valid`` or a test set) is tokenised."""
        if self.data.archives is not None and part in self.data.archives.tests:
            return self.data.archives.tests[part].tokenise or self.tokenise
        return self.tokenise

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists and scalars, without the keys that are not set; parse_config reads them back."""
        plain = _without_none(dataclasses.asdict(self))
        assert isinstance(plain, dict)
        return plain


def load_config(path: PathLike, overrides: Mapping[str, Any] | None = None) -> Config:
    """Read and check the experiment configuration in ``path`` (YAML, UTF-8).

    ``overrides`` maps dotted keys to values that take the place of the file's, as in ``{"data.sample": 500}``.
    Raises UsageError for a syntax error, a key that is unknown, missing or there twice, and for a value of the
    wrong type or out of range; MTScaffoldError where the file cannot be read.
    """
    with open_input(path) as stream:
        content = stream.read()
    try:
        loader = yaml.SafeLoader(content)
        root = loader.get_single_node()
        lines: dict[str, int] = {}
        if root is not None:
            _note_lines(root, "", lines, str(path))
        document = loader.construct_document(root) if root is not None else None
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{path}{line}: not valid YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that there is not, for example
        raise UsageError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise UsageError(f"{path}: nested too deeply, or in itself") from error
    if not isinstance(document, dict):
        raise UsageError(f"{path}: an experiment configuration is a list of 'key: value' lines; see configs/demo.yaml")
    for dotted, value in (overrides or {}).items():
        _override(document, dotted, value)
    return parse_config(document, str(path), lines)


def parse_config(document: Mapping[str, Any], origin: str = "configuration", lines: Mapping[str, int] = {}) -> Config:
    """Check a configuration that is already a dictionary (as Snakemake's ``config`` is) and fill in the defaults.

    ``origin`` and ``lines`` (line numbers by dotted key) say in an error where the value stands.
    Raises UsageError as load_config does.
    """
    try:
        config = _build(Config, dict(document), "", {})
        _check_whole(config)
    except _WrongValue as error:
        line = next((f":{lines[key]}" for key in _self_and_parents(error.key) if key in lines), "")
        raise UsageError(f"{origin}{line}: {error}") from None
    assert isinstance(config, Config)
    return config


class _WrongValue(Exception):
    """A value that does not fit the schema, under its dotted key."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"{key}: {message}" if key else message)
        self.key = key


def _check_whole(config: Config) -> None:
    """What no single field can tell: values that must fit each other."""
    if config.languages.source == config.languages.target:
        raise _WrongValue("languages.target", "source and target are the same language")
    kinds = [kind for kind in DATA_KINDS if getattr(config.data, kind) is not None]
    if len(kinds) != 1:
        given = " and ".join(kinds) if kinds else "none"
        raise _WrongValue("data", f"give exactly one of {', '.join(DATA_KINDS)} (given: {given})")
    for kind, text in (("files", config.data.files), ("archives", config.data.archives)):
        for name in text.tests if text is not None else ():
            if name in ("train", "valid"):
                raise _WrongValue(f"data.{kind}.tests.{name}", "a test set cannot be called train or valid")
    if config.data.archives is not None:
        _check_archives(config.data.archives)
    if config.data.files is not None:
        corpora = {"train": config.data.files.train, "valid": config.data.files.valid}
        corpora |= {f"tests.{name}": pairs for name, pairs in config.data.files.tests.items()}
        for corpus, pairs in corpora.items():
            for number, pair in enumerate(pairs):
                for side in ("source", "target"):
                    _check_file(f"data.files.{corpus}[{number}].{side}", getattr(pair, side))
    if config.clean.min_tokens > config.clean.max_tokens:
        raise _WrongValue("clean.min_tokens", "more than clean.max_tokens: no pair would be left")
    for name in config.systems:
        if name in RESERVED_NAMES:
            raise _WrongValue(f"systems.{name}", "this name is taken by a folder that every experiment has")
    if config.baseline not in config.systems:
        nearest = _nearest(config.baseline, config.systems)
        raise _WrongValue("baseline", f"no system is called {config.baseline}{nearest}")
    if len(set(config.seeds)) < len(config.seeds):
        raise _WrongValue("seeds", "a seed stands there twice")
    if config.train.batches and config.train.batch not in config.train.batches:
        raise _WrongValue("train.batch", f"give one of {', '.join(config.train.batches)}")
    if config.train.batch is not None and not config.train.batches:
        raise _WrongValue("train.batch", "there are no train.batches to choose from")
    for number, published in enumerate(config.compare_with):
        if published.test_set not in config.test_sets:
            nearest = _nearest(published.test_set, dict.fromkeys(config.test_sets))
            raise _WrongValue(f"compare_with[{number}].test_set", f"no test set {published.test_set}{nearest}")
        if published.beside not in config.systems:
            nearest = _nearest(published.beside, config.systems)
            raise _WrongValue(f"compare_with[{number}].beside", f"no system is called {published.beside}{nearest}")


def _check_file(key: str, file: DataFile) -> None:
    if (file.url is None) == (file.path is None):
        raise _WrongValue(key, "give either url or path")
    if file.url is not None and file.sha256 is None:
        raise _WrongValue(key, "a url needs its sha256, so that everyone trains on the same text")


def _check_archives(archives: ArchiveData) -> None:
    corpora = {"train": archives.train, "valid": archives.valid}
    for name, test in archives.tests.items():
        key = f"data.archives.tests.{name}"
        if (test.sacrebleu is None) == (test.pairs is None):
            raise _WrongValue(key, "give either sacrebleu or pairs")
        if test.md5 is not None and test.sacrebleu is None:
            raise _WrongValue(f"{key}.md5", "goes with sacrebleu; an archive has its own")
        corpora[f"tests.{name}.pairs"] = test.pairs or []
    for corpus, pairs in corpora.items():
        for number, pair in enumerate(pairs):
            if (pair.archive.sha256 is None) == (pair.archive.md5 is None):
                key = f"data.archives.{corpus}[{number}].archive"
                raise _WrongValue(key, f"give its sha256 or its md5, or sha256: {UNKNOWN} where none is published")


def _build(kind: Any, value: Any, key: str, bounds: Mapping[str, Any]) -> Any:
    """``value`` as the type ``kind`` (a dataclass, list, dict, literal, union or scalar type), checked all the way."""
    origin = typing.get_origin(kind)
    if dataclasses.is_dataclass(kind):
        return _build_dataclass(kind, value, key)
    if kind == OptionValue:
        return _build_option(value, key)
    if origin in (types.UnionType, typing.Union):
        (inner,) = (choice for choice in typing.get_args(kind) if choice is not type(None))
        return None if value is None else _build(inner, value, key, bounds)
    if origin is Literal:
        choices = typing.get_args(kind)
        if value not in choices:
            raise _WrongValue(key, f"must be {' or '.join(choices)}, not {_show(value)}")
        return value
    if origin is list:
        if not isinstance(value, list):
            raise _WrongValue(key, f"must be a list, not {_show(value)}")
        if bounds.get("filled") and not value:
            raise _WrongValue(key, "must not be empty")
        (inner,) = typing.get_args(kind)
        return [_build(inner, entry, f"{key}[{number}]", bounds) for number, entry in enumerate(value)]
    if origin is dict:
        return _build_dict(typing.get_args(kind)[1], value, key, bounds)
    return _build_scalar(kind, value, key, bounds)


def _build_dataclass(kind: Any, value: Any, key: str) -> Any:
    if not isinstance(value, dict):
        raise _WrongValue(key, f"must be 'key: value' lines, not {_show(value)}")
    hints = typing.get_type_hints(kind)
    fields = {entry.name: entry for entry in dataclasses.fields(kind)}
    for name in value:
        if name not in fields:
            raise _WrongValue(_join(key, name), f"unknown key{_nearest(str(name), fields)}")
    arguments = {}
    for name, entry in fields.items():
        if name in value:
            arguments[name] = _build(hints[name], value[name], _join(key, name), entry.metadata)
        elif entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING:
            raise _WrongValue(_join(key, name), "missing")
    return kind(**arguments)


def _build_dict(inner: Any, value: Any, key: str, bounds: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _WrongValue(key, f"must be 'name: value' lines, not {_show(value)}")
    if bounds.get("filled") and not value:
        raise _WrongValue(key, "must not be empty")
    for name in value:
        if not isinstance(name, str) or not re.fullmatch(bounds["key_pattern"], name):
            raise _WrongValue(_join(key, name), f"not a good name: {bounds['key_pattern_says']}")
    # The bounds were those of the names; what stands under a name has its own.
    return {name: _build(inner, entry, _join(key, name), {}) for name, entry in value.items()}


def _build_option(value: Any, key: str) -> OptionValue:
    """An option's value: a scalar, or a list of scalars."""
    entries = value if isinstance(value, list) else [value]
    for entry in entries:
        if not isinstance(entry, (int, float, str)) or (isinstance(value, list) and isinstance(entry, bool)):
            raise _WrongValue(key, f"must be true, false, a number, text or a list of those, not {_show(entry)}")
    if not entries:
        raise _WrongValue(key, "must not be empty")
    return typing.cast(OptionValue, value)


_TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def _build_scalar(kind: type, value: Any, key: str, bounds: Mapping[str, Any]) -> Any:
    # In Python True is a number; in a configuration it is not.
    fits = isinstance(value, kind) or (kind is float and isinstance(value, int))
    if not fits or (isinstance(value, bool) and kind is not bool):
        hint = " (put text that YAML takes for something else in quotes)" if kind is str else ""
        raise _WrongValue(key, f"must be {_TYPE_NAMES[kind]}, not {_show(value)}{hint}")
    if kind in (int, float):
        least, most = bounds.get("least"), bounds.get("most")
        if isinstance(value, float) and not math.isfinite(value):
            raise _WrongValue(key, f"must be a finite number, not {value}")
        if least is not None and value < least:
            raise _WrongValue(key, f"must be {least} or more, not {value}")
        if most is not None and value > most:
            raise _WrongValue(key, f"must be {most} or less, not {value}")
    if kind is str and bounds.get("pattern") and not re.fullmatch(bounds["pattern"], value):
        raise _WrongValue(key, f"must be {bounds['pattern_says']}, not {_show(value)}")
    return value


def _show(value: Any) -> str:
    """A value as a person would name it in an error."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "'key: value' lines"
    if isinstance(value, list):
        return "a list"
    return f"'{value}'" if isinstance(value, str) else str(value)


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    matches = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {matches[0]}?" if matches else f" (known: {', '.join(known)})"


def _join(key: str, name: object) -> str:
    return f"{key}.{name}" if key else str(name)


def _self_and_parents(key: str) -> list[str]:
    """A dotted key and the keys it stands under, the nearest first."""
    found = [key]
    while match := re.fullmatch(r"(.*)(\.[^.\[]+|\[\d+\])", found[-1]):
        found.append(match[1])
    return found


def _note_lines(node: yaml.Node, key: str, lines: dict[str, int], path: str) -> None:
    """Note the line of every key under ``node``, and refuse a key that stands there twice."""
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for name_node, value_node in node.value:
            if not isinstance(name_node, yaml.ScalarNode):
                continue
            line = name_node.start_mark.line + 1
            inner = _join(key, name_node.value)
            if name_node.value in seen:
                raise UsageError(f"{path}:{line}: {inner}: this key stands there twice")
            seen.add(name_node.value)
            lines[inner] = line
            _note_lines(value_node, inner, lines, path)
    elif isinstance(node, yaml.SequenceNode):
        for number, entry in enumerate(node.value):
            inner = f"{key}[{number}]"
            lines[inner] = entry.start_mark.line + 1
            _note_lines(entry, inner, lines, path)


def _override(document: dict[str, Any], dotted: str, value: Any) -> None:
    *parents, last = dotted.split(".")
    for parent in parents:
        inner = document.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise UsageError(f"{dotted}: cannot be set, {parent} is not a group of keys")
        document = inner
    document[last] = value


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_none(entry) for name, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [_without_none(entry) for entry in value]
    return value
