"""Write the tables of the paper's figures, and of ours beside them, into the documentation.

The paper's are from mt_scaffold/experiment/report/paper.json, each between ``<!-- paper.json: NAME -->`` and
``<!-- end of paper.json -->``; ours are from docs/results/EXPERIMENT/statistics.json, between
``<!-- results: EXPERIMENT -->`` and ``<!-- end of results -->``, and from comparison.json there, between
``<!-- comparison: EXPERIMENT -->`` and ``<!-- end of comparison -->``.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

from mt_scaffold.experiment.report.paper import figures_table, language_models_table, read_paper
from mt_scaffold.tables import format_table

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", *sorted(DOCS.glob("*.md")), DOCS / "results" / "README.md")
BLOCK = re.compile(r"(<!-- (paper\.json|results|comparison): (\w+) -->\n).*?(<!-- end of \2 -->)", re.DOTALL)
# A quantity as the paper names it, its key in our results, its places.
MEASURED = (
    ("bytes per token", "bytes_per_token", 3),
    ("entropy H", "entropy_bits", 4),
    ("redundancy", "redundancy", 4),
)
ALGORITHMS = ("BPE", "Scaffold-BPE")
# The texts of docs/results/vocabulary_sizes, each with its file.
SIZES = {"English documentation": "english_documentation", "MDN web docs, German": "mdn_de"}
TABLES: dict[str, Callable[[], str]] = {
    "figures": figures_table,
    "BLEU": lambda: figures_table("BLEU"),
    "language_models": language_models_table,
    "sizes": lambda: sizes_table(),
}


def sizes_table() -> str:
    """What compare-vocab --sizes measures: the paper's figures, and ours on other texts, one row per text and N."""
    paper = read_paper()
    rows = [
        [
            "text",
            "N",
            *("gain, %", "scaffold, %"),
            *(f"{name}, {algorithm}" for name, *_ in MEASURED for algorithm in ALGORITHMS),
        ]
    ]
    for gain in paper.gains:
        share = paper.scaffold_share
        cells = [gain.percent, share.percent if (share.text, share.symbols) == (gain.text, gain.symbols) else ""]
        symbols = paper.texts[gain.text].symbols
        for quantity, _, _ in MEASURED:
            found = [each for each in paper.figures if each.text == gain.text and each.quantity.startswith(quantity)]
            cells += [found[0].bpe, found[0].scaffold] if found and symbols == [gain.symbols] else ["", ""]
        rows.append([f"{gain.text} (the paper)", f"{gain.symbols:,}", *cells])
    for text, name in SIZES.items():
        for row in json.loads((DOCS / "results" / "vocabulary_sizes" / f"{name}.json").read_text(encoding="utf-8")):
            cells = [f"{100 * row['gain']:.2f}", f"{100 * row['scaffold_share_of_bpe']:.2f}"]
            cells += [f"{row[kind][key]:.{places}f}" for _, key, places in MEASURED for kind in ("bpe", "scaffold")]
            rows.append([text, f"{row['symbols']:,}", *cells])
    return format_table(rows, markdown=True)


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


def bleu_table(experiment: str) -> str:
    """BLEU of two systems on each test set of an experiment, and their difference, as a Markdown table."""
    found = json.loads((DOCS / "results" / experiment / "comparison.json").read_text(encoding="utf-8"))
    rows = [["test set", *ALGORITHMS, "difference, 95 % interval"]]
    for baseline, system in zip(found["rows"][::2], found["rows"][1::2], strict=True):
        bleu = [each["scores"]["bleu"] for each in (baseline, system)]
        scores = [f"{each['mean']:.2f} ± {each['sd']:.2f}" for each in bleu]
        effect = system["tests"]["bleu"]
        interval = f"{effect['difference']:+.2f}, {effect['low']:+.2f} to {effect['high']:+.2f}"
        rows.append([baseline["test_set"], *scores, interval.replace("-", "−")])
    return format_table(rows, markdown=True, figures=False)


def len_or_number(tokens: list[object] | int) -> int:
    """How many tokens: the published statistics have counts in place of the lists."""
    return tokens if isinstance(tokens, int) else len(tokens)


def with_tables(text: str) -> str:
    """A page of the documentation with its tables as the data files have them."""

    def written(match: re.Match[str]) -> str:
        ours = {"results": our_table, "comparison": bleu_table}
        table = ours[match[2]](match[3]) if match[2] in ours else TABLES[match[3]]()
        return f"{match[1]}{table}{match[4]}"

    return BLOCK.sub(written, text)


if __name__ == "__main__":
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        after = with_tables(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(page)
