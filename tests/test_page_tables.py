"""The pages' tables."""

from pathlib import Path

import pytest
from paths import ROOT

PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_row_is_cut_off_from_its_table(page: Path) -> None:
    """After a blank line, rows without a heading are printed as text with pipes."""
    fenced, lines = False, [""]
    for line in page.read_text(encoding="utf-8").split("\n"):
        fenced ^= line.lstrip().startswith("```")
        lines.append("" if fenced else line.strip())
    cut = [
        line
        for before, line, after in zip(lines[:-1], lines[1:], [*lines[2:], ""], strict=True)
        if line.startswith("|") and not before.startswith("|") and not after.startswith(("|-", "|:", "| -", "| :"))
    ]
    assert not cut
