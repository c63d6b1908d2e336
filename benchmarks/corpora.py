"""Generate the corpora of the benchmarks from a fixed seed, so that all machines measure the same bytes.

python benchmarks/corpora.py text OUT [--megabytes 72]     prose of an invented language
python benchmarks/corpora.py repeat OUT --times 8 --of FILE
"""

from __future__ import annotations

import argparse
import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

SEED = 1
WORDS_OF_LINE = 15

ONSETS = "b d f g h k l m n r s t v z sch kr tr gl br st".split()
VOWELS = "a e i o u ei au ie ä ö ü".split()
CODAS = ["", "", "", "n", "r", "l", "m", "s", "ß", "cht", "nk", "rt"]
ENDINGS = ["", "", "en", "e", "er", "es", "t", "st", "ung", "lich", "keit", "ungen"]


def prose(megabytes: int) -> Iterator[str]:
    """Yield lines of an inflecting language with compounds, whose word forms follow Zipf's law.

    72 MB contain 15 million words of 180,000 types, about as many as 72 MB of technical German prose.
    """
    rng = Random(SEED)
    stems = list(
        dict.fromkeys(
            "".join(
                rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS) for _ in range(rng.choice((1, 1, 2, 2, 3)))
            )
            for _ in range(12_000)
        )
    )
    forms: dict[str, None] = dict.fromkeys([",", ".", "(", ")", '"', ":", "-"])
    while len(forms) < 200_000:
        # Squaring the random number favours the front of the list: some stems become frequent.
        stem = stems[int(rng.random() ** 2 * len(stems))]
        if rng.random() < 0.4:
            stem = stem.capitalize()
            while rng.random() < 0.35:
                stem += rng.choice(("", "s", "n")) + stems[int(rng.random() ** 2 * len(stems))]
        forms[stem + rng.choice(ENDINGS)] = None
    # Frequent words tend to be short.
    words = sorted(forms, key=lambda form: len(form) + 12 * rng.random())
    weights = list(itertools.accumulate((rank + 3) ** -1.25 for rank in range(len(words))))
    written, limit = 0, megabytes * 1_000_000
    while written < limit:
        line = " ".join(rng.choices(words, cum_weights=weights, k=WORDS_OF_LINE)) + "\n"
        written += len(line.encode())
        yield line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("text", "repeat"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=int, default=72)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--of", type=Path)
    options = parser.parse_args()
    unfinished = options.out.with_suffix(".part")
    if options.kind == "repeat":
        with unfinished.open("wb") as stream:
            for _ in range(options.times):
                with options.of.open("rb") as source:
                    shutil.copyfileobj(source, stream)
                    source.seek(-1, 2)
                    if source.read() != b"\n":
                        stream.write(b"\n")
    else:
        with unfinished.open("w", encoding="utf-8", newline="\n") as text:
            text.writelines(prose(options.megabytes))
    unfinished.replace(options.out)


if __name__ == "__main__":
    main()
