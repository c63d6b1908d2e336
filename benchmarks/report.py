"""Turn benchmarks/out/results.json into tables, a verdict on each aim, and a plot.

python benchmarks/report.py            print the tables
python benchmarks/report.py --write    also store the figures, conditions and plot in docs/results/benchmarks
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from systems import (
    BPE,
    FASTBPE,
    GREEDY,
    OLD,
    OURS,
    OUT,
    PARITY,
    SCAFFOLD,
    SENTENCEPIECE,
    SUBWORD_NMT,
    TRIMMED,
    UNIFORM,
    UNIGRAM,
    WC,
    YOUTOKENTOME,
)

HERE = Path(__file__).resolve().parent
STORED = HERE.parent / "docs" / "results" / "benchmarks"
COLUMNS = ("part", "task", "system", "setting", "seconds", "least", "most", "runs", "cpu_seconds", "peak_mib")
TASKS = {"learn": "learn", "apply": "apply", "dropout": "apply with dropout"}

Results = dict[str, Any]
Record = dict[str, Any]


def records(results: Results, part: str, task: str | None = None) -> list[Record]:
    """Return the records of one part."""
    return [one for one in results["measured"] if one["part"] == part and task in (None, one["task"])]


def find(results: Results, part: str, task: str, system: str, setting: str = "") -> Record | None:
    """Return one record, or None if it was not measured."""
    for record in records(results, part, task):
        if record["system"] == system and record["setting"] == setting:
            return record
    return None


def seconds(record: Record | None) -> float | None:
    """Return the median of the wall-clock seconds."""
    return None if record is None else statistics.median(record["seconds"])


def memory(record: Record | None) -> float | None:
    """Return the largest peak, in MiB."""
    return None if record is None else max(record["peak_mib"])


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    """Return a quotient, or None if a figure is missing."""
    return None if numerator is None or not denominator else numerator / denominator


class Verdicts:
    """The aims, each with the measured figure and whether it is met."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, str]] = []

    def check(self, aim: str, figure: float | None, limit: float, unit: str, at_least: bool) -> None:
        """Record whether ``figure`` reaches ``limit`` (``at_least``) or stays within it."""
        if figure is None:
            self.lines.append((aim, "–", "not measured"))
            return
        met = figure >= limit if at_least else figure <= limit
        bound = "at least" if at_least else "at most"
        self.lines.append((aim, f"{figure:.3g}{unit} ({bound} {limit:.3g}{unit})", "met" if met else "NOT met"))


def verdicts(results: Results) -> list[tuple[str, str, str]]:
    """Return (aim, figures, "met", "NOT met" or "not measured") for each aim of the project on speed and memory."""
    verdict = Verdicts()
    peers = [
        one for one in records(results, "learn") if one["system"] not in (*OURS, PARITY, TRIMMED, UNIGRAM, WC, *OLD)
    ]
    fastest = min((statistics.median(one["seconds"]) for one in peers), default=None)
    leanest = min(
        (max(one["peak_mib"]) for one in peers if one["system"] in (YOUTOKENTOME, SENTENCEPIECE, FASTBPE)), default=None
    )
    for system in (BPE, SCAFFOLD):
        own = find(results, "learn", "learn", system)
        slow = seconds(find(results, "learn", "learn", SUBWORD_NMT))
        verdict.check(f"1. learn, {system}: speed-up over the fastest peer", ratio(fastest, seconds(own)), 5, "×", True)
        verdict.check(f"1. learn, {system}: speed-up over subword-nmt", ratio(slow, seconds(own)), 80, "×", True)
        if leanest is None:
            verdict.lines.append((f"1. learn, {system}: peak memory against the leanest peer", "–", "not measured"))
        else:
            verdict.check(
                f"1. learn, {system}: peak memory against the leanest peer", memory(own), leanest, " MiB", False
            )
    for system in (BPE, SCAFFOLD):
        own_seconds = seconds(find(results, "apply", "apply", system))
        for other, limit in ((FASTBPE, 8), (SUBWORD_NMT, 50)):
            quotient = ratio(seconds(find(results, "apply", "apply", other)), own_seconds)
            verdict.check(f"2. apply, {system}: speed-up over {other}", quotient, limit, "×", True)
        quotient = ratio(own_seconds, seconds(find(results, "apply", "apply", WC)))
        verdict.check(f"2. apply, {system}: time relative to wc", quotient, 1.5, "×", False)
    for system in (BPE, SCAFFOLD):
        task = TASKS["dropout"]
        quotient = ratio(
            seconds(find(results, "dropout", task, YOUTOKENTOME)), seconds(find(results, "dropout", task, system))
        )
        verdict.check(f"3. apply with dropout, {system}: speed-up over YouTokenToMe", quotient, 5, "×", True)
    for task, system in (("learn", BPE), ("learn", SCAFFOLD), ("apply", BPE)):
        once, eight = (find(results, "corpus_size", task, system, f"corpus ×{times}") for times in (1, 8))
        verdict.check(
            f"4. {task}, {system}: time on 8 times the corpus, relative to once",
            ratio(seconds(eight), seconds(once)),
            8.5,
            "×",
            False,
        )
        # The word types are the same; 10 % is allowed for buffers that fill only in the longer run.
        quotient = ratio(memory(eight), memory(once))
        verdict.check(
            f"4. {task}, {system}: peak memory on 8 times the corpus, relative to once", quotient, 1.1, "×", False
        )
    unique = [one for one in records(results, "unique") if one["system"] == BPE]
    peer = next((one for one in records(results, "unique") if one["system"] == FASTBPE), None)
    own_record = find(results, "unique", "apply", BPE, peer["setting"]) if peer else None
    verdict.check(
        "4. apply to words that never recur: time relative to fastBPE",
        ratio(seconds(own_record), seconds(peer)),
        1,
        "×",
        False,
    )
    if len(unique) > 1:
        quotient = ratio(memory(unique[-1]), memory(unique[-2]))
        verdict.check(
            "4. apply to words that never recur: peak memory on twice the words, relative to once",
            quotient,
            1.1,
            "×",
            False,
        )
    words = records(results, "long_word")
    slowest = max((statistics.median(one["seconds"]) for one in words), default=None)
    verdict.check("5. apply to a word of 1,000,000 letters, slowest case", slowest, 2, " s", False)
    return verdict.lines


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table that is readable as plain text: the first column left-aligned, others right-aligned."""
    lines = [list(heading), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heading))]

    def row(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([row(lines[0]), f"| {' | '.join(rule)} |", *map(row, lines[1:])])


def figure(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def spread(record: Record) -> str:
    """Return the smallest and the largest seconds."""
    return f"{min(record['seconds']):.2f}–{max(record['seconds']):.2f}"


def summary_table(results: Results) -> str:
    """Return the median seconds of every system in every task."""
    found = {part: {one["system"]: one for one in records(results, part)} for part in TASKS}
    names = list(dict.fromkeys(name for part in found.values() for name in part))
    names = [name for name in names if name != WC] + ([WC] if WC in names else [])
    rows = [[name, *(figure(seconds(found[part].get(name))) for part in TASKS)] for name in names]
    return table(["median seconds", f"learn, {results['symbols']:,}", "apply", "apply, dropout 0.1"], rows)


def task_table(results: Results, part: str) -> str:
    """Return all measurements of one task, with times relative to mt_scaffold's BPE."""
    own = seconds(find(results, part, TASKS[part], BPE))
    rows = []
    for one in records(results, part):
        times = ratio(seconds(one), own)
        rows.append(
            [
                one["system"],
                figure(seconds(one)),
                spread(one),
                str(len(one["seconds"])),
                figure(statistics.median(one["cpu_seconds"])),
                "" if one["system"] == WC else figure(memory(one), 0),
                figure(times),
            ]
        )
    heading = [TASKS[part], "seconds", "range", "runs", "CPU s", "peak MiB", "relative to mt_scaffold, BPE"]
    return table(heading, rows)


def scaling_table(results: Results, part: str, first: str) -> str:
    """Return mt_scaffold's time and memory by the values of one setting."""
    rows = [
        [
            one["setting"],
            f"{one['task']}, {one['system'].removeprefix('mt_scaffold, ')}",
            figure(seconds(one)),
            spread(one),
            figure(memory(one), 0),
        ]
        for one in sorted(records(results, part), key=lambda one: (one["task"] != "learn", one["task"], one["system"]))
    ]
    return table([first, "task", "seconds", "range", "peak MiB"], rows)


def conditions(results: Results) -> list[str]:
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
    parts = [
        about,
        "Versions: " + ", ".join(f"{name} {version}" for name, version in results["versions"].items()) + ".",
    ]
    for name, reason in results["missing"].items():
        parts.append(f"{name} could not be installed and was left out: {reason}")
    return [*parts, *(f"Failed: {failure}" for failure in results["failed"])]


def as_text(results: Results) -> str:
    """Return all tables in Markdown."""
    parts = conditions(results)
    if any(records(results, part) for part in TASKS):
        parts += ["### Side by side", summary_table(results)]
        parts += [task_table(results, part) for part in TASKS if records(results, part)]
    scaling = {
        "corpus_size": ("Size of the corpus", "corpus"),
        "workers": ("Threads", "threads"),
        "vocabulary": ("Number of merges", "merges"),
        "unique": ("Random strings, all distinct", "corpus"),
        "long_word": ("One word of a million letters", "alphabet"),
    }
    for part, (title, first) in scaling.items():
        if records(results, part):
            parts += [f"### {title}", scaling_table(results, part, first)]
    parts += ["### Aims", table(["aim", "measured (required)", ""], verdicts(results))]
    return "\n\n".join(parts) + "\n"


def plot(results: Results, path: Path) -> None:
    """Draw the seconds of every system in every task, and mt_scaffold's time against the size of the corpus, as SVG."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "mt_scaffold", "font.size": 8})
    from matplotlib import pyplot

    shown = [part for part in TASKS if records(results, part)]
    scaled = records(results, "corpus_size")
    figure_, axes = pyplot.subplots(1, len(shown) + bool(scaled), figsize=(3.2 * (len(shown) + bool(scaled)), 2.8))
    axes = list(axes) if len(shown) + bool(scaled) > 1 else [axes]
    for part, axis in zip(shown, axes, strict=False):
        measured = sorted(records(results, part), key=lambda one: statistics.median(one["seconds"]), reverse=True)
        times = [statistics.median(one["seconds"]) for one in measured]
        names = [one["system"] for one in measured]
        own = [one["system"] in (*OURS, PARITY, TRIMMED, GREEDY, UNIFORM, UNIGRAM) for one in measured]
        bars = axis.barh(names, times, color=["#c0392b" if mine else "#95a5a6" for mine in own])
        axis.bar_label(bars, [f"{time:.1f}" if time >= 10 else f"{time:.2f}" for time in times], padding=2)
        axis.set_xscale("log")
        axis.set_xlim(min(times) / 2, max(times) * 4)
        axis.set_title(f"{TASKS[part]}, seconds")
    if scaled:
        axis = axes[-1]
        for task, system in dict.fromkeys((one["task"], one["system"]) for one in scaled):
            line = [one for one in scaled if (one["task"], one["system"]) == (task, system)]
            megabytes = [int(one["setting"].split("×")[1]) * results["corpus"]["bytes"] / 1e6 for one in line]
            label = f"{task}, {system.removeprefix('mt_scaffold, ')}"
            axis.plot(megabytes, [statistics.median(one["seconds"]) for one in line], marker="o", label=label)
        axis.set_xlabel("MB of text")
        axis.set_xlim(left=0)
        axis.set_ylim(bottom=0)
        axis.set_title("mt_scaffold, seconds")
        axis.legend(frameon=False)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure_.tight_layout()
    figure_.savefig(path, metadata={"Date": None})


def store(results: Results, folder: Path) -> None:
    """Write every figure as CSV, and the conditions of the measurements."""
    with open(folder / "measured.csv", "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for one in results["measured"]:
            times = [statistics.median(one["seconds"]), min(one["seconds"]), max(one["seconds"])]
            last = [f"{statistics.median(one['cpu_seconds']):.2f}", f"{memory(one):.0f}"]
            rows.writerow(
                [*(one[name] for name in COLUMNS[:4]), *(f"{time:.2f}" for time in times), len(one["seconds"]), *last]
            )
    (folder / "conditions.txt").write_text("\n\n".join(conditions(results)) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--write", action="store_true", help="store the figures and the plot in docs/results/benchmarks"
    )
    options = parser.parse_args()
    path = OUT / "results.json"
    if not path.exists():
        print("benchmarks: no results yet; run make bench", file=sys.stderr)
        return 1
    results = json.loads(path.read_text(encoding="utf-8"))
    print(as_text(results))
    if options.write:
        store(results, STORED)
        plot(results, STORED / "benchmarks.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
