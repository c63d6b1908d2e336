"""mt-scaffold export: see mt_scaffold.experiment.inference.export_ctranslate2 and export_transformers."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from pathlib import Path

from mt_scaffold.corpus.text import SEPARATOR
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.commands.arguments import add_segmentation, segmentation
from mt_scaffold.experiment.configuration import load_config
from mt_scaffold.experiment.configuration.data import Tokenise
from mt_scaffold.experiment.inference.export_ctranslate2 import QUANTIZATIONS, export_ctranslate2
from mt_scaffold.experiment.inference.export_transformers import export_transformers, trained_model
from mt_scaffold.experiment.inference.model_files import ModelFiles, system_files

EXAMPLES = """\
mt-scaffold export ctranslate2 --experiment experiments/demo --system scaffold --output translator
mt-scaffold export ctranslate2 --model averaged.pt --dictionaries binarised -s en -t de --codes codes \\
    --quantization int8 --output translator
mt-scaffold export transformers --experiment experiments/lm_demo --system scaffold --output language_model
mt-scaffold export transformers --model averaged.pt --data binarised --output language_model
"""
_OF_FILES = ("model", "dictionaries", "source_lang", "target_lang", "codes")
_OF_EXPERIMENT = ("system", "seed")
# What describes the files further.
_BESIDE_FILES = ("config", "vocabulary", "vocabulary_threshold", "glossaries", "separator")
# What only one of the formats takes, besides the model, the experiment and the output.
_ONLY = {
    "ctranslate2": (*"dictionaries", "source_lang", "target_lang", "codes", *_BESIDE_FILES, "quantization"),
    "transformers": ("data", "comparison"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "format",
        choices=["ctranslate2", "transformers"],
        help="what will run the model: ctranslate2 (translation), or transformers (a language model of --arch llama)",
    )
    parser.add_argument("--experiment", metavar="FOLDER", help="the folder of an experiment, with --system")
    parser.add_argument("--system", metavar="NAME", help="with --experiment: the system to export")
    parser.add_argument("--seed", type=int, metavar="N", help="with --experiment: its training (default: the first)")
    parser.add_argument("--model", "-m", metavar="FILE", help="or the model: what mt-scaffold average wrote")
    parser.add_argument("--dictionaries", metavar="FOLDER", help="with --model: the folder with its dict.LANGUAGE.txt")
    parser.add_argument("--source-lang", "-s", metavar="LANGUAGE", help="with --model: for example en")
    parser.add_argument("--target-lang", "-t", metavar="LANGUAGE", help="with --model: for example de")
    parser.add_argument("--config", metavar="FILE", help="with --model: take the tokeniser's settings from here")
    add_segmentation(parser, required=False)
    parser.add_argument("--data", "-d", metavar="FOLDER", help="with transformers and --model: its data folder")
    parser.add_argument(
        "--comparison",
        metavar="NAME",
        help="with transformers and --experiment: of this comparison (default: the first)",
    )
    parser.add_argument("--quantization", choices=QUANTIZATIONS, help="type of the parameters (default: float32)")
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="the folder to write")


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    given = {name for name, value in vars(options).items() if value not in (None, [])}
    if options.separator == SEPARATOR:
        given.remove("separator")
    for other, names in _ONLY.items():
        for name in names:
            if other != options.format and name in given:
                raise UsageError(f"export {options.format}: --{name.replace('_', '-')} is for {other}; leave it out")
    if options.format == "ctranslate2":
        export_ctranslate2(_files(options, given), options.output, options.quantization)
        return
    exported = export_transformers(*_language_model(options, given), options.output)
    left = ", ".join(name for name in exported.dropped if not name.startswith("madeupword"))
    padding = sum(name.startswith("madeupword") for name in exported.dropped)
    print(
        f"{exported.rows:,} rows of embeddings; dropped, because they stand for no text: {left}, {padding} of padding"
    )


def _language_model(options: argparse.Namespace, given: Collection[str]) -> tuple[str | Path, str | Path]:
    """Return the checkpoint and the data folder."""
    if options.experiment is None:
        if not {"model", "data"} <= {*given}:
            raise UsageError("export transformers: give --model and --data, or --experiment and --system")
        _refuse(given, (*_OF_EXPERIMENT, "comparison"), "model")
        return options.model, options.data
    if options.system is None:
        raise UsageError("export: with --experiment, give --system")
    _refuse(given, ("model", "data"), "experiment")
    return trained_model(options.experiment, options.system, options.comparison, options.seed)


def _files(options: argparse.Namespace, given: Collection[str]) -> ModelFiles:
    if options.experiment is not None:
        if options.system is None:
            raise UsageError("export: with --experiment, give --system")
        _refuse(given, (*_OF_FILES, *_BESIDE_FILES), "experiment")
        return system_files(options.experiment, options.system, options.seed)
    for name in _OF_FILES:
        if name not in given:
            raise UsageError(f"export: give --{name.replace('_', '-')}, or --experiment and --system")
    _refuse(given, _OF_EXPERIMENT, "model")
    folder, languages = Path(options.dictionaries), (options.source_lang, options.target_lang)
    source, target = (folder / f"dict.{language}.txt" for language in languages)
    return ModelFiles(
        Path(options.model), languages, (source, target), segmentation(options), _tokeniser(options.config)
    )


def _refuse(given: Collection[str], names: Sequence[str], beside: str) -> None:
    """Raise UsageError for an option that would not count."""
    for name in names:
        if name in given:
            raise UsageError(f"export: with --{beside}, leave out --{name.replace('_', '-')}")


def _tokeniser(config: str | None) -> Tokenise | None:
    return None if config is None else load_config(config).tokenise.of_side("source")
