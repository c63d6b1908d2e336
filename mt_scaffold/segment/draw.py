"""Resampling, the random segmentation of training text: ``Draw``, and its kinds."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterable
from numbers import Real
from typing import NamedTuple

from mt_scaffold.errors import UsageError
from mt_scaffold.options import check_choice, whole_number

# Far beyond any alpha that still samples other than the best segmentation; its products with scores do not overflow.
_LARGEST_ALPHA = 1_000_000


def check_dropout(dropout: float) -> float:
    """Return a dropout probability; raise UsageError if it is not in [0, 1]."""
    if isinstance(dropout, bool) or not isinstance(dropout, Real) or not 0 <= dropout <= 1:
        raise UsageError(f"the dropout probability must be between 0 and 1, not {dropout}")
    return dropout


def check_alpha(alpha: float) -> float:
    """Return the exponent of the probabilities in sampling; raise UsageError if it is out of range."""
    if not 0 < alpha <= _LARGEST_ALPHA:
        raise UsageError(
            f"the alpha of sampling must be above 0, and {_LARGEST_ALPHA:,} at most, not {alpha}; give 0.1, for example"
        )
    return alpha


# Kind of resampling, Method.resampling of its methods → its name for people.
RESAMPLINGS = {"dropout": "BPE-dropout", "sampling_alpha": "sampling with alpha"}


class _Fields(NamedTuple):
    kind: str
    amount: float
    seed: int | None
    epoch: int


class Draw(_Fields):
    """How text is segmented at random: the kind of resampling, and its amount; 0 for none.

    amount: for ``dropout``, the probability of skipping a merge; for ``sampling_alpha``, the exponent of the
        probabilities of a Unigram model.
    seed, epoch: a text is segmented alike with the same seed, epoch and index, and otherwise independently; without a
        seed, every call draws one.

    Raises UsageError for an amount out of range, for a seed or an epoch of more than 64 bits, and for an epoch without
    the seed that it varies. The core takes it as it is.

    >>> Draw("dropout", 0.1, seed=3).at(2)
    Draw(kind='dropout', amount=0.1, seed=3, epoch=2)
    """

    __slots__ = ()

    # Not a dataclass: importing those takes longer than segmenting a thousand sentences.
    def __new__(cls, kind: str = "dropout", amount: float = 0.0, seed: int | None = None, epoch: int = 0) -> Draw:
        check_choice("kind of resampling", kind, RESAMPLINGS)
        if amount:
            (check_dropout if kind == "dropout" else check_alpha)(amount)
        if seed is not None and not -(2**63) <= whole_number("the seed", seed) < 2**64:
            raise UsageError(f"the seed must fit into 64 bits: {seed} does not")
        if not 0 <= whole_number("the epoch", epoch) < 2**64:
            raise UsageError(f"the epoch must be 0 or more and fit into 64 bits, not {epoch}")
        if epoch and amount and seed is None:
            raise UsageError(f"epoch {epoch} is random without a seed; give one, the same for every epoch")
        return super().__new__(cls, kind, amount, seed, epoch)

    def __bool__(self) -> bool:
        return bool(self.amount > 0)

    def at(self, epoch: int) -> Draw:
        """Return the same draw in another epoch."""
        return Draw(self.kind, self.amount, self.seed, epoch)

    @property
    def core_seed(self) -> int:
        """The seed in 64 bits: a negative one as its two's complement, a random one if none is given."""
        if self.seed is None:
            return int.from_bytes(os.urandom(8), "little")
        return operator.index(self.seed) & (2**64 - 1)

    @property
    def label(self) -> str:
        """The name of its kind in figures."""
        return self.kind.removesuffix("_alpha")

    @property
    def reach(self) -> str:
        """The name of the subwords that it can make, the same for all amounts but a dropout of 1; "" for none."""
        if not self:
            return ""
        # A dropout of 1 skips every merge.
        return "dropout-1" if (self.kind, self.amount) == ("dropout", 1) else self.label


NO_DRAW = Draw()


def warn_of_epoch(draw: Draw) -> None:
    """Warn on stderr that an epoch without dropout changes nothing."""
    if draw.epoch and not draw:
        print("warning: an epoch has no effect without dropout", file=sys.stderr)


def training_options(resamplings: tuple[Draw, Draw]) -> dict[str, float]:
    """Return the options of fairseq-train for source and target that are segmented like this.

    >>> training_options((Draw("dropout", 0.1), Draw("dropout", 0.1)))
    {'bpe-dropout': 0.1}
    >>> training_options((Draw("dropout", 0.1), NO_DRAW))
    {'bpe-dropout-src': 0.1, 'bpe-dropout-tgt': 0.0}
    """
    source, target = resamplings
    if not any(resamplings):
        return {}
    if source.amount == target.amount:
        return {"bpe-dropout" if source.kind == "dropout" else "sampling-alpha": source.amount}
    return {"bpe-dropout-src": source.amount, "bpe-dropout-tgt": target.amount}


def labels(resamplings: Iterable[Draw]) -> list[str]:
    """Return the names in figures of the kinds that any side uses."""
    return sorted({each.label for each in resamplings if each})


def description(resamplings: tuple[Draw, Draw]) -> str:
    """Describe how the sides of a training are segmented, for people: ``BPE-dropout 0.1 and 0``."""
    source, target = resamplings
    if not any(resamplings):
        return ""
    both = f" and {target.amount:g}" if source.kind == "dropout" else ""
    return f"{RESAMPLINGS[source.kind]} {source.amount:g}{both}"
