"""checkpoint_last.pt, from which a training resumes; it also holds the plug-in's counts."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import explain_os_error
from mt_scaffold.corpus.storage.parts import create_part
from mt_scaffold.experiment.runtime.checkpoints import (
    best_checkpoints,
    epoch_checkpoints,
    has_optimiser,
    load_checkpoint,
    update_checkpoints,
    updates_made,
)

LAST_CHECKPOINT = "checkpoint_last.pt"


@dataclass(frozen=True)
class Reached:
    """The progress of a training.

    in_next_epoch: whether it has begun the epoch after the whole ones. tokens, text: the subwords and bytes seen.
    waited: the number of validations in a row that were no better than the best. None: unknown.
    """

    updates: int
    epochs: int
    in_next_epoch: bool
    tokens: int | None
    text: int | None
    waited: int | None


def reached(state: Mapping[str, Any], path: Path) -> Reached:
    """Return the progress of the training that saved ``state`` to ``path``."""
    iterator = state["extra_state"]["train_iterator"]
    seen, waiting = iterator.get("seen", {}), iterator.get("without_improvement")
    return Reached(
        updates_made(dict(state), path),
        # At the end of an epoch fairseq's iterator is already at the start of the next.
        iterator["epoch"] - 1,
        bool(iterator.get("iterations_in_epoch")),
        seen.get("subwords"),
        seen.get("text_bytes"),
        waiting["validations"] if waiting else None,
    )


def resumed_from(checkpoints: Path) -> Path | None:
    """Return checkpoint_last.pt or, if that is missing or truncated, the intact checkpoint with the most updates.

    fairseq writes the others first, and then checkpoint_last.pt as a copy, in place. None: no checkpoint is intact.
    """
    last = checkpoints / LAST_CHECKPOINT
    if zipfile.is_zipfile(last):
        return last
    if not checkpoints.is_dir():
        return None
    found: dict[int, Path] = {}
    for paths in (epoch_checkpoints(checkpoints).values(), update_checkpoints(checkpoints).values()):
        for path in reversed(paths):
            if _note(path, found):
                break
    for path in best_checkpoints(checkpoints):
        _note(path, found)
    return found[max(found)] if found else None


def _note(path: Path, found: dict[int, Path]) -> bool:
    """Add a checkpoint to those found, by updates, if a training can resume from it; return whether it can.

    It cannot resume from truncated checkpoints, or from those that strip-optimizer has thinned.
    """
    if not zipfile.is_zipfile(path):
        return False
    state = load_checkpoint(path)
    if has_optimiser(state):
        found.setdefault(updates_made(state, path), path)
    return has_optimiser(state)


def mend_last_checkpoint(checkpoints: Path) -> None:
    """Replace a missing or truncated checkpoint_last.pt by the checkpoint that the training resumes from."""
    last, source = checkpoints / LAST_CHECKPOINT, resumed_from(checkpoints)
    if source == last or (source is None and not last.exists()):
        return
    state = "truncated" if last.exists() else "missing"
    if source is None:
        print(f"mt-scaffold: {last}: {state}, like every other checkpoint; training from the start", file=sys.stderr)
        last.unlink()
        return
    print(f"mt-scaffold: {last}: {state}; resuming from {source.name}", file=sys.stderr)
    try:
        _copy(source, last)
    except OSError as error:
        raise explain_os_error(error, error.filename or last) from error


def _copy(source: Path, target: Path) -> None:
    """Copy a file, with its mode, to a temporary name and rename it to ``target``; a link there is replaced."""
    descriptor, part = create_part(str(target), 0o600)
    try:
        with open(source, "rb") as stream, os.fdopen(os.dup(descriptor), "wb") as copy:
            shutil.copyfileobj(stream, copy, 1 << 20)
        os.fchmod(descriptor, source.stat().st_mode & 0o777)
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
    finally:
        os.close(descriptor)


def has_made_its_updates(checkpoints: Path, limit: int) -> bool:
    """Return whether a training has reached its --max-update; started again, fairseq would add one more update.

    limit: the value of --max-update; 0 for none.
    """
    last = checkpoints / LAST_CHECKPOINT
    return limit > 0 and last.exists() and updates_made(load_checkpoint(last), last) >= limit


def knows_its_batch(checkpoints: Path) -> bool:
    """Return whether another number of processes can find the next batch: within an epoch, not with fairseq's tasks."""
    source = resumed_from(checkpoints)
    if source is None:
        return True  # the training starts from scratch
    iterator = load_checkpoint(source)["extra_state"]["train_iterator"]
    return "processes" in iterator or not iterator.get("iterations_in_epoch")
