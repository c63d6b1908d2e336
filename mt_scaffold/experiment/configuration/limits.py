"""The special symbols of fairseq's dictionaries, and the limits on which subwords get an id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from mt_scaffold.corpus.vocabulary_file import SPECIAL_SYMBOLS as SPECIAL_SYMBOLS
from mt_scaffold.errors import UsageError
from mt_scaffold.options_from_signature import Option


@dataclass(frozen=True)
class Limits:
    """Which subwords get an id: the options of fairseq-preprocess of the same names.

    nwordssrc, nwordstgt: size of the dictionary, with fairseq's four special symbols (default: all subwords)
    thresholdsrc, thresholdtgt: least frequency of a subword in it
    padding_factor: pad it to a multiple of N

    A joined dictionary, of both sides, is limited by ``nwordssrc`` and ``thresholdsrc``. The subwords that resampling
    adds are exempt from these limits.
    """

    joined_dictionary: Annotated[
        bool, Option(name="separate-dictionaries", help="one for each language (default: one for both)")
    ] = True
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
