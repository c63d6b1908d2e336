"""The special symbols of fairseq's dictionaries, and the limits on which subwords get an id."""

from __future__ import annotations

from dataclasses import dataclass

from mt_scaffold.corpus.vocabulary_file import SPECIAL_SYMBOLS as SPECIAL_SYMBOLS
from mt_scaffold.errors import UsageError


@dataclass(frozen=True)
class Limits:
    """Which subwords get an id: the options of fairseq-preprocess of the same names.

    joined_dictionary: one dictionary for both sides, limited by ``nwordssrc`` and ``thresholdsrc``. nwordssrc,
    nwordstgt: the size of a dictionary, with fairseq's four special symbols (-1: all subwords). thresholdsrc,
    thresholdtgt: the least frequency of a subword. The subwords that resampling adds are exempt from these limits.
    padding_factor: the size is padded to a multiple of this.
    """

    joined_dictionary: bool = True
    nwordssrc: int = -1
    nwordstgt: int = -1
    thresholdsrc: int = 0
    thresholdtgt: int = 0
    padding_factor: int = 8

    def check(self) -> Limits:
        """Return the limits; raise UsageError for a value out of range."""
        for name, least in (("thresholdsrc", 0), ("thresholdtgt", 0), ("padding_factor", 1)):
            if getattr(self, name) < least:
                raise UsageError(f"{name} must be {least} or more, not {getattr(self, name)}")
        for name in ("nwordssrc", "nwordstgt"):
            if 0 <= getattr(self, name) <= len(SPECIAL_SYMBOLS):
                raise UsageError(f"{name} must exceed {len(SPECIAL_SYMBOLS)}, the number of fairseq's special symbols")
        return self
