"""Checkpoints for averaging → the same without the optimiser's state."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Annotated, NamedTuple

from mt_scaffold.corpus.files import PathLike, open_output
from mt_scaffold.experiment.runtime.checkpoints import (
    best_checkpoints,
    epoch_checkpoints,
    has_optimiser,
    load_checkpoint,
    tied,
    update_checkpoints,
    without_optimiser,
)
from mt_scaffold.experiment.runtime.locks import LOCK_FILE, take_lock
from mt_scaffold.options_from_signature import Option


class Stripped(NamedTuple):
    """The names of the rewritten checkpoints, and the number of bytes freed."""

    names: list[str]
    freed: int

    def as_text(self) -> str:
        """Return both in one line."""
        return f"thinned: {' '.join(self.names) or 'none'} ({self.freed:,} bytes freed)\n"


def strip_optimizer(folder: Annotated[PathLike, Option("FOLDER", "-c", name="checkpoints")]) -> Stripped:
    """Remove the optimiser's state, which only resuming needs, from the checkpoints in fairseq's ``--save-dir``.

    folder: the folder in which fairseq-train saved them; checkpoint_last.pt is left unchanged

    checkpoint_last.pt stays as it is, so that the training can be continued with a later end. All of them can be
    averaged and translated with as before, and keep their modification times. Tied parameters are saved once.

    Raises MTScaffoldError if one cannot be loaded, or if the training is still running.
    """
    import torch

    names, freed = [], 0
    with _no_training(Path(os.path.abspath(folder)).parent):
        paths = [*epoch_checkpoints(folder).values(), *update_checkpoints(folder).values(), *best_checkpoints(folder)]
        for path in paths:
            if not has_optimiser(state := load_checkpoint(path)):
                continue
            before = path.stat()
            model = state["model"]
            thinned = without_optimiser(state) | {"model": {name: model[one] for name, one in tied([model]).items()}}
            with open_output(path) as stream:
                torch.save(thinned, stream)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            names.append(path.name)
            freed += before.st_size - path.stat().st_size
    return Stripped(names, freed)


def _no_training(folder: Path) -> contextlib.AbstractContextManager[object]:
    """Keep ``mt-scaffold train``, which overwrites and deletes checkpoints, from running in ``folder``."""
    if not (folder / LOCK_FILE).exists():
        return contextlib.nullcontext()
    return take_lock(folder, "a training is running here; thin its checkpoints when it has ended")
