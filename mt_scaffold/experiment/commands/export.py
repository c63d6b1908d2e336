"""mt-scaffold export: see mt_scaffold.experiment.inference.export_ctranslate2 and export_transformers."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from mt_scaffold.corpus.text import SEPARATOR
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.commands.arguments import (
    Codes,
    File,
    Folder,
    Glossaries,
    Inference,
    Name,
    OutputFolder,
    SegmentationOptions,
    Separator,
    Vocabularies,
    VocabularyThreshold,
)
from mt_scaffold.experiment.configuration import load_config
from mt_scaffold.experiment.inference.export_ctranslate2 import QUANTIZATIONS, export_ctranslate2
from mt_scaffold.experiment.inference.export_transformers import export_transformers, trained_model
from mt_scaffold.experiment.inference.model_files import ModelFiles, system_files
from mt_scaffold.options_from_signature import Option
from mt_scaffold.segment.inference import MERGES

EXAMPLES = """\
mt-scaffold export ctranslate2 --experiment experiments/demo --system scaffold --output translator
mt-scaffold export ctranslate2 --model averaged.pt --dictionaries binarised -s en -t de --codes codes \\
    --quantization int8 --output translator
mt-scaffold export transformers --experiment experiments/lm_demo --system scaffold --output language_model
mt-scaffold export transformers --model averaged.pt --data binarised --output language_model
"""
_OF_FILES = ("model", "dictionaries", "source_lang", "target_lang", "codes")
_OF_EXPERIMENT = ("system", "seed")
# Further options of a model given as files.
_OF_FILES_TOO = ("config", "vocabulary", "vocabulary_threshold", "glossaries", "separator", "inference")
# The options of only one format.
_ONLY = {
    "ctranslate2": ("dictionaries", "source_lang", "target_lang", "codes", *_OF_FILES_TOO, "quantization"),
    "transformers": ("data", "comparison"),
}


@dataclass(frozen=True)
class Exported:
    """A trained model: of an experiment, or as files.

    experiment: the folder of an experiment, with --system
    system: with --experiment: the system to export
    seed: with --experiment: the seed of the training (default: the first)
    model: or a checkpoint, as mt-scaffold average writes it
    dictionaries: with --model: the folder with its dict.LANGUAGE.txt
    source_lang: with --model: for example en
    target_lang: with --model: for example de
    config: with --model: take the tokeniser's settings from this configuration
    data: with transformers and --model: its data folder
    comparison: with transformers and --experiment: the comparison of the training (default: the first)
    quantization: type of the parameters (default: float32)
    """

    experiment: Folder | None = None
    system: Name | None = None
    seed: int | None = None
    model: Annotated[str | None, Option("FILE", "-m")] = None
    dictionaries: Folder | None = None
    source_lang: Annotated[str | None, Option("LANGUAGE", "-s")] = None
    target_lang: Annotated[str | None, Option("LANGUAGE", "-t")] = None
    config: File | None = None
    codes: Codes = ()
    vocabulary: Vocabularies | None = None
    vocabulary_threshold: VocabularyThreshold | None = None
    glossaries: Glossaries = ()
    separator: Separator = SEPARATOR
    inference: Inference = MERGES
    data: Annotated[str | None, Option("FOLDER", "-d")] = None
    comparison: Name | None = None
    quantization: Annotated[str | None, Option(choices=QUANTIZATIONS)] = None

    @property
    def given(self) -> set[str]:
        """The names of the options that were given."""
        return {each.name for each in dataclasses.fields(self) if getattr(self, each.name) != each.default}


def run(format: Literal["ctranslate2", "transformers"], /, options: Exported, output: OutputFolder) -> None:
    """Export a model.

    format: the target library: ctranslate2 (translation), or transformers (language models of llama or gpt_neox)
    output: the folder to write
    """
    for other, names in _ONLY.items():
        for name in names:
            if other != format and name in options.given:
                raise UsageError(f"export {format}: --{name.replace('_', '-')} is for {other}; leave it out")
    if format == "ctranslate2":
        export_ctranslate2(_files(options), output, options.quantization)
        return
    exported = export_transformers(*_language_model(options), output)
    left = ", ".join(name for name in exported.dropped if not name.startswith("madeupword"))
    padding = sum(name.startswith("madeupword") for name in exported.dropped)
    print(
        f"{exported.rows:,} rows of embeddings; dropped, because they stand for no text: {left}, {padding} of padding"
    )


def _language_model(options: Exported) -> tuple[str | Path, str | Path]:
    """Return the checkpoint and the data folder."""
    given = options.given
    if options.experiment is None:
        if options.model is None or options.data is None:
            raise UsageError("export transformers: give --model and --data, or --experiment and --system")
        _refuse(given, (*_OF_EXPERIMENT, "comparison"), "model")
        return options.model, options.data
    if options.system is None:
        raise UsageError("export: with --experiment, give --system")
    _refuse(given, ("model", "data"), "experiment")
    return trained_model(options.experiment, options.system, options.comparison, options.seed)


def _files(options: Exported) -> ModelFiles:
    given = options.given
    if options.experiment is not None:
        if options.system is None:
            raise UsageError("export: with --experiment, give --system")
        _refuse(given, (*_OF_FILES, *_OF_FILES_TOO), "experiment")
        return system_files(options.experiment, options.system, options.seed)
    for name in _OF_FILES:
        if name not in given:
            raise UsageError(f"export: give --{name.replace('_', '-')}, or --experiment and --system")
    _refuse(given, _OF_EXPERIMENT, "model")
    folder, languages = Path(options.dictionaries or ""), (options.source_lang or "", options.target_lang or "")
    source, target = (folder / f"dict.{language}.txt" for language in languages)
    segmented = SegmentationOptions(
        options.codes,
        options.vocabulary,
        options.vocabulary_threshold,
        options.glossaries,
        options.separator,
        options.inference,
    )
    tokeniser = None if options.config is None else load_config(options.config).tokenise.of_side("source")
    return ModelFiles(Path(options.model or ""), languages, (source, target), segmented.segmentation, tokeniser)


def _refuse(given: Collection[str], names: Sequence[str], chosen: str) -> None:
    """Raise UsageError if one of the options ``names``, which --``chosen`` excludes, is given."""
    for name in names:
        if name in given:
            raise UsageError(f"export: with --{chosen}, leave out --{name.replace('_', '-')}")
