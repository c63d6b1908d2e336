"""A trace of learning, one line per step of Algorithm 1: the merge, the tokens it marked as scaffold, those restored.

With PickyBPE: the merge, the tokens it removed, and whether it made a removed token again.
"""

from __future__ import annotations

from typing import NamedTuple

from mt_scaffold.corpus.files import Writable

COLUMNS = (
    "step",
    "left",
    "right",
    "frequency",
    "head",
    "marked",
    "marked_frequency",
    "returned",
    "returned_frequency",
)
# A tab or a CR can be part of a word; a space or an LF cannot.
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\r": "\\r"})


class Step(NamedTuple):
    """One iteration of Algorithm 1. Frequencies are those in the text as segmented after it, except the pair's own.

    left, right: the pair that was merged; both empty if a scaffold token returned to the head of the queue instead.
    frequency: of the pair when it was merged; 0 if none was.
    head: frequency of the head of the queue after the merge, which left and right are compared with; None for BPE and
        PickyBPE, and if no pair was merged.
    marked: those of left and right that became scaffold tokens, with their frequency; with PickyBPE, those that were
        removed, with the number of remaining occurrences, which are split.
    returned: the scaffold token that became normal again, with its frequency: because it reached the head of the
        queue or, if left and right are given, because they also make it. With PickyBPE: a removed token that the
        pair made again, with its frequency before anything was split.

    Tokens are written as in the codes file.
    """

    left: str
    right: str
    frequency: int
    head: int | None
    marked: tuple[tuple[str, int], ...]
    returned: tuple[str, int] | None

    @property
    def merged(self) -> bool:
        """Whether a pair was merged."""
        return bool(self.left)


def format_step(number: int, step: Step) -> str:
    """Return a step as a line of the trace, which ends in LF; ``number`` counts the steps from 1.

    The fields are ``COLUMNS``, separated by tabs, and empty if they do not apply. Two marked tokens, and their
    frequencies, are separated by a space. In tokens, a backslash is ``\\\\``, a tab ``\\t`` and a CR ``\\r``.

    >>> format_step(7, Step("ari", "zona", 9, 8, (("ari", 2), ("zona", 0)), None))
    '7\\tari\\tzona\\t9\\t8\\tari zona\\t2 0\\t\\t\\n'
    """
    token, frequency = step.returned or ("", "")
    fields = (
        number,
        step.left,
        step.right,
        step.frequency if step.merged else "",
        "" if step.head is None else step.head,
        " ".join(token for token, _ in step.marked),
        " ".join(str(frequency) for _, frequency in step.marked),
        token,
        frequency,
    )
    return "\t".join(str(field).translate(_ESCAPES) for field in fields) + "\n"


class TraceWriter:
    """Writes a trace: the names of the columns, then each step as it is added."""

    def __init__(self, stream: Writable) -> None:
        self._stream = stream
        self._steps = 0
        self._write("\t".join(COLUMNS) + "\n")

    def add(self, step: Step) -> None:
        """Write the next step."""
        self._steps += 1
        self._write(format_step(self._steps, step))

    def _write(self, line: str) -> None:
        self._stream.write(line.encode("utf-8"))
