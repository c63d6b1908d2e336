"""mt-scaffold average: see mt_scaffold.experiment.training.average."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.commands.arguments import OutputFile
from mt_scaffold.experiment.training.average import average, last_checkpoints
from mt_scaffold.options_from_signature import Option

EXAMPLES = """\
mt-scaffold average --checkpoints model/checkpoints --last 5 --output averaged.pt
"""


def run(
    inputs: Annotated[Sequence[str], Option("CHECKPOINT")] = (),
    /,
    *,
    checkpoints: Annotated[str | None, Option("FOLDER", "-c")] = None,
    last: Annotated[int | None, Option(short="-n")] = None,
    updates: bool = False,
    skip: int = 0,
    output: OutputFile,
) -> None:
    """Average checkpoints, and print their names.

    inputs: checkpoints to average, by name
    checkpoints: or the folder in which fairseq-train saved them
    last: with --checkpoints: average the last N (default: 5; 0: only the best)
    updates: with --checkpoints: those within epochs, not at their ends, and the final one
    skip: with --checkpoints: leave out the newest N
    output: the averaged model
    """
    if bool(inputs) == bool(checkpoints):
        raise UsageError("average: give either checkpoints by name, or --checkpoints with their folder")
    if inputs and (last is not None or updates or skip):
        raise UsageError("average: --last, --updates and --skip choose from the folder that --checkpoints names")
    newest = 5 if last is None else last
    named = inputs or last_checkpoints(checkpoints or "", newest, by_updates=updates, skip=skip)
    print("averaged:", *average(named, output))
