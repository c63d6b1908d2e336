"""The files of a trained translation model: its checkpoint, dictionaries, segmentation and tokeniser settings."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.dictionary import read_dictionary
from mt_scaffold.experiment.binarise.segmentation import Segmentation, segmentation_in
from mt_scaffold.experiment.configuration.data import Tokenise
from mt_scaffold.experiment.configuration.layout import Run
from mt_scaffold.experiment.configuration.limits import SPECIAL_SYMBOLS
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint
from mt_scaffold.experiment.runtime.schema import nearest

# fairseq's default.
_POSITIONS = 1024


@dataclass(frozen=True)
class ModelFiles:
    """The files and settings of a translation model.

    checkpoint: a model that ``average`` or fairseq-train wrote. languages, dictionaries: of source and target.
    segmentation: how words become its subwords. tokenise: how text becomes its words. Both are None if unknown; the
    model then translates subwords.
    """

    checkpoint: Path
    languages: tuple[str, str]
    dictionaries: tuple[Path, Path]
    segmentation: Segmentation | None = None
    tokenise: Tokenise | None = None


@dataclass(frozen=True)
class TranslationModel:
    """A translation model as its checkpoint describes it, loaded without running code.

    parameters: name → tensor, of its type in the checkpoint. options: those of its architecture, by fairseq's names
    with underscores. symbols: of source and target, fairseq's own included, in the order of their ids.
    """

    files: ModelFiles
    parameters: Mapping[str, Any]
    options: Mapping[str, Any]
    symbols: tuple[list[str], list[str]]

    def error(self, problem: str) -> MTScaffoldError:
        """Return an error that names the checkpoint."""
        return MTScaffoldError(f"{self.files.checkpoint}: {problem}")

    def positions(self, side: str) -> int:
        """Return the most symbols that the model takes in a sentence of a side, source or target."""
        value = self.options.get(f"max_{side}_positions") or _POSITIONS
        if not isinstance(value, int) or value < 1:
            raise self.error(f"its --max-{side}-positions is {value!r}; give a checkpoint that fairseq-train wrote")
        return value


def data_folder_files(checkpoint: PathLike, data: PathLike, source: str, target: str) -> ModelFiles:
    """Return the files of a model whose dictionaries (``dict.LANGUAGE.txt``) are in the folder ``data``."""
    dictionaries = (Path(data) / f"dict.{source}.txt", Path(data) / f"dict.{target}.txt")
    return ModelFiles(Path(checkpoint), (source, target), dictionaries)


def system_files(experiment: PathLike, system: str, seed: int | None = None) -> ModelFiles:
    """Return the files of one system in the folder of an experiment; seed: None for the first of the configuration.

    Raises UsageError for a system or seed that the experiment does not have, and MTScaffoldError if it is not the
    folder of an experiment.
    """
    layout = TranslationLayout.read(experiment)
    config = layout.config
    if system not in config.systems:
        raise UsageError(f"{experiment}: no system is called {system}{nearest(system, config.systems)}")
    chosen = config.seeds[0] if seed is None else seed
    if chosen not in config.seeds:
        raise UsageError(f"{experiment}: no training has seed {seed}; give one of {', '.join(map(str, config.seeds))}")
    setting = config.segmentation(system)
    if not setting.kind.has_codes:
        title = setting.kind.title
        raise UsageError(f"{experiment}: {system} has a {title} model, and only systems with codes can be exported")
    dictionaries = tuple(layout.dictionary(layout.data_of(system), language) for language in layout.languages)
    return ModelFiles(
        layout.averaged(Run(system, chosen)),
        layout.languages,
        (dictionaries[0], dictionaries[1]),
        segmentation_in(layout, setting.name),
        config.tokenise.of_side("source"),
    )


def read_model(files: ModelFiles) -> TranslationModel:
    """Load the checkpoint and the dictionaries of a model, and check that they belong together.

    Raises MTScaffoldError if a file is missing or malformed, or if the checkpoint could run code, is not of an encoder
    with a decoder, or has other numbers of embeddings than the dictionaries have symbols.
    """
    if not files.checkpoint.is_file():
        raise MTScaffoldError(f"{files.checkpoint}: no such model; make it with mt-scaffold train or average")
    symbols = (read_symbols(files.dictionaries[0]), read_symbols(files.dictionaries[1]))
    state = load_checkpoint(files.checkpoint)
    model = TranslationModel(files, state["model"], _options(state), symbols)
    for side, path, known in zip(("encoder", "decoder"), files.dictionaries, symbols, strict=True):
        embeddings = model.parameters.get(f"{side}.embed_tokens.weight")
        if embeddings is None or embeddings.dim() != 2:
            raise model.error(f"no parameter {side}.embed_tokens.weight; give a checkpoint of a translation model")
        if len(embeddings) != len(known):
            raise model.error(
                f"its {side} has {len(embeddings)} embeddings, but {path} has {len(known)} symbols; give the "
                "dictionaries that it was trained with"
            )
    return model


def read_symbols(dictionary: PathLike) -> list[str]:
    """Return all symbols of a dictionary, fairseq's own first, in the order of their ids."""
    return [*SPECIAL_SYMBOLS, *(form for form, _ in read_dictionary(dictionary))]


def _options(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a model, from ``cfg`` or from the ``args`` that fairseq wrote before version 0.10."""
    cfg = state.get("cfg")
    found = (cfg.get("model") if isinstance(cfg, Mapping) else None) or state.get("args")
    if isinstance(found, argparse.Namespace):
        return dict(vars(found))
    return dict(found) if isinstance(found, Mapping) else {}
