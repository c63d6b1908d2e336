"""Write the tables of the paper's results, and of ours, into the documentation.

The paper's come from mt_scaffold/experiment/report/paper.json, each between ``<!-- paper.json: NAME -->`` and
``<!-- end of paper.json -->``; ours come from docs/results/EXPERIMENT/comparison.json, between
``<!-- comparison: EXPERIMENT -->`` and ``<!-- end of comparison -->``.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

from mt_scaffold.experiment.report.paper import figures_table, language_models_table
from mt_scaffold.tables import format_table

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", *sorted(DOCS.glob("*.md")), DOCS / "results" / "README.md")
BLOCK = re.compile(r"(<!-- (paper\.json|comparison): (\w+) -->\n).*?(<!-- end of \2 -->)", re.DOTALL)
ALGORITHMS = ("BPE", "Scaffold-BPE")
TABLES: dict[str, Callable[[], str]] = {
    "figures": figures_table,
    "language_models": language_models_table,
}


def bleu_table(experiment: str) -> str:
    """Return BLEU of two systems on each test set of an experiment, and their difference, as a Markdown table."""
    found = json.loads((DOCS / "results" / experiment / "comparison.json").read_text(encoding="utf-8"))
    rows = [["test set", *ALGORITHMS, "difference, 95 % interval"]]
    for baseline, system in zip(found["rows"][::2], found["rows"][1::2], strict=True):
        bleu = [each["scores"]["bleu"] for each in (baseline, system)]
        scores = [f"{each['mean']:.2f} ± {each['sd']:.2f}" for each in bleu]
        effect = system["tests"]["bleu"]
        interval = f"{effect['difference']:+.2f}, {effect['low']:+.2f} to {effect['high']:+.2f}"
        rows.append([baseline["test_set"], *scores, interval.replace("-", "−")])
    return format_table(rows, markdown=True, figures=False)


def with_tables(text: str) -> str:
    """Return a page of the documentation with its tables updated from the data files."""

    def written(match: re.Match[str]) -> str:
        table = bleu_table(match[3]) if match[2] == "comparison" else TABLES[match[3]]()
        return f"{match[1]}{table}{match[4]}"

    return BLOCK.sub(written, text)


if __name__ == "__main__":
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        after = with_tables(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(page)
