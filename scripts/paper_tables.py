"""Write the tables of the paper's figures, and of ours beside them, into the documentation.

The paper's are from mt_scaffold/experiment/paper.json, each between ``<!-- paper.json: NAME -->`` and
``<!-- end of paper.json -->``; ours are from docs/results/EXPERIMENT/statistics.json, between
``<!-- results: EXPERIMENT -->`` and ``<!-- end of results -->``.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

from mt_scaffold.experiment.paper import figures_table, language_models_table, percentages_table
from mt_scaffold.tables import format_table

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLOCK = re.compile(r"(<!-- (paper\.json|results): (\w+) -->\n).*?(<!-- end of \2 -->)", re.DOTALL)
TABLES: dict[str, Callable[[], str]] = {
    "figures": figures_table,
    "percentages": percentages_table,
    "BLEU": lambda: figures_table("BLEU"),
    "compression": lambda: figures_table("bytes per token"),
    "entropy": lambda: figures_table("entropy"),
    "redundancy": lambda: figures_table("redundancy"),
    "language_models": language_models_table,
}


def our_table(experiment: str) -> str:
    """The figures of an experiment that the paper has on its own texts, as a Markdown table."""
    found = json.loads((DOCS / "results" / experiment / "statistics.json").read_text(encoding="utf-8"))
    bpe, scaffold = found["stats"]
    number = f"{bpe['normal_tokens']:,}"
    rows = [["quantity", "N", "original BPE", "Scaffold-BPE"]]
    for name, key, places in (
        ("bytes per token", "bytes_per_token", 3),
        ("entropy H, bits", "entropy_bits", 4),
        ("redundancy", "redundancy", 4),
    ):
        rows.append([name, number, *(f"{each[key]:.{places}f}" for each in (bpe, scaffold))])
    share = 100 * len_or_number(found["vocabularies"]["removed"]) / bpe["vocabulary_size"]
    rows.append(["scaffold tokens in the original BPE's vocabulary, %", number, f"{share:.2f}", ""])
    rows += [["gain, %", f"{size['symbols']:,}", "", f"{100 * size['gain']:.2f}"] for size in found["sizes"]]
    return format_table(rows, markdown=True, figures=False)


def len_or_number(tokens: list[object] | int) -> int:
    """How many tokens: the published statistics have counts in place of the lists."""
    return tokens if isinstance(tokens, int) else len(tokens)


def with_tables(text: str) -> str:
    """A page of the documentation with its tables as the data files have them."""

    def written(match: re.Match[str]) -> str:
        table = TABLES[match[3]]() if match[2] == "paper.json" else our_table(match[3])
        return f"{match[1]}{table}{match[4]}"

    return BLOCK.sub(written, text)


if __name__ == "__main__":
    for page in sorted(DOCS.glob("*.md")):
        before = page.read_text(encoding="utf-8")
        after = with_tables(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(page)
