"""checkpoint_last.pt, from which a training resumes: fairseq loads it, and the plug-in's counts are in it."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

from mt_scaffold.experiment.runtime.checkpoints import (
    epoch_checkpoints,
    load_checkpoint,
    update_checkpoints,
    updates_made,
)

LAST_CHECKPOINT = "checkpoint_last.pt"


def mend_last_checkpoint(checkpoints: Path) -> None:
    """Replace a truncated checkpoint_last.pt, which fairseq writes as a copy, with the newest complete checkpoint."""
    last = checkpoints / LAST_CHECKPOINT
    if not last.exists() or zipfile.is_zipfile(last):
        return
    all_checkpoints = [*epoch_checkpoints(checkpoints).values(), *update_checkpoints(checkpoints).values()]
    whole = [path for path in all_checkpoints if zipfile.is_zipfile(path)]
    if not whole:
        last.unlink()
        return
    beside = last.with_suffix(".part")
    shutil.copyfile(max(whole, key=lambda path: path.stat().st_mtime_ns), beside)
    shutil.copymode(last, beside)
    beside.replace(last)


def has_made_its_updates(checkpoints: Path, limit: int) -> bool:
    """Return whether a training has reached its --max-update, beyond which fairseq would add one at every start.

    limit: the updates; 0 for none.
    """
    last = checkpoints / LAST_CHECKPOINT
    return limit > 0 and last.exists() and updates_made(load_checkpoint(last), last) >= limit


def knows_its_batch(checkpoints: Path) -> bool:
    """Return whether the last checkpoint tells its batch for other processes too; fairseq's own tasks do not."""
    last = checkpoints / LAST_CHECKPOINT
    if not zipfile.is_zipfile(last):
        return False
    iterator = load_checkpoint(last)["extra_state"]["train_iterator"]
    return "processes" in iterator or not iterator.get("iterations_in_epoch")
