"""mt-scaffold strip-optimizer: see mt_scaffold.experiment.training.strip_optimizer."""

from __future__ import annotations

from typing import Annotated

from mt_scaffold.experiment.training.strip_optimizer import strip_optimizer
from mt_scaffold.options_from_signature import Option

EXAMPLES = """\
mt-scaffold strip-optimizer --checkpoints model/checkpoints
"""


def run(checkpoints: Annotated[str, Option("FOLDER", "-c")]) -> None:
    """Strip the checkpoints, and print their names and the bytes freed.

    checkpoints: the folder in which fairseq-train saved them; checkpoint_last.pt is left unchanged
    """
    names, freed = strip_optimizer(checkpoints)
    print(f"thinned: {' '.join(names) or 'none'} ({freed:,} bytes freed)")
