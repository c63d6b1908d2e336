"""Checkpoints → one model with the mean of each parameter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import PathLike, open_output
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.runtime.checkpoints import (
    epoch_checkpoints,
    load_checkpoint,
    tied,
    update_checkpoints,
    updates_made,
    without_optimiser,
)
from mt_scaffold.experiment.training.last_checkpoint import LAST_CHECKPOINT


def average(checkpoints: Sequence[PathLike], output: PathLike) -> list[str]:
    """Write the mean of ``checkpoints`` (fairseq's, of one training) to ``output``, for fairseq-generate to load.

    Each parameter is averaged in double precision and rounded once, to its own type. The configuration is taken from
    the last checkpoint; the optimiser's state is left out, so the result can translate but not resume training.
    Tied parameters share one storage, whether or not fairseq saved them as copies.
    Vaswani et al. 2017, section 6.1, and Ott et al. 2018 average the last checkpoints of a training in this way.

    Returns the names of the averaged checkpoints. Raises MTScaffoldError if a checkpoint cannot be loaded safely or
    differs from the first in its parameters.
    """
    import torch

    if not checkpoints:
        raise UsageError("average: no checkpoints given; name one or more")
    models: list[dict[str, Any]] = []
    for path in checkpoints:
        # Memory-mapped if possible: only the parameters summed below are read.
        state = load_checkpoint(path)
        models.append(state["model"])
        _check_same_parameters(models[0], models[-1], path, checkpoints[0])

    last, first_of = models[-1], tied(models)
    floating = [name for name in dict.fromkeys(first_of.values()) if last[name].is_floating_point()]
    sums = {name: torch.zeros(last[name].shape, dtype=torch.float64) for name in floating}
    while models:
        model = models.pop(0)
        for name, total in sums.items():
            total += model[name]
    means = {name: sums.pop(name).div_(len(checkpoints)).to(last[name].dtype) for name in floating}
    averaged = {name: means.get(first, last[first]) for name, first in first_of.items()}
    names = [Path(path).name for path in checkpoints]
    with open_output(output) as stream:
        torch.save(without_optimiser(state) | {"model": averaged, "averaged": names}, stream)
    return names


def last_checkpoints(folder: PathLike, last: int, by_updates: bool = False, skip: int = 0) -> list[Path]:
    """Return the ``last`` checkpoints in fairseq's ``--save-dir``: of whole epochs, or (``by_updates``) within epochs.

    by_updates: checkpoint_last.pt counts as the newest if the training made more updates after the last interval.
    ``last`` = 0 means the best one on the validation set. ``skip``: leave out that many of the newest. Raises
    MTScaffoldError if there are too few.
    """
    if last < 0 or skip < 0:
        raise UsageError(f"average: the number of checkpoints must be 0 or more, not {min(last, skip)}")
    if last == 0:
        best = Path(folder) / "checkpoint_best.pt"
        if not best.exists():
            raise MTScaffoldError(f"{folder}: no checkpoint_best.pt; train with validation, or average the last ones")
        return [best]
    found = _by_updates(Path(folder)) if by_updates else list(epoch_checkpoints(folder).values())
    if len(found) < last + skip:
        kind = "update" if by_updates else "epoch"
        which = f"the last {last}" + (f" before the last {skip}" if skip else "")
        raise MTScaffoldError(
            f"{folder}: {which} {kind} checkpoints are to be averaged, but there are only {len(found)}; "
            "train longer, keep more, or average fewer"
        )
    return found[len(found) - skip - last : len(found) - skip]


def _by_updates(folder: Path) -> list[Path]:
    """Return the checkpoints within epochs and that of the final update, unless it is the same as the newest."""
    found = update_checkpoints(folder)
    final = folder / LAST_CHECKPOINT
    after_the_interval = final.exists() and updates_made(load_checkpoint(final), final) > max(found, default=0)
    return [*found.values(), *([final] if after_the_interval else [])]


def _check_same_parameters(before: dict[str, Any], model: dict[str, Any], path: PathLike, first: PathLike) -> None:
    for name in sorted(before.keys() ^ model.keys()):
        raise MTScaffoldError(
            f"{path}: not of the same model as {first}: only one of them has the parameter {name}; "
            "average checkpoints of one training"
        )
    for name, tensor in model.items():
        if tensor.shape != before[name].shape:
            raise MTScaffoldError(
                f"{path}: not of the same model as {first}: {name} is {tuple(tensor.shape)}, "
                f"there {tuple(before[name].shape)}; average checkpoints of one training"
            )
