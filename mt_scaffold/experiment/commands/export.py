"""mt-scaffold export: see mt_scaffold.experiment.inference.export_transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.inference.export_transformers import export_transformers, trained_model
from mt_scaffold.options_from_signature import Folder, Name, Option, OutputFolder


def export(
    format: Literal["transformers"],
    /,
    output: OutputFolder,
    experiment: Folder | None = None,
    system: Name | None = None,
    seed: int | None = None,
    comparison: Name | None = None,
    model: Annotated[str | None, Option("FILE", "-m")] = None,
    data: Annotated[str | None, Option("FOLDER", "-d")] = None,
) -> str:
    """Export a model, and return a summary.

    format: the target library: transformers (language models of llama or gpt_neox)
    output: the folder to write
    experiment: the folder of an experiment, with --system
    system: with --experiment: the system to export
    seed: with --experiment: the seed of the training (default: the first)
    comparison: with --experiment: the comparison of the training (default: the first)
    model: or a checkpoint, as mt-scaffold average writes it
    data: with --model: its data folder
    """
    checkpoint: str | Path
    folder: str | Path
    if experiment is not None:
        if system is None:
            raise UsageError("export: with --experiment, give --system")
        _refuse({"model": model, "data": data}, "experiment")
        checkpoint, folder = trained_model(experiment, system, comparison, seed)
    elif model is None or data is None:
        raise UsageError("export transformers: give --model and --data, or --experiment and --system")
    else:
        _refuse({"system": system, "seed": seed, "comparison": comparison}, "model")
        checkpoint, folder = model, data
    exported = export_transformers(checkpoint, folder, output)
    left = ", ".join(name for name in exported.dropped if not name.startswith("madeupword"))
    padding = sum(name.startswith("madeupword") for name in exported.dropped)
    return (
        f"{exported.rows:,} rows of embeddings; dropped, because they stand for no text: {left}, {padding} of padding"
    )


def _refuse(options: dict[str, object], chosen: str) -> None:
    """Raise UsageError if one of the ``options``, which --``chosen`` excludes, is given."""
    for name, value in options.items():
        if value is not None:
            raise UsageError(f"export: with --{chosen}, leave out --{name}")
