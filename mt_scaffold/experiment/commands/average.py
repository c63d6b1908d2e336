"""mt-scaffold average: see mt_scaffold.experiment.training.average."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.training.average import average, last_checkpoints
from mt_scaffold.options_from_signature import Option, OutputFile


def average_checkpoints(
    inputs: Annotated[Sequence[str], Option("CHECKPOINT")] = (),
    /,
    *,
    checkpoints: Annotated[str | None, Option("FOLDER", "-c")] = None,
    last: Annotated[int | None, Option(short="-n")] = None,
    updates: bool = False,
    skip: int = 0,
    output: OutputFile,
) -> str:
    """Average checkpoints, and return their names.

    inputs: checkpoints to average, by name
    checkpoints: or the folder in which fairseq-train saved them
    last: with --checkpoints: average the last N (default: 5; 0: only the best)
    updates: with --checkpoints: those within epochs, not at their ends, and the final one
    skip: with --checkpoints: leave out the newest N
    output: the averaged model
    """
    if inputs and skip:
        raise UsageError("average: --skip chooses from the folder that --checkpoints names")
    return " ".join(
        ["averaged:", *average(chosen_checkpoints("average", inputs, checkpoints, last, updates, skip), output)]
    )


def chosen_checkpoints(
    command: str, named: Sequence[PathLike], folder: PathLike | None, last: int | None, updates: bool, skip: int = 0
) -> Sequence[PathLike]:
    """Return the checkpoints given by name, or else the last ones in a folder (default: 5).

    Raises UsageError, which names the command, if both are given, or neither.
    """
    if named and folder is None:
        if last is not None or updates:
            raise UsageError(f"{command}: --last and --updates choose from the folder that --checkpoints names")
        return named
    if named or folder is None:
        raise UsageError(f"{command}: give either checkpoints by name, or --checkpoints with their folder")
    return last_checkpoints(folder, 5 if last is None else last, by_updates=updates, skip=skip)
