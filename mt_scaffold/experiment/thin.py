"""Checkpoints that are averaged → the same without the optimiser's state, a third of the size."""

from __future__ import annotations

import os
from pathlib import Path

from mt_scaffold.experiment.checkpoints import (
    epoch_checkpoints,
    has_optimiser,
    load_checkpoint,
    update_checkpoints,
    without_optimiser,
)
from mt_scaffold.files import PathLike, open_output


def thin(folder: PathLike) -> tuple[list[str], int]:
    """Take what only resuming needs out of the checkpoints in fairseq's ``--save-dir``.

    checkpoint_last.pt stays as it is, so that the training can be continued with a later end. All of them can be
    averaged and translated with as before; their modification times stay.

    Returns the names of those that were rewritten, and the bytes that this freed. Raises MTScaffoldError where one
    cannot be loaded.
    """
    import torch

    best = Path(folder) / "checkpoint_best.pt"
    names, freed = [], 0
    for path in [*epoch_checkpoints(folder).values(), *update_checkpoints(folder).values(), best]:
        if not path.exists() or not has_optimiser(state := load_checkpoint(path)):
            continue
        before = path.stat()
        with open_output(path) as stream:
            torch.save(without_optimiser(state), stream)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        names.append(path.name)
        freed += before.st_size - path.stat().st_size
    return names, freed
