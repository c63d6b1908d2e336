"""The kinds of resampling: how the segmentation of training text varies from epoch to epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mt_scaffold.errors import UsageError
from mt_scaffold.options import check_dropout, check_uniform_sampling
from mt_scaffold.segment.segmenter import Segmenter, SentenceEncoder

if TYPE_CHECKING:
    from mt_scaffold._core import WordCounts

# Far beyond what differs from the best segmentation, and far from where its products with scores overflow.
_LARGEST_ALPHA = 1_000_000


def check_alpha(alpha: float) -> float:
    """Return the exponent of the probabilities in sampling; UsageError where it is out of range."""
    if not 0 < alpha <= _LARGEST_ALPHA:
        raise UsageError(
            f"the alpha of sampling must be above 0, and {_LARGEST_ALPHA:,} at most, not {alpha}; give 0.1, for example"
        )
    return alpha


class Kind(NamedTuple):
    """A kind of resampling.

    name: the key of a system. title: for people. option: of a training. label: what a figure calls it. check: raises
    UsageError for an amount out of range. by_side: whether source and target can differ.
    """

    name: str
    title: str
    option: str
    label: str
    check: Callable[[float], float]
    by_side: bool = True


# Each by its name. A method says which of them it has (Method.resamplings).
RESAMPLINGS = {
    each.name: each
    for each in (
        Kind("dropout", "BPE-dropout", "bpe-dropout", "dropout", check_dropout),
        Kind("uniform_sampling", "uniform sampling", "bpe-uniform-sampling", "uniform", check_uniform_sampling),
        Kind("sampling_alpha", "sampling with alpha", "sampling-alpha", "sampling", check_alpha, by_side=False),
    )
}


@dataclass(frozen=True)
class Resampling:
    """How the training text of one side is segmented: a kind, and the number that it takes; 0 for always the same.

    That is, for ``dropout``, the probability of skipping a merge; for ``uniform_sampling``, that of drawing a word from
    all of its segmentations; for ``sampling_alpha``, the exponent of the probabilities of a Unigram model.
    """

    name: str = "dropout"
    amount: float = 0.0

    def __post_init__(self) -> None:
        if self.amount:
            RESAMPLINGS[self.name].check(self.amount)

    def __bool__(self) -> bool:
        return self.amount > 0

    def encode(
        self,
        encoder: SentenceEncoder,
        sentences: Sequence[str] | Sequence[bytes],
        seed: int | None = None,
        epoch: int = 0,
        indices: Sequence[int] = (),
    ) -> tuple[memoryview, memoryview]:
        """Return the ids of sentences, segmented like this; otherwise as ``SentenceEncoder.encode``."""
        if self.name == "uniform_sampling":
            return encoder.encode(sentences, 0, seed, epoch, indices, uniform_sampling=self.amount)
        return encoder.encode(sentences, self.amount, seed, epoch, indices)

    @property
    def reach(self) -> str:
        """The name of what it can make of words, which is the same for all amounts but a dropout of 1; "" for none."""
        if not self:
            return ""
        # Not a single merge is left.
        return "dropout-1" if (self.name, self.amount) == ("dropout", 1) else RESAMPLINGS[self.name].label

    def reachable(self, segmenter: Segmenter, counts: WordCounts) -> set[str]:
        """Return every subword that it can make of counted words; of no resampling, none."""
        if not self:
            return set()
        if self.name == "uniform_sampling":
            return {*segmenter.reachable(counts, uniform_sampling=self.amount)}
        return {*segmenter.reachable(counts, self.amount)}


NONE = Resampling()


def every_resampling(names: Iterable[str], dropout: bool = True) -> tuple[Resampling, ...]:
    """Return one of each of these kinds, for what any of them can make of words; dropout: whether there are merges."""
    return tuple(Resampling(name, 0.5) for name in names if dropout or name != "dropout")


def training_options(resamplings: Sequence[Resampling]) -> dict[str, float]:
    """Return the options of a training whose sides, source first, are segmented like this.

    >>> training_options([Resampling("dropout", 0.1), Resampling("dropout", 0.1)])
    {'bpe-dropout': 0.1}
    >>> training_options([Resampling("dropout", 0.1), NONE])
    {'bpe-dropout-src': 0.1, 'bpe-dropout-tgt': 0.0}
    """
    options: dict[str, float] = {}
    for kind in RESAMPLINGS.values():
        amounts = [each.amount if each.name == kind.name else 0.0 for each in resamplings]
        if any(amounts):
            names = [kind.option] if len({*amounts}) == 1 else [f"{kind.option}-{side}" for side in ("src", "tgt")]
            options |= dict(zip(names, amounts, strict=False))
    return options


def labels(resamplings: Iterable[Resampling]) -> list[str]:
    """Return what a figure calls the kinds that vary any side."""
    used = {each.name for each in resamplings if each}
    return [kind.label for kind in RESAMPLINGS.values() if kind.name in used]


def description(resamplings: Sequence[Resampling]) -> str:
    """Return how the sides of a training are segmented, for people: ``BPE-dropout 0.1 and 0``."""
    said = []
    for kind in RESAMPLINGS.values():
        amounts = [each.amount if each.name == kind.name else 0.0 for each in resamplings]
        if any(amounts):
            shown = [f"{amount:g}" for amount in (amounts if kind.by_side else amounts[:1])]
            said.append(f"{kind.title} {' and '.join(shown)}")
    return ", ".join(said)
