"""One job of a running workflow, and the progress of a training by its own updates."""

from __future__ import annotations

import itertools
import shlex
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mt_scaffold.experiment.configuration.layout import TRAINING_COMMAND
from mt_scaffold.experiment.training.progress import read_progress
from mt_scaffold.progress import duration

# The share of a training from which its speed is estimated: includes validation and saving, but not its start.
_ENOUGH = 0.1


def end_of(log: str | Path, lines: int) -> str:
    """Return the last lines of a log, or the error in brackets if it cannot be read."""
    try:
        return "\n".join(Path(log).read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
    except OSError as error:
        return f"({error.strerror})"


def may_end_early(folder: Path) -> bool:
    """Return whether a training may end before its limits, when it no longer improves."""
    try:
        command = shlex.split((folder / TRAINING_COMMAND).read_text(encoding="utf-8"), comments=True)
    except (OSError, ValueError):
        return False
    return any(name == "--patience" and value.isdecimal() for name, value in itertools.pairwise(command))


@dataclass
class Step:
    """One job of the workflow: its rule, wildcards and output files."""

    rule: str
    wildcards: Mapping[str, str]
    outputs: Iterable[str] = ()
    began: float = field(default_factory=lambda: time.monotonic())
    # The time of the first observed progress, and the share then; before that, the training was starting.
    first: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        noted = read_progress(self.folder) if self.rule == "train" else None
        # The share that earlier runs have done.
        self._before = noted.share if noted is not None else 0.0

    def __str__(self) -> str:
        values = [f"seed {value}" if name == "seed" else str(value) for name, value in self.wildcards.items()]
        return " ".join([self.rule.replace("_", " "), ", ".join(values)]).strip()

    def shown(self) -> str:
        """Return the step as text; a training with its progress and, once known, the time left at its speed."""
        noted = read_progress(self.folder) if self.rule == "train" else None
        if noted is None:
            return str(self)
        left = self.left(noted.share)
        return f"{self} ({noted}{'' if left is None else f'; {duration(left)} left'})"

    def left(self, share: float) -> float | None:
        """Return the seconds left at the speed of this run, or None if too little has been observed.

        share: the share of the training that is done, from 0 to 1.
        """
        now = time.monotonic()
        if self.first is None and share > self._before:
            self.first = (now, share)
        if self.first is None or share - self.first[1] < _ENOUGH or may_end_early(self.folder):
            return None
        return (now - self.first[0]) * (1 - share) / (share - self.first[1])

    @property
    def folder(self) -> Path:
        """The folder of its first output."""
        return Path(next(iter(self.outputs), ".")).parent
