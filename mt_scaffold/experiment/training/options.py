"""The options of fairseq-train that all tasks have in common."""

from __future__ import annotations

from collections.abc import Mapping

from mt_scaffold.experiment.configuration.training import Average
from mt_scaffold.experiment.runtime.schema import OptionValue


def averaging_options(average: Average, wanted: int) -> dict[str, OptionValue]:
    """Return the options that tell the plug-in's tasks how many checkpoints will be averaged or scored."""
    return {"average-last": wanted, "average-by": average.by} if wanted else {}


def kept_checkpoints(average: Average, options: Mapping[str, OptionValue], wanted: int) -> dict[str, OptionValue]:
    """Return the options that keep the checkpoints to be averaged or scored, and no others."""
    kept: dict[str, OptionValue] = {}
    # If only the best checkpoint is used, one epoch checkpoint is enough; 0 would keep them all.
    if "keep-last-epochs" not in options:
        kept["keep-last-epochs"] = max(wanted, 1) if average.by == "epochs" else 1
    if average.by == "updates" and "keep-interval-updates" not in options:
        kept["keep-interval-updates"] = max(wanted, 1)
    return kept
