"""The pages' tables, and figures in their text."""

import csv
import json
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


def test_the_rows_of_a_fair_comparison_are_those_that_were_counted() -> None:
    """The sizes of the dictionaries in the text, from the stored statistics and counts."""
    page = " ".join((ROOT / "docs" / "fair_comparison.md").read_text(encoding="utf-8").split())
    results = ROOT / "docs" / "results"
    bpe, scaffold = json.loads((results / "multi30k_en_de" / "statistics.json").read_text(encoding="utf-8"))["stats"]
    assert bpe["vocabulary_size"] == scaffold["vocabulary_size"]
    assert f"both vocabularies have {bpe['vocabulary_size']:,} tokens, but {bpe['frequency_0']} of BPE's" in page
    assert f"and {scaffold['frequency_0']} of Scaffold-BPE's" in page
    assert f"{bpe['types']:,} rows and Scaffold-BPE's {scaffold['types']:,}" in page
    with open(results / "dictionaries" / "dictionaries.csv", encoding="utf-8") as file:
        counts = {(row["text"], row["system"], row["dictionary"]): row for row in csv.DictReader(file)}
    entries = [int(counts["mdn.de", system, "all"]["entries"]) for system in ("bpe", "scaffold")]
    assert "it is {:,} and {:,}.".format(*entries) in page
    cut = {system: counts["mdn.de", system, "at most 32,768"] for system in ("bpe", "scaffold")}
    assert f"leaves {int(cut['scaffold']['unk_in_train']):,} running" in page and cut["bpe"]["unk_in_train"] == "0"
