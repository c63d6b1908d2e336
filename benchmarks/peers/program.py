"""Shared by the programs of the peers: their command line, and segmenting a text in batches of lines."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable

BATCH = 20_000


def segment_in_batches(corpus: str, output: str, segment: Callable[[list[str]], Iterable[list[str]]]) -> None:
    """Write the subwords of each line, separated by spaces."""
    with open(corpus, encoding="utf-8", newline="\n") as lines, open(output, "w", encoding="utf-8") as out:
        while batch := [line.rstrip("\n") for line in itertools.islice(lines, BATCH)]:
            out.writelines(" ".join(subwords) + "\n" for subwords in segment(batch))


def main(learn: Callable[[str, str, int], None], apply: Callable[[str, str, str], None]) -> None:
    """Run ``learn CORPUS MODEL SIZE`` or ``apply CORPUS MODEL OUTPUT``."""
    task, corpus, model, argument = sys.argv[1:]
    if task == "learn":
        learn(corpus, model, int(argument))
    else:
        apply(corpus, model, argument)
