"""The description of a model whose embeddings were resized: ``mt_scaffold.json`` in its folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mt_scaffold.errors import MTScaffoldError

DESCRIPTION = "mt_scaffold.json"


@dataclass(frozen=True)
class Resized:
    """The origin of a folder, and how its embeddings changed.

    rows: of each embedding matrix before and after, by its name. added: the number of new rows. parameters: of the
    whole model before and after; tied ones count once. notes: on omissions, for people.
    """

    model: str
    sha256: dict[str, str]
    rows: dict[str, list[int]]
    added: int
    parameters: list[int]
    notes: list[str]
    versions: dict[str, str]

    @property
    def saved(self) -> int:
        """The number of parameters saved; negative if there are more."""
        return self.parameters[0] - self.parameters[1]


def refuse_existing(output: Path) -> None:
    """Raise MTScaffoldError if ``output`` holds anything: it may be the only copy of a model."""
    if output.exists() and not (output.is_dir() and not any(output.iterdir())):
        raise MTScaffoldError(f"{output}: exists already; delete it, or choose a new folder")
