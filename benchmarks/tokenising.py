"""Time tokenising per core, and compare it line by line with sacremoses' rules applied to each line.

    python benchmarks/tokenising.py --language de TEXT... [--lines 1000000] [--shuffle SEED] [--every 1]

Each text (plain or .gz, one sentence per line) is read into memory and tokenised by one process that starts with
empty caches, as a worker does, and again by sacremoses as it comes (every ``--every``-th line). Prints one row of a
Markdown table per text: microseconds per line both ways, and which share of pieces and lines needed the rules. Exits
with status 1 where a line differs.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import open_input
from mt_scaffold.experiment.data import moses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--language", required=True)
    parser.add_argument("--lines", type=int, help="take only the first N lines of each text")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="shuffle the lines")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="compare every Nth line")
    options = parser.parse_args()
    print("| text | lines | words a line | by rules, µs | µs | ratio | new pieces | new shapes | lines by rules |")
    print("|---|---|---|---|---|---|---|---|---|")
    different = sum(measure(text, options) for text in options.texts)
    sys.exit(1 if different else 0)


def measure(text: Path, options: argparse.Namespace) -> int:
    """Print the row of one text; return how many of its lines differ."""
    with open_input(text) as stream:
        lines = [line.decode("utf-8") for line in itertools.islice(stream, options.lines)]
    if options.shuffle is not None:
        random.Random(options.shuffle).shuffle(lines)
    tokeniser = moses.Tokeniser(options.language)
    start = time.process_time()
    tokenised = list(map(tokeniser, lines))
    fast = (time.process_time() - start) / len(lines)
    rules = moses.Rules(options.language)
    compared = range(0, len(lines), options.every)
    start = time.process_time()
    expected = [rules(lines[place]) for place in compared]
    slow = (time.process_time() - start) / len(compared)
    different = [place for place, words in zip(compared, expected, strict=True) if tokenised[place] != words]
    for place in different[:10]:
        print(f"{text}: line {place + 1}: {lines[place]!r}", file=sys.stderr)
    words = sum(line.count(" ") + bool(line) for line in tokenised)
    counts = " | ".join(f"{share:.2%}" for share in shares(lines, options.language))
    print(
        f"| {text.name} | {len(lines):,} | {words / len(lines):.1f} | {slow * 1e6:.1f} | {fast * 1e6:.2f} | "
        f"{slow / fast:.1f} | {counts} |",
        flush=True,
    )
    print(f"{text}: {len(different)} of {len(compared)} lines differ", file=sys.stderr)
    return len(different)


def shares(lines: list[str], language: str) -> tuple[float, float, float]:
    """Return the share of pieces not met before, of those of a shape not met before, of lines that need every rule."""
    counted = {"piece": 0, "shape": 0, "line": 0}

    def counting(name: str, function: Any) -> Any:
        def counted_function(*arguments: Any) -> Any:
            counted[name] += 1
            return function(*arguments)

        return counted_function

    tokeniser = moses.Tokeniser(language)
    tokeniser._rules = counting("line", tokeniser._rules)

    class Pieces(moses._Pieces):
        __missing__ = counting("piece", moses._Pieces.__missing__)
        _in_context = counting("shape", moses._Pieces._in_context)

    tokeniser._pieces.__class__ = Pieces
    for line in lines:
        tokeniser(line)
    pieces = sum(line.count(" ") + 1 for line in lines)
    return counted["piece"] / pieces, counted["shape"] / pieces, counted["line"] / len(lines)


if __name__ == "__main__":
    main()
