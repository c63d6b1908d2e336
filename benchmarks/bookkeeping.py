"""Measure what scaffold bookkeeping costs: both learners make the same number of merges from the same word counts.

    python benchmarks/bookkeeping.py CORPUS SYMBOLS REPEAT

The words are counted before the clock starts, so that only the merging is timed. Prints JSON.
"""

from __future__ import annotations

import json
import sys
import time

from mt_scaffold.corpus.count import count_words
from mt_scaffold.methods import make_method
from mt_scaffold.methods.bpe import LearnedCodes


def timed(corpus: str, algorithm: str, symbols: int) -> tuple[float, LearnedCodes]:
    """The seconds that learning takes once the words are counted, and the codes."""
    counts = count_words(corpus, num_workers=2)
    start = time.perf_counter()
    learned: LearnedCodes = make_method(algorithm, symbols=symbols).learn(counts)
    return time.perf_counter() - start, learned


def main() -> None:
    corpus, symbols, repeat = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    # Scaffold-BPE makes more merges than it has normal tokens; let BPE make the same number.
    merges = timed(corpus, "scaffold", symbols)[1].merges
    seconds: dict[str, list[float]] = {"bpe": [], "scaffold": []}
    for _ in range(repeat):
        seconds["bpe"].append(timed(corpus, "bpe", merges)[0])
        seconds["scaffold"].append(timed(corpus, "scaffold", symbols)[0])
    json.dump({"merges": merges, "seconds": seconds}, sys.stdout)


if __name__ == "__main__":
    main()
