"""Count the tokens that Scaffold-BPE removes and adds, in text that BPE-dropout segments.

python -m studies.dropout_frequencies NAME=FILE[,FILE...] ... [--symbols N ...] [--dropout P ...] [--seeds S ...]
    [--csv PATH] [--figure PATH]

FILE: words separated by spaces, plain or compressed; the files of a text share codes. For each N for which the text has
enough frequent pairs, BPE and Scaffold-BPE with N normal merged tokens are learned from it. Removed tokens are normal
in BPE alone, and counted in the text as BPE segments it; new tokens are normal in Scaffold-BPE alone, and counted as
Scaffold-BPE segments it. Counts with dropout are means over the seeds. The table shows the mean count per token, and
how many times as frequent the new ones are.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from mt_scaffold import BPE, Codes, count_words, learn
from mt_scaffold.corpus.files import write_text
from mt_scaffold.corpus.text import END_OF_WORD, SEPARATOR
from mt_scaffold.methods import PlainBPE, Scaffold
from mt_scaffold.tables import decimal, format_table
from studies import exit_status

MIN_FREQUENCY = 2
# The ticks of the figure.
RATIOS = (0.2, 0.5, 1, 2)


class Row(NamedTuple):
    """The counts of one text, N and dropout, as means over seeds.

    of_removed, of_new: the mean over tokens; median_removed, median_new: the median.
    """

    text: str
    symbols: int
    dropout: float
    seeds: int
    removed: int
    new: int
    of_removed: float
    of_new: float
    median_removed: float
    median_new: float


def counts_of(codes: Codes, files: Sequence[Path], tokens: Sequence[str], dropout: float, seed: int) -> list[int]:
    """Return how often each token occurs in the files, which ``codes`` segment with this dropout and seed."""
    bpe = BPE(codes)
    with tempfile.TemporaryDirectory() as folder:
        segmented = [Path(folder, str(number)) for number in range(len(files))]
        for number, (source, target) in enumerate(zip(files, segmented, strict=True)):
            bpe.process_file(source, target, dropout=dropout, seed=None if not dropout else 1000 * seed + number)
        found = dict(count_words(paths=segmented).byte_items())
    return [found.get(surface_of(token), 0) for token in tokens]


def surface_of(token: str) -> bytes:
    """Return a token of the codes file as segmented text writes it."""
    whole = token.endswith(END_OF_WORD)
    return (token.removesuffix(END_OF_WORD) if whole else token + SEPARATOR).encode()


def rows_of(
    name: str, files: Sequence[Path], symbols: int, dropouts: Sequence[float], seeds: Sequence[int]
) -> Iterator[Row]:
    """Yield a row for each dropout; none if the text has too few frequent pairs for N tokens."""
    both = [
        learn(paths=files, method=method).codes
        for method in (PlainBPE(symbols, MIN_FREQUENCY), Scaffold(symbols, MIN_FREQUENCY))
    ]
    normal = [set(codes.normal) for codes in both]
    if min(map(len, normal)) < symbols:
        return
    changed = [sorted(normal[0] - normal[1]), sorted(normal[1] - normal[0])]
    for dropout in dropouts:
        drawn = seeds if dropout else seeds[:1]
        means = []
        for codes, tokens in zip(both, changed, strict=True):
            by_seed = [counts_of(codes, files, tokens, dropout, seed) for seed in drawn]
            means.append([fmean(of_token) for of_token in zip(*by_seed, strict=True)])
        yield Row(name, symbols, dropout, len(drawn), *map(len, changed), *map(fmean, means), *map(median, means))


def table(rows: Sequence[Row]) -> str:
    """Return the mean counts as a Markdown table."""
    lines = [["text", "N", "removed", "new", "dropout", "count of removed", "count of new", "new / removed"]]
    for row in rows:
        counts = [decimal(value, 1) for value in (row.of_removed, row.of_new)]
        ratio = decimal(row.of_new / row.of_removed, 2) if row.of_removed else ""
        lines.append(
            [row.text, f"{row.symbols:,}", f"{row.removed:,}", f"{row.new:,}", f"{row.dropout:g}", *counts, ratio]
        )
    return format_table(lines, markdown=True)


def as_csv(rows: Sequence[Row]) -> str:
    """Return all figures as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Row._fields)
    writer.writerows([f"{value:.6g}" if isinstance(value, float) else value for value in row] for row in rows)
    return text.getvalue()


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw how many times as frequent the new tokens are, over N: a panel for each text, a line for each dropout."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(row.text for row in rows))
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dropout", "font.size": 9}):
        figure, panels = pyplot.subplots(1, len(names), squeeze=False, figsize=(1 + 3 * len(names), 3), sharey=True)
        for axes, name in zip(panels[0], names, strict=True):
            _draw_panel(axes, name, [row for row in rows if row.text == name])
        panels[0][0].set_ylabel("mean count, new / removed")
        panels[0][-1].legend(title="dropout", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)


def _draw_panel(axes: Any, name: str, rows: Sequence[Row]) -> None:
    for dropout, marker in zip(dict.fromkeys(row.dropout for row in rows), "os^Dv", strict=False):
        own = [row for row in rows if row.dropout == dropout and row.of_removed]
        ratios = [row.of_new / row.of_removed for row in own]
        axes.plot([row.symbols for row in own], ratios, marker=marker, label=f"{dropout:g}")
    sizes = sorted({row.symbols for row in rows})
    axes.axhline(1, color="#888888", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="N", title=name)
    axes.set_xticks(sizes, [f"{size / 1000:g}k" for size in sizes])
    axes.set_yticks(RATIOS, [f"{ratio:g}" for ratio in RATIOS])
    axes.minorticks_off()


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table; write the CSV and the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", metavar="NAME=FILE[,FILE...]")
    parser.add_argument("--symbols", nargs="+", type=int, default=[2000, 4000, 8000, 10000, 16000, 32000], metavar="N")
    parser.add_argument("--dropout", nargs="+", type=float, default=[0, 0.05, 0.1, 0.2], metavar="P")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], metavar="S")
    parser.add_argument("--csv", type=Path, metavar="PATH")
    parser.add_argument("--figure", type=Path, metavar="PATH")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for text in options.texts:
        name, equals, files = text.partition("=")
        if not name or not equals:
            parser.error(f"{text}: write NAME=FILE, or NAME=FILE,FILE")
        paths = [Path(each) for each in files.split(",")]
        for symbols in options.symbols:
            rows += rows_of(name, paths, symbols, options.dropout, options.seeds)
            print(f"{name}: N = {symbols:,}", file=sys.stderr)
    print(table(rows), end="")
    if options.csv:
        write_text(options.csv, as_csv(rows))
    if options.figure:
        draw(rows, options.figure)


if __name__ == "__main__":
    sys.exit(exit_status("studies.dropout_frequencies", main))
