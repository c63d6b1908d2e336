"""PickyBPE (Chizhov et al. 2024, docs/methods.md): tokens that hardly occur alone any more are removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mt_scaffold import _core
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.errors import UsageError
from mt_scaffold.methods.base import setting, symbols_setting
from mt_scaffold.methods.bpe import MergingMethod, OnStep
from mt_scaffold.progress import Progress


def check_threshold(threshold: float) -> float:
    """Return PickyBPE's threshold. Raises UsageError unless it is above 0 and at most 1."""
    if not 0 < threshold <= 1:
        raise UsageError(f"the threshold of PickyBPE must be above 0 and at most 1, not {threshold}")
    return threshold


@dataclass(frozen=True)
class Picky(MergingMethod):
    """PickyBPE (Chizhov et al. 2024): a token that is nearly always merged further is removed during learning."""

    name: ClassVar[str] = "picky"
    title: ClassVar[str] = "PickyBPE"

    symbols: int = symbols_setting("number of merged tokens that are not removed")
    threshold: float = setting(
        "remove a token when one merge takes this share of its occurrences",
        default=0.9,  # as in most of the paper's examples
        check=check_threshold,
        label="-ios{!r}",
        metavar="T",
    )

    @property
    def description(self) -> str:
        """The method and its settings in words."""
        return f"{super().description}, threshold {self.threshold:g}"

    def _learn(
        self,
        counts: _core.WordCounts,
        wanted: int,
        on_step: OnStep | None,
        show: Progress | None,
        header: CodesHeader,
    ) -> _core.Learned:
        core_header, threshold = header.for_core, self.threshold
        return _core.learn(counts, self.name, wanted, self.min_frequency, on_step, show, core_header, threshold)
