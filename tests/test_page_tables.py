"""Tables on the pages are whole, and stored comparisons are those of their scores."""

from __future__ import annotations

from pathlib import Path

import pytest
from paths import ROOT

RESULTS = ROOT / "docs" / "results"
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_row_is_cut_off_from_its_table(page: Path) -> None:
    """After a blank line, rows without a heading are printed as text with pipes; text right after a row becomes one."""
    fenced, lines = False, [""]
    for line in page.read_text(encoding="utf-8").split("\n"):
        fenced ^= line.lstrip().startswith("```")
        lines.append("" if fenced else line.strip())
    cut = [
        line
        for before, line, after in zip(lines[:-1], lines[1:], [*lines[2:], ""], strict=True)
        if (line.startswith("|") and not before.startswith("|") and not after.startswith(("|-", "|:", "| -", "| :")))
        or (before.startswith("|") and line and not line.startswith(("|", "<!--")))
    ]
    assert not cut


@pytest.mark.parametrize(
    ("name", "folders", "stored", "seeds"),
    [
        ("multi30k_en_de", ("multi30k_en_de", "multi30k_control", "multi30k_dropout"), "multi30k_en_de", range(1, 6)),
        ("multi30k_confirmatory", ("multi30k_confirmatory",), "multi30k_confirmatory", range(6, 16)),
        ("study_multi30k_en_de", ("multi30k_published",), "multi30k_published", range(1, 4)),
    ],
)
def test_the_named_comparisons_are_what_the_stored_scores_give(
    name: str, folders: tuple[str, ...], stored: str, seeds: range
) -> None:
    """The page's table is made from these files (tools/page_tables.py)."""
    pytest.importorskip("scipy", reason="comes with the extra 'workflow'")
    from studies.named_comparisons import NAMED, UNTOUCHED, report

    scores = [RESULTS / folder / "comparison.json" for folder in folders]
    text = (RESULTS / stored / "named-comparisons.txt").read_text(encoding="utf-8")
    assert report(NAMED[name], scores, UNTOUCHED, seeds) == text
