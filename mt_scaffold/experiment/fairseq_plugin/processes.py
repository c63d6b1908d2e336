"""Resuming with another number of processes: the same batches, shared by more or fewer."""

from collections.abc import Mapping, Sequence
from typing import Any

from mt_scaffold.errors import MTScaffoldError


def at_same_batch(state: Mapping[str, Any], processes: int, update_freq: Sequence[int]) -> dict[str, Any]:
    """Return the state of an iterator for this number of processes, where it is the share of another number.

    fairseq deals the batches of an epoch to the processes in turn, and an update takes update-freq of each. So an
    update has the same batches wherever processes x update-freq is the same; only the count of each process differs.

    Raises MTScaffoldError where an update of these processes would begin before the batch that is next.
    """
    before = state.get("processes", processes)
    if before == processes:
        return dict(state)
    epoch, seen = state["epoch"], state["iterations_in_epoch"] * before
    together = processes * update_freq[min(epoch, len(update_freq)) - 1]
    if seen % together:
        raise MTScaffoldError(
            f"the checkpoint is after batch {seen} of epoch {epoch}, where no update of {processes} processes x "
            f"update-freq {together // processes} begins; resume with {before} processes, or with the same batch"
        )
    return {**state, "iterations_in_epoch": seen // processes}
