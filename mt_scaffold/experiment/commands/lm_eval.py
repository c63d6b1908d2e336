"""mt-scaffold lm-eval: see mt_scaffold.experiment.evaluation.lm_eval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from mt_scaffold.experiment.commands.average import chosen_checkpoints
from mt_scaffold.experiment.evaluation.lm_eval import Asking, format_harness, run_harness
from mt_scaffold.options_from_signature import Folder, Name, Option, OutputFile


def ask(
    *,
    checkpoint: Annotated[Sequence[str], Option("FILE", "-c")] = (),
    checkpoints: Folder | None = None,
    last: Annotated[int | None, Option(short="-n")] = None,
    updates: bool = False,
    data: Annotated[str, Option("FOLDER", "-d")],
    asking: Asking,
    system: Name | None = None,
    seed: int = 1,
    output: OutputFile,
) -> str:
    """Ask a model the tasks, and return the scores as text.

    checkpoint: a checkpoint of --arch llama or gpt_neox; with several, the scores are their means
    checkpoints: or the folder in which fairseq-train saved them
    last: with --checkpoints: its last N (default: 5, as in the paper)
    updates: with --checkpoints: those within epochs, not at their ends, and the final one
    data: the data folder of the training
    system: the system, for compare (default: the training's folder)
    seed: the training's random seed, for compare
    output: the scores, as JSON
    """
    chosen = chosen_checkpoints("lm-eval", checkpoint, checkpoints, last, updates)
    return format_harness(run_harness(chosen, data, output, asking, system=system, seed=seed))
