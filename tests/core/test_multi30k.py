"""Exactness on a real text, which does not come with the project: skipped if it is missing."""

from __future__ import annotations

import pytest
from segmenting import MULTI30K, Figures, figures_of, measure, needs


@needs(MULTI30K)
@pytest.mark.parametrize("figures", figures_of("multi30k"), ids=str)
def test_figures_of_multi30k(figures: Figures) -> None:
    """Thousands of merges of natural words give the known counts and the known codes files."""
    texts = [MULTI30K / "train.en.gz", MULTI30K / "train.de.gz"]
    assert measure(texts, figures.symbols, figures.algorithm) == figures
