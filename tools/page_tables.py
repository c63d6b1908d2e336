"""Write tables of stored figures into the pages, each between ``<!-- KIND: NAME -->`` and ``<!-- end of KIND -->``.

The paper's come from tools/paper.json, ours from the folder NAME of docs/results (of several, for contrasts).
"""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

from mt_scaffold.tables import format_table

ROOT = Path(__file__).resolve().parent.parent
PAPER = json.loads(Path(__file__).with_name("paper.json").read_text(encoding="utf-8"))
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("results/**/*.md")))


def papers_figures() -> list[list[str]]:
    """Return the paper's figures, of original BPE and of Scaffold-BPE."""
    rows = [["quantity", "text", "N", "original BPE", "Scaffold-BPE", "from"]]
    for figure in PAPER["figures"]:
        symbols = " or ".join(f"{number:,}" for number in PAPER["texts"][figure["text"]]["symbols"])
        rows.append([figure["quantity"], figure["text"], symbols, figure["bpe"], figure["scaffold"], figure["place"]])
    return rows


def comparison(experiment: str, bits: bool = False) -> list[list[str]]:
    """Return BLEU of two systems on each test set, and their difference, with ``bits`` also in bits per byte."""
    found = json.loads((DOCS / "results" / experiment / "comparison.json").read_text(encoding="utf-8"))
    rows = [["test set", "BPE", "Scaffold-BPE", "difference, 95 % interval"]]
    rows[0] += ["bits per byte: difference, 95 % interval"] if bits else []
    for baseline, system in zip(found["rows"][::2], found["rows"][1::2], strict=True):
        bleu = [each["scores"]["bleu"] for each in (baseline, system)]
        row = [baseline["test_set"], *(f"{each['mean']:.2f} ± {each['sd']:.2f}" for each in bleu)]
        for metric, digits in (("bleu", 2), ("reference_bits_per_byte", 4))[: 1 + bits]:
            row.append(_effect([system["tests"][metric][name] for name in ("difference", "low", "high")], digits))
        rows.append(row)
    return rows


def named_comparisons(experiment: str) -> list[list[str]]:
    """Return the comparisons that were named on the primary measure, in BLEU, chrF and bits per byte."""
    stored = (DOCS / "results" / experiment / "named-comparisons.txt").read_text(encoding="utf-8")
    found: dict[str, list[list[str]]] = {}
    for line in stored.splitlines():
        cells = [cell.strip() for cell in line.replace("under", "<").replace("-", "−").split("|")]
        if cells[1:2] == ["mean of 3 (primary)"]:
            found.setdefault(cells[2], []).append([f"{cells[5]}, {cells[6]}", cells[9], cells[3]])
    interval = "95 % interval"
    rows = [
        ["comparison", "trainings", f"BLEU, {interval}", "p, Holm", f"chrF, {interval}", f"bits per byte, {interval}"]
    ]
    return [*rows, *([name, bleu[2], *bleu[:2], chrf[0], bits[0]] for name, (bleu, chrf, bits) in found.items())]


def contrasts(experiments: str) -> list[list[str]]:
    """Return how much better trained removed and new tokens are than others, from what studies.undertrained printed."""
    rows = [["study", "removed − peers (matched)", "new − peers (matched)", "new − removed (not matched)"]]
    for experiment in experiments.split():
        stored = (DOCS / "results" / experiment / "undertrained.txt").read_text(encoding="utf-8")
        lines = ([cell.strip() for cell in line.replace("-", "−").split("|")[1:-1]] for line in stored.splitlines())
        rows += [[experiment, *cells] for name, *cells in filter(None, lines) if name == "percentile"]
    return rows


def bits_per_byte(experiment: str) -> list[list[str]]:
    """Return the bits per byte of BPE's language models, and the differences of the other two systems."""
    with open(DOCS / "results" / experiment / "comparison.csv", encoding="utf-8", newline="") as file:
        stored = {(row["group"], row["test_set"], row["system"]): row for row in csv.DictReader(file)}
    effect = "difference, 95 % interval"
    rows = [["after, test set", "BPE", f"Scaffold-BPE: {effect}", "p, Holm", f"control: {effect}", "p, Holm"]]
    for (group, test, system), bpe in stored.items():
        if system == "bpe":
            row = [f"{group.replace('_', ' ')}, {test}", "{:.4f} ± {:.4f}".format(*_floats(bpe, "mean", "sd"))]
            for other in ("scaffold", "control"):
                *effects, p = _floats(stored[group, test, other], "difference", "low", "high", "p_holm")
                row += [_effect(effects, 4), "< 0.001" if p < 0.001 else f"{p:.3f}"]
            rows.append(row)
    return rows


def _floats(row: dict[str, str], *names: str) -> list[float]:
    return [float(row[f"bits_per_byte_{name}"]) for name in names]


def _effect(difference_and_interval: list[float], digits: int) -> str:
    difference, low, high = difference_and_interval
    return f"{difference:+.{digits}f}, {low:+.{digits}f} to {high:+.{digits}f}".replace("-", "−")


def _shown(rows: list[list[str]]) -> str:
    return format_table(rows, markdown=True, figures=False)


TABLES: dict[str, Callable[[str], str]] = {
    "paper.json": lambda _: _shown(papers_figures()),
    "comparison": lambda name: _shown(comparison(name)),
    "original test sets": lambda name: _shown([row for row in comparison(name) if not row[0].endswith("typos")]),
    "comparison with bits": lambda name: _shown(comparison(name, bits=True)),
    "named comparisons": lambda name: _shown(named_comparisons(name)),
    "named comparison with dropout": lambda name: _shown([named_comparisons(name)[row] for row in (0, 2)]),
    "contrasts": lambda names: _shown(contrasts(names)),
    "bits per byte": lambda name: _shown(bits_per_byte(name)),
}
BLOCK = re.compile(rf"(<!-- ({'|'.join(map(re.escape, TABLES))}): ([\w ]+) -->\n).*?(<!-- end of \2 -->)", re.DOTALL)


def with_tables(text: str) -> str:
    """Return a page of the documentation with its tables updated from the data files."""
    return BLOCK.sub(lambda match: f"{match[1]}{TABLES[match[2]](match[3])}{match[4]}", text)


if __name__ == "__main__":
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        after = with_tables(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(page)
