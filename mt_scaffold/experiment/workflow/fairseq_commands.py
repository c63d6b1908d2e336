"""The commands of fairseq in an experiment, as one could type them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from mt_scaffold.experiment.configuration.layout import Layout
from mt_scaffold.experiment.runtime.fairseq import user_dir
from mt_scaffold.experiment.tasks import task_of


def fairseq_commands(layout: Layout[Any]) -> Iterator[str]:
    """Yield the commands of every training and of its translations, for this machine, one option per line.

    A comment takes the place of a training whose options depend on data that does not exist yet.
    """
    task = task_of(layout.config)
    for run in layout.runs:
        start = task.start_of(layout, run, 0)
        if start is None:
            yield f"# {run.name}: its options depend on data that does not exist yet"
            continue
        yield _typed("fairseq-train", start.arguments)
        for arguments in task.generate_arguments(layout, run):
            yield _typed("fairseq-generate", arguments)


def _typed(program: str, arguments: Sequence[str]) -> str:
    lines = [program]
    for argument in arguments:
        shown = '"$(mt-scaffold user-dir)"' if argument == str(user_dir()) else shlex.quote(argument)
        if argument.startswith("--"):
            lines.append(f"    {shown}")
        else:
            lines[-1] += f" {shown}"
    return " \\\n".join(lines)
