"""Samples of BPE-dropout, the codes that they are drawn with, and chi-square tests of them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from scipy import stats

from mt_scaffold import BPE

SUSPICIOUS = 1e-5  # a p-value below this means that the distributions differ
# Overlaps, merges of merges, and a string that is made in two ways; "ab" and "aab" are scaffold.
CODES = (
    b"#version: 0.2\na a\na b scaffold\nb a</w>\nab a</w>\naa b scaffold\na ab scaffold\naa aa\n"
    b"a a</w>\naab ab</w>\na b</w>\nb b\n"
)
# PickyBPE: "a" and "b" merged into "ab" twice, with a removal in between; overlaps; a token made in two ways.
PICKY_CODES = (
    b"#version: 0.4 picky\na a\na b\nab ab\nsplit ab a b\naa b</w>\na b\naa aa\nsplit aa a a\nb a</w>\na a\naa ab\n"
)


def sampled(codes: bytes, line: str, count: int, dropout: float, seed: int = 1, workers: int = 1) -> list[str]:
    """Segment a line ``count`` times, as the lines of one text."""
    output = io.BytesIO()
    text = f"{line}\n".encode("utf-8", "surrogateescape") * count
    BPE(codes).process_file(io.BytesIO(text), output, dropout, workers, seed)
    return output.getvalue().decode("utf-8", "surrogateescape").split("\n")[:-1]


def words_of(segmented: str) -> list[str]:
    """Return the words of a segmented line, each as its subwords."""
    return segmented.replace("@@ ", "@@").split(" ")


def surprise(observed: Mapping[Any, int], expected: Mapping[Any, float]) -> float:
    """Return the p-value of a chi-square test of counts against probabilities; rare outcomes are pooled."""
    assert set(observed) <= set(expected), f"impossible: {set(observed) - set(expected)}"
    total = sum(observed.values())
    cells, rare = [], [0.0, 0.0]
    for outcome, probability in expected.items():
        cell = [float(observed.get(outcome, 0)), probability * total]
        if cell[1] >= 5:
            cells.append(cell)
        else:
            rare = [rare[0] + cell[0], rare[1] + cell[1]]
    if rare[1] >= 5 or not cells:
        cells.append(rare)
    else:
        cells[0] = [cells[0][0] + rare[0], cells[0][1] + rare[1]]
    seen, wanted = zip(*cells, strict=True)
    scale = sum(seen) / sum(wanted)
    return float(stats.chisquare(seen, [value * scale for value in wanted]).pvalue) if len(cells) > 1 else 1.0


def surprise_of_two(first: Mapping[object, int], second: Mapping[object, int]) -> float:
    """Return the p-value of a chi-square test that two samples come from one distribution."""
    common = [outcome for outcome in {**first, **second} if first.get(outcome, 0) + second.get(outcome, 0) >= 10]
    table = [[sample.get(outcome, 0) for outcome in common] for sample in (first, second)]
    for row, sample in zip(table, (first, second), strict=True):
        row.append(sum(sample.values()) - sum(row))
    columns = [column for column in zip(*table, strict=True) if sum(column)]
    return float(stats.chi2_contingency(list(zip(*columns, strict=True))).pvalue)
