"""The folder of a packed model: what is in it, and the check that every file is as it was packed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import PathLike, open_input
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.segmentation import STORED
from mt_scaffold.experiment.configuration.data import Tokenise
from mt_scaffold.experiment.runtime.provenance import raw_digest
from mt_scaffold.experiment.runtime.schema import OptionValue, WrongValue, bounds, build

MANIFEST, WEIGHTS, OPTIONS, EXPERIMENT, CARD = (
    "manifest.json",
    "model.safetensors",
    "config.json",
    "experiment.yaml",
    "README.md",
)
FORMAT = 1
# Options of fairseq-generate that change no translation.
_WITHOUT_EFFECT = {"num-workers", "data-buffer-size", "log-format", "log-interval", "no-progress-bar", "no-early-stop"}
_WITHOUT_EFFECT |= {"max-target-positions", "skip-invalid-size-inputs-valid-test"}
# What Git has in place of a large file that it has not fetched.
_POINTER = b"version https://git-lfs"


@dataclass(frozen=True)
class BeamSearch:
    """How a packed model translates: options of fairseq-generate by their names and with their defaults.

    max_tokens, batch_size: of a batch; ``max-tokens`` counts the subwords of its source, padded. fp16: on a GPU only.
    """

    beam: int = field(default=5, metadata=bounds(least=1))
    lenpen: float = 1.0
    unkpen: float = 0.0
    max_len_a: float = field(default=0.0, metadata={**bounds(least=0), "key": "max-len-a"})
    max_len_b: int = field(default=200, metadata={**bounds(least=0), "key": "max-len-b"})
    min_len: int = field(default=1, metadata={**bounds(least=0), "key": "min-len"})
    unnormalized: bool = False
    temperature: float = 1.0
    no_repeat_ngram_size: int = field(default=0, metadata={**bounds(least=0), "key": "no-repeat-ngram-size"})
    max_source_positions: int = field(default=1024, metadata={**bounds(least=2), "key": "max-source-positions"})
    max_tokens: int | None = field(default=None, metadata={**bounds(least=1), "key": "max-tokens"})
    batch_size: int | None = field(default=None, metadata={**bounds(least=1), "key": "batch-size"})
    fp16: bool = False


def beam_search(options: Mapping[str, OptionValue]) -> BeamSearch:
    """Return the beam search that options of fairseq-generate describe.

    Raises UsageError for an option that a packed model does not have, such as sampling, and for a wrong value.
    """
    chosen = {name: value for name, value in options.items() if name not in _WITHOUT_EFFECT and value is not False}
    if "max-sentences" in chosen:
        chosen["batch-size"] = chosen.pop("max-sentences")
    try:
        search: BeamSearch = build(BeamSearch, chosen, "translate.options")
    except WrongValue as error:
        raise UsageError(f"{error}; a packed model translates by beam search with these options only") from None
    return search


@dataclass(frozen=True)
class PackedScore:
    """A score as the table shows it, with sacreBLEU's signature (``Metric`` of score.py, without its segments)."""

    score: float
    text: str
    signature: str
    comparable: bool


@dataclass(frozen=True)
class PackedTestSet:
    """The scores of a test set by metric, and what reproduces them.

    sha256: of the raw source, the reference and the translation. tokenise: where it is not that of other text.
    """

    lines: int
    scores: dict[str, PackedScore]
    sha256: dict[str, str]
    tokenise: Tokenise | None = field(default=None, metadata={"omit_none": True})


@dataclass(frozen=True)
class Origin:
    """Where a model comes from.

    checkpoint: the SHA-256 digest of the file that was packed, the mean of ``averaged`` checkpoints. engine: what
    translated the test sets, fairseq or ctranslate2. trained_with, packed_with: versions of the packages.
    """

    experiment: str
    description: str
    system: str
    seed: int
    synthetic: bool
    checkpoint: str
    averaged: int
    parameters: int
    updates: int
    epochs: int
    engine: str
    trained_with: dict[str, str]
    packed_with: dict[str, str]


@dataclass(frozen=True)
class Manifest:
    """What a folder holds, as ``manifest.json`` says it.

    tokenise: how raw source text becomes words. tied: the parameters that are stored under the name of another. files:
    the SHA-256 digest of each file but the manifest and README.md, which are for people to edit.
    """

    format: int
    source: str
    target: str
    tokenise: Tokenise
    translate: BeamSearch
    tied: dict[str, str]
    test_sets: dict[str, PackedTestSet]
    origin: Origin
    files: dict[str, str]

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target language."""
        return self.source, self.target


def read_manifest(folder: PathLike) -> Manifest:
    """Return the manifest of a packed model, after a check of every file that it names.

    Raises MTScaffoldError where the folder is not one that ``pack`` made, is incomplete or has been changed.
    """
    path = Path(folder) / MANIFEST
    if not Path(folder).is_dir():
        raise MTScaffoldError(f"{folder}: no such folder; give one that mt-scaffold pack made")
    if not path.is_file():
        raise MTScaffoldError(f"{folder}: not a packed model (no {MANIFEST} in it); make one with mt-scaffold pack")
    manifest = _manifest(path)
    _check_files(Path(folder), manifest)
    return manifest


def _manifest(path: Path) -> Manifest:
    document = read_json(path)
    found = document.get("format") if isinstance(document, dict) else None
    if isinstance(found, int) and found > FORMAT:
        raise MTScaffoldError(f"{path}: format {found} is of a newer mt-scaffold, this one reads {FORMAT}; update it")
    try:
        manifest: Manifest = build(Manifest, document)
    except WrongValue as error:
        raise MTScaffoldError(f"{path}: {error}; pack the model again") from None
    return manifest


def read_json(path: Path) -> Any:
    """Read a JSON file of a packed model. Raises MTScaffoldError where it is none."""
    with open_input(path) as stream:
        content = stream.read()
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise MTScaffoldError(f"{path}: not JSON ({error}); copy or pack the model again") from None


def _check_files(folder: Path, manifest: Manifest) -> None:
    needed = {WEIGHTS, OPTIONS, STORED, *(dictionary_name(language) for language in manifest.languages)}
    if missing := sorted(needed - manifest.files.keys()):
        raise MTScaffoldError(f"{folder / MANIFEST}: names no {missing[0]}; pack the model again")
    for name, digest in manifest.files.items():
        path = folder / name
        if path.name != name or name in ("", ".", ".."):
            raise MTScaffoldError(f"{folder / MANIFEST}: '{name}' is not a file of this folder; pack the model again")
        if not path.is_file():
            raise MTScaffoldError(f"{folder}: incomplete: {name} is missing; copy or pack the model again")
        if raw_digest(path) != digest:
            with open(path, "rb") as stream:
                pointer = stream.read(len(_POINTER)) == _POINTER
            problem = "a Git LFS pointer; fetch the file with git lfs pull"
            if not pointer:
                problem = "not as it was packed (sha256 mismatch); copy or pack the model again"
            raise MTScaffoldError(f"{path}: {problem}")


def dictionary_name(language: str) -> str:
    """Return the name of the dictionary of a language."""
    return f"dict.{language}.txt"
