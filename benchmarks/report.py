"""Print benchmarks/out/results.json as a table, or store its figures.

python benchmarks/report.py            print the table
python benchmarks/report.py --write    also store figures and conditions in docs/results/benchmarks
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from systems import OUT

STORED = Path(__file__).resolve().parent.parent / "docs" / "results" / "benchmarks"
COLUMNS = ("part", "task", "system", "setting", "seconds", "least", "most", "runs", "cpu_seconds", "peak_mib")


def rows(results: dict[str, Any]) -> list[list[str]]:
    """Return the cells of COLUMNS for every measurement: medians of seconds, and the largest peak of memory."""
    found = []
    for one in results["measured"]:
        seconds = (statistics.median(one["seconds"]), min(one["seconds"]), max(one["seconds"]))
        cells = [*(one[name] for name in COLUMNS[:4]), *(f"{each:.2f}" for each in seconds), str(len(one["seconds"]))]
        found.append([*cells, f"{statistics.median(one['cpu_seconds']):.2f}", f"{max(one['peak_mib']):.0f}"])
    return found


def table(results: dict[str, Any]) -> str:
    """Return the conditions and all measurements as text with aligned columns."""
    lines = [[*COLUMNS], *rows(results)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    aligned = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join([*conditions(results), "", *(line.rstrip() for line in aligned)]) + "\n"


def conditions(results: dict[str, Any]) -> list[str]:
    """Return the date, machine, corpus and versions of the measurements, missing systems and failures."""
    machine, corpus = results["machine"], results["corpus"]
    megabytes = corpus["bytes"] / 1e6
    about = (
        f"Measured on {results['date']}: {machine['processor']}, {min(results['threads'], machine['cores_used'])} of "
        f"{machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}; load at start "
        f"{machine['load_at_start']}. Corpus: {corpus['name']}, {megabytes:{',.0f' if megabytes >= 10 else '.2g'}} MB, "
        f"{corpus['lines']:,} lines, SHA-256 {corpus['sha256'][:16]}…; {results['repeat']} rounds, "
        f"{results['minutes']} minutes."
    )
    parts = [about, "Versions: " + ", ".join(f"{name} {each}" for name, each in results["versions"].items()) + "."]
    parts += [f"{name} could not be installed and was left out: {why}" for name, why in results["missing"].items()]
    return [*parts, *(f"Failed: {failure}" for failure in results["failed"])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="store the figures in docs/results/benchmarks")
    options = parser.parse_args()
    path = OUT / "results.json"
    if not path.exists():
        print("benchmarks: no results yet; run make bench", file=sys.stderr)
        return 1
    results = json.loads(path.read_text(encoding="utf-8"))
    print(table(results))
    if options.write:
        with open(STORED / "measured.csv", "w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows(results)])
        (STORED / "conditions.txt").write_text("\n\n".join(conditions(results)) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
