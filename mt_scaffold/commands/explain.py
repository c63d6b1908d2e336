"""``mt-scaffold explain``: from a word's characters to its subwords, merge by merge."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

from mt_scaffold.analysis.explain import explain
from mt_scaffold.corpus.text import SEPARATOR
from mt_scaffold.options_from_signature import CODES, MERGES, SUBWORD_END, Option


def run(
    words: Annotated[Sequence[str], Option("WORD")],
    /,
    *,
    codes: Annotated[str, CODES],
    merges: Annotated[int, MERGES] = -1,
    separator: Annotated[str, SUBWORD_END] = SEPARATOR,
) -> str:
    """Return how words are segmented, in colour for a terminal.

    words: words to explain
    """
    return explain(codes, words, merges, separator, sys.stdout.isatty() and "NO_COLOR" not in os.environ)
