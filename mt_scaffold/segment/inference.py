"""The kinds of inference: how learned codes turn a word into subwords."""

from __future__ import annotations

from typing import NamedTuple

from mt_scaffold.errors import UsageError
from mt_scaffold.options import check_choice


class Inference(NamedTuple):
    """A kind of inference, for all methods with codes.

    name: its name for ``--inference`` and a system's ``inference``. help: its description for ``--help``.
    dropout: whether it has merges that BPE-dropout can skip. vocabulary: whether its subwords can be restricted to
    those of a vocabulary file. picky: whether it takes PickyBPE's codes, which have splits between merges.
    """

    name: str
    help: str
    dropout: bool = True
    vocabulary: bool = True
    picky: bool = True

    def check(self, *, dropout: bool = False, vocabulary: bool = False) -> Inference:
        """Return this inference; raise UsageError for dropout or a vocabulary if it has none."""
        if dropout and not self.dropout:
            raise UsageError(f"{self.name} inference has no merges to skip; omit dropout")
        if vocabulary and not self.vocabulary:
            raise UsageError(f"{self.name} inference has the vocabulary of the codes; omit the vocabulary")
        return self


# Each by its name; the first is the default. A new kind is a line here, one in the core's
# ``inference.hpp``, and a file next to that.
INFERENCES = {
    each.name: each
    for each in (
        Inference("merges", "merge in order of rank"),
        Inference("greedy", "take the longest token from the left", dropout=False, vocabulary=False),
        Inference("longest-merge", "merge what makes the longest token first", picky=False),
        Inference("fewest", "take the fewest tokens that spell the word", dropout=False, vocabulary=False),
        Inference(
            "remerge",
            "merge in order of rank, take scaffold tokens apart, merge again without them",
            dropout=False,
            vocabulary=False,
            picky=False,
        ),
    )
}
MERGES = "merges"


def inference_of(name: str) -> Inference:
    """Return the inference of this name; raise UsageError, listing them, for any other name."""
    return INFERENCES[check_choice("inference", name, INFERENCES)]


def describe_inferences() -> str:
    """Describe each inference, for ``--help``: ``merges: merge in order of rank; greedy: …``."""
    return "; ".join(f"{each.name}: {each.help}" for each in INFERENCES.values())
