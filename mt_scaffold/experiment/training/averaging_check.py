"""The checkpoints to be averaged: options that keep them, and a check, before the first update, that they do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration.training import Average
from mt_scaffold.experiment.runtime.fairseq import number_of
from mt_scaffold.experiment.runtime.schema import OptionValue


@dataclass(frozen=True)
class Epoch:
    """The length of an epoch: updates, and subwords and bytes of text as Stop counts them (None: unknown)."""

    updates: int
    tokens: int | None = None
    text: int | None = None


def averaging_options(average: Average, wanted: int) -> dict[str, OptionValue]:
    """Return the options that tell the plug-in's tasks how many checkpoints will be averaged, or asked tasks."""
    return {"average-last": wanted, "average-by": average.by} if wanted else {}


def kept_checkpoints(average: Average, options: Mapping[str, OptionValue], wanted: int) -> dict[str, OptionValue]:
    """Return the options that keep the checkpoints to be averaged, or asked tasks, and no others."""
    kept: dict[str, OptionValue] = {}
    # If only the best checkpoint is used, one epoch checkpoint is enough; 0 would keep them all.
    if "keep-last-epochs" not in options:
        kept["keep-last-epochs"] = max(wanted, 1) if average.by == "epochs" else 1
    if average.by == "updates" and "keep-interval-updates" not in options:
        kept["keep-interval-updates"] = max(wanted, 1)
    return kept


def check_checkpoints(options: Mapping[str, OptionValue], epoch: Epoch | None, wanted: int, by: str = "epochs") -> None:
    """Raise UsageError if a training with fairseq-train's ``options`` saves or keeps fewer than ``wanted`` checkpoints.

    epoch: its length; None: unknown before there is data, so that only a number of epochs can be checked. by:
    ``epochs``, for checkpoints of whole epochs (and the final one, if tokens or text end the training), or ``updates``,
    for those within epochs and the final one.
    """
    keeps = "keep-last-epochs" if by == "epochs" else "keep-interval-updates"
    if 0 < (kept := number_of(options.get(keeps))) < wanted:
        raise UsageError(
            f"average.last: {wanted} checkpoints are needed, but {keeps} in the options keeps {kept}; keep more, or "
            "average fewer"
        )
    limits = {name: number_of(options.get(name)) for name in ("max-epoch", "max-update", "stop-tokens", "stop-text")}
    if wanted < 1 or not any(limits.values()):
        return
    epochs, said = _epochs(limits, epoch)
    if math.isinf(epochs):
        return
    interval = number_of(options.get("save-interval-updates"))
    if by == "epochs":
        # An epoch that tokens or text cut short counts as a whole one.
        whole = math.ceil(epochs) if said.startswith(("stop-tokens", "stop-text")) else math.floor(epochs)
        saved = whole // (number_of(options.get("save-interval")) or 1)
    elif epoch is None or not interval:
        return
    else:
        # Round first, because (n / m) * m can be just below n.
        updates = math.floor(round(epochs * epoch.updates, 6))
        # At the end of an epoch fairseq saves a checkpoint of that epoch instead.
        saved = updates // interval - updates // math.lcm(interval, epoch.updates)
        # checkpoint_last.pt, which average uses if it is newer.
        saved += updates % interval > 0 or updates % epoch.updates == 0
    if saved < wanted:
        length = f"{said} at {epoch.updates:,} updates per epoch: {epochs:.1f} epochs" if epoch else said
        every = f", a checkpoint every {interval:,} updates" if by == "updates" else ""
        raise UsageError(
            f"average.last: {wanted} checkpoints are needed, but this training saves {saved} ({length}{every}); train "
            "longer, use smaller batches, or average fewer"
        )


def _epochs(limits: dict[str, int], epoch: Epoch | None) -> tuple[float, str]:
    """Return the number of epochs until the first of the limits, and that limit in words."""
    found = [(float(limits["max-epoch"]), f"max-epoch {limits['max-epoch']:,}")] if limits["max-epoch"] else []
    lengths = {"max-update": epoch.updates, "stop-tokens": epoch.tokens, "stop-text": epoch.text} if epoch else {}
    for name, length in lengths.items():
        if limits[name] and length:
            found.append((limits[name] / length, f"{name} {limits[name]:,}"))
    return min(found, default=(math.inf, ""))
