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


STORED = sorted(ROOT.glob("docs/results/*/comparison.txt"))


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.parent.name)
def test_a_p_of_single_trainings_says_what_it_is_about(path: Path) -> None:
    """Tables that were stored before ``compare`` wrote this have it above them."""
    text = path.read_text(encoding="utf-8")
    above = "One training of a system does not show how far trainings differ by chance: p and interval are about these "
    assert (text.split("\n\n")[1].startswith(above)) == ("one training per system" in text)
