"""Write the tables of the paper's figures into the documentation, from mt_scaffold/experiment/paper.json.

Each table is between ``<!-- paper.json: NAME -->`` and ``<!-- end of paper.json -->``.
"""

import re
from pathlib import Path

from mt_scaffold.experiment.paper import figures_table, percentages_table

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLOCK = re.compile(r"(<!-- paper\.json: (\w+) -->\n).*?(<!-- end of paper\.json -->)", re.DOTALL)
TABLES = {
    "figures": figures_table,
    "percentages": percentages_table,
    "BLEU": lambda: figures_table("BLEU"),
    "compression": lambda: figures_table("bytes per token"),
    "entropy": lambda: figures_table("entropy"),
    "redundancy": lambda: figures_table("redundancy"),
}


def with_tables(text: str) -> str:
    """A page of the documentation with its tables as the data file has them."""
    return BLOCK.sub(lambda match: f"{match[1]}{TABLES[match[2]]()}{match[3]}", text)


if __name__ == "__main__":
    for page in sorted(DOCS.glob("*.md")):
        before = page.read_text(encoding="utf-8")
        after = with_tables(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(page)
