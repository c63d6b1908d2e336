"""The map of an operation on codes → the rows of a model's embeddings that stay, and the means for new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mt_scaffold.segment.id_maps import IdMap


@dataclass(frozen=True)
class Rows:
    """The rows of new embeddings.

    old: the number of old rows. kept: the old row of each new one, -1 for a new token. means: for each new token's row,
    the old rows whose mean it is.
    """

    old: int
    kept: Sequence[int]
    means: Mapping[int, Sequence[int]]

    @classmethod
    def of_ids(cls, ids: IdMap, old: int) -> Rows:
        """Return the rows of a model of ``old`` rows that are numbered by ids; those after the map's ids stay last.

        ids: a map of at most ``old`` ids.
        """
        kept = [-1] * ids.new + [*range(ids.old, old)]
        for row, number in enumerate(ids.ids):
            if number is not None:
                kept[number] = row
        return cls(old, kept, ids.pieces)

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def places(self) -> dict[int, int]:
        """The new row of each old row that stays."""
        return {old: new for new, old in enumerate(self.kept) if old >= 0}

    def of(self, tensor: Any, axis: int = 0) -> Any:
        """Return a tensor with these rows along ``axis``; those that stay keep their bits.

        Means are taken in fp64 and rounded to the tensor's type. Integers, such as the numbers of experts, have no
        mean: they are copied from the last of the old rows.
        """
        import torch

        found = tensor.index_select(axis, torch.tensor([max(row, 0) for row in self.kept], device=tensor.device))
        for row, parts in self.means.items():
            if not tensor.is_floating_point():
                found.select(axis, row).copy_(tensor.select(axis, parts[-1]))
                continue
            chosen = tensor.index_select(axis, torch.tensor(list(parts), device=tensor.device))
            found.select(axis, row).copy_(chosen.double().mean(axis).to(tensor.dtype))
        return found
