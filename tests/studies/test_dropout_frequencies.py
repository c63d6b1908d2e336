"""``studies.dropout_frequencies`` counts tokens as segmented text writes them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import fmean

from mt_scaffold import BPE, learn
from mt_scaffold.methods import PlainBPE, Scaffold
from studies.dropout_frequencies import rows_of, surface_of

LINES = ["Arizona Arizona zone zones ozone", "Arizona zonal zones Arizonan oz on", "lower lowest low slow slower"] * 3


def test_counts_equal_those_of_the_text_segmented_line_by_line(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    (row,) = rows_of("text", [text], 6, [0.0], [1, 2])
    codes = [learn(paths=[text], method=method).codes for method in (PlainBPE(6, 2), Scaffold(6, 2))]
    removed, new = ({*one.normal} - {*other.normal} for one, other in ((codes[0], codes[1]), (codes[1], codes[0])))
    found = [Counter(" ".join(map(BPE(each).segment, LINES)).encode().split()) for each in codes]
    assert (row.removed, row.new, row.seeds) == (len(removed), len(new), 1) and removed and new
    assert row.of_removed == fmean(found[0][surface_of(token)] for token in removed)
    assert row.of_new == fmean(found[1][surface_of(token)] for token in new)


def test_dropout_is_averaged_over_seeds_and_large_sizes_are_left_out(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    one, other, both = (next(rows_of("text", [text], 6, [0.5], seeds)) for seeds in ([1], [2], [1, 2]))
    assert both.of_removed == fmean([one.of_removed, other.of_removed]) and one.of_removed != other.of_removed
    assert [*rows_of("text", [text], 5000, [0.0], [1])] == []
