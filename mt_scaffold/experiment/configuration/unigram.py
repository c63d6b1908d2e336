"""What a system with a Unigram model can say in a configuration, and what it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mt_scaffold.methods.unigram import UNIGRAM

_NOT_UNIGRAM = {
    "dropout": "skips merges, and unigram has none; give sampling_alpha instead",
    "dropout_source": "skips merges, and unigram has none; give sampling_alpha instead",
    "dropout_target": "skips merges, and unigram has none; give sampling_alpha instead",
    "uniform_sampling": "draws from the vocabulary of codes; give sampling_alpha instead",
    "uniform_sampling_source": "draws from the vocabulary of codes; give sampling_alpha instead",
    "uniform_sampling_target": "draws from the vocabulary of codes; give sampling_alpha instead",
    "threshold": "belongs to the algorithm picky and has no effect on unigram; leave it out",
    "min_frequency": "has no effect on unigram; leave it out",
    "inference": "not possible with unigram, which takes the most probable segmentation; leave it out",
    "vocabulary_threshold": "not possible with unigram; leave it out",
    "glossaries": "not possible with unigram; leave it out",
}


def check_unigram(system: Any) -> Iterator[tuple[str, str]]:
    """Yield what contradicts itself in a system (``System``), Unigram or not: a key and its fault."""
    if system.algorithm == UNIGRAM:
        for name, problem in _NOT_UNIGRAM.items():
            if getattr(system, name):
                yield name, problem
    elif system.sampling_alpha is not None:
        yield "sampling_alpha", "belongs to the algorithm unigram; with codes, give dropout"
