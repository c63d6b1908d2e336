"""Count, learn from and encode 10 GB of generated JSONL, and print the time, speed and peak memory of each step.

    python benchmarks/ten_gigabytes.py FOLDER [--gigabytes 10] [--shards 20] [--memory 1500M] [--symbols 32000]

FOLDER takes the text and, besides, about half as much for the ids. What is there already is used; remove it by hand.

The text has words of random syllables with Zipfian frequencies (exponent 1.05, Mandelbrot's offset 2.7), one in 85
of them joined to the next one, which gives new words for ever, as compounds and names do. Documents have 400
words in the middle (log-normal). It is the same for the same seed and number of shards.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy

TYPES = 500_000
EXPONENT, OFFSET = 1.05, 2.7
# Ranks are drawn from this many equal parts of the whole frequency.
PARTS = 1 << 22
ONSETS = "b br ch d dr f fl g gr h j k kl l m n p pr qu r s sch sp st t tr v w z".split()
VOWELS = "a a a e e e e i i i o o u u ä ö ü ei au ie ea ou".split()
CODAS = ["", "", "", "n", "n", "r", "s", "t", "l", "m", "ng", "nd", "st", "ck", "rt", "tion"]
# What follows a word, how often in 256 times; a capital follows a full stop.
ENDINGS = {" ": 221, ", ": 13, ". ": 11, ".\\n\\n": 2, "; ": 2, " (": 2, ") ": 2, "": 3}
MEDIAN, SPREAD = 400, 0.9
BATCH = 500_000
BEGIN, BETWEEN, LAST = '{"text": "', '."}\n{"text": "', '."}\n'
END = "<|endoftext|>"


class Pieces(NamedTuple):
    """Strings as arrays: their bytes, one after the other, and where each begins and how long it is."""

    text: numpy.ndarray[Any, Any]
    starts: numpy.ndarray[Any, Any]
    sizes: numpy.ndarray[Any, Any]


def words_by_rank() -> list[str]:
    """The frequent words are short; each is unique."""
    draw = numpy.random.default_rng(5)
    words: dict[str, None] = {}
    while len(words) < TYPES:
        count = min(TYPES, 1000 + 2 * len(words)) - len(words)
        syllables = 1 + draw.poisson(0.11 * numpy.log2(1 + len(words)), count).clip(max=5)
        onsets, vowels = (
            iter(draw.integers(len(parts), size=int(syllables.sum())).tolist()) for parts in (ONSETS, VOWELS)
        )
        for number, coda in zip(syllables.tolist(), draw.integers(len(CODAS), size=count).tolist(), strict=True):
            word = "".join([ONSETS[next(onsets)] + VOWELS[next(vowels)] for _ in range(number)])
            words.setdefault(word + CODAS[coda])
    return list(words)


@cache
def pieces() -> Pieces:
    """Words, words with a capital, endings, and what is between two documents."""
    words = words_by_rank()
    strings = [each.encode() for each in (*words, *(word.capitalize() for word in words), *ENDINGS, BETWEEN)]
    sizes = numpy.array([len(each) for each in strings], dtype=numpy.int32)
    starts = numpy.cumsum(sizes, dtype=numpy.int32) - sizes
    return Pieces(numpy.frombuffer(b"".join(strings), dtype=numpy.uint8), starts, sizes)


@cache
def parts() -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
    """The first rank of each part, and how many there are in it."""
    weights = (numpy.arange(TYPES) + 1 + OFFSET) ** -EXPONENT
    ends = numpy.cumsum(weights) / weights.sum()
    edges = numpy.searchsorted(ends, numpy.arange(PARTS + 1) / PARTS).clip(max=TYPES - 1)
    return edges[:-1].astype(numpy.int32), (numpy.diff(edges) + 1).astype(numpy.float32)


def documents(draw: numpy.random.Generator) -> bytes:
    """Some documents, without the beginning of the first one and the end of the last one."""
    first, many = parts()
    chosen = draw.integers(PARTS, size=BATCH, dtype=numpy.uint32)
    ranks = first[chosen] + (draw.random(BATCH, dtype=numpy.float32) * many[chosen]).astype(numpy.int32)
    ending = numpy.repeat(numpy.arange(len(ENDINGS), dtype=numpy.int32), list(ENDINGS.values()))[
        draw.integers(256, size=BATCH, dtype=numpy.uint8)
    ]
    last = numpy.cumsum(1 + draw.lognormal(numpy.log(MEDIAN), SPREAD, size=BATCH // 100).astype(numpy.int64))
    ending[last[last < BATCH]] = len(ENDINGS)
    stops = numpy.array([*(each.startswith(".") for each in ENDINGS), True])[ending]
    used = numpy.empty(2 * BATCH, dtype=numpy.int32)
    used[0::2] = ranks
    used[2::2] += TYPES * stops[:-1]
    used[0] += TYPES
    used[1::2] = 2 * TYPES + ending
    text, starts, sizes = pieces()
    length = sizes[used]
    shift = starts[used] - (numpy.cumsum(length, dtype=numpy.int32) - length)
    where = numpy.repeat(shift, length)
    where += numpy.arange(len(where), dtype=numpy.int32)
    return bytes(text[where])


def write_shard(path: Path, size: int, seed: int) -> int:
    """Write documents of at least ``size`` bytes; return how many bytes there are."""
    if path.exists():
        return path.stat().st_size
    draw = numpy.random.default_rng(seed)
    part = path.with_name(f".{path.name}")
    with open(part, "wb") as stream:
        stream.write(BEGIN.encode())
        while stream.tell() < size:
            stream.write(documents(draw) + BETWEEN.encode())
        stream.seek(-len(BETWEEN.encode()), os.SEEK_END)
        stream.truncate()
        stream.write(LAST.encode())
    part.rename(path)
    return path.stat().st_size


class Step(NamedTuple):
    """A command that has run: seconds, those of all its threads on processors, its peak in bytes, its last line."""

    name: str
    seconds: float
    processor: float
    peak: int
    said: str


def run(name: str, arguments: list[str]) -> Step:
    """Run mt-scaffold; its memory is that of the process, with what it has mapped."""
    print(f"$ mt-scaffold {' '.join(arguments)}", file=sys.stderr, flush=True)
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "mt_scaffold", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{name}: {said}")
    processor = usage.ru_utime + usage.ru_stime
    last = (said.strip().splitlines() or [""])[-1]
    return Step(name, time.perf_counter() - start, processor, usage.ru_maxrss * 1024, last)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--shards", type=int, default=20)
    parser.add_argument("--memory", default="1500M", help="for counting")
    parser.add_argument("--prune", type=int, default=5, help="for learning")
    parser.add_argument("--symbols", type=int, default=32000)
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--generate", action="store_true", help="only write the text")
    options = parser.parse_args()
    text = options.folder / "text"
    text.mkdir(parents=True, exist_ok=True)
    size = int(options.gigabytes * 1e9 / options.shards)
    paths = [text / f"{number:03}.jsonl" for number in range(options.shards)]
    with ProcessPoolExecutor(options.cores) as pool:
        total = sum(pool.map(write_shard, paths, [size] * len(paths), range(len(paths))))
    if options.generate:
        return
    counts, codes, ids = (f"{options.folder}/{name}" for name in ("words.counts", "codes", "ids/"))
    threads = ["--num-workers", str(options.cores)]
    words = ["--pretokenise", "gpt2"]
    limit = ["--max-memory", options.memory]
    inputs = ["--input", f"{text}/*.jsonl"]
    load = os.getloadavg()[0]
    steps = [
        run("count", ["count-words", *inputs, *words, *limit, *threads, "--output", counts]),
        run(
            "learn",
            [
                *("learn-bpe", "--counts", counts, "--symbols", str(options.symbols), *limit),
                *("--prune", str(options.prune), *threads, "--output", codes),
            ],
        ),
        run("encode", ["encode", "--codes", codes, *inputs, "--append", END, *threads, "--output", ids]),
        run("check", ["encode", "--codes", codes, "--output", ids, "--check"]),
    ]
    with open(counts, "rb") as stream:
        stream.seek(-100, os.SEEK_END)
        _, types, tokens = stream.read().split()[-3:]
    print(f"{total / 1e9:.2f} GB of JSONL in {options.shards} files, {int(tokens):,} words, {int(types):,} distinct")
    print(f"{platform.processor() or platform.machine()}, {options.cores} cores, load before: {load:.1f}\n")
    print("| step | seconds | MB/s | processor seconds | peak memory |\n|---|---:|---:|---:|---:|")
    for step in steps:
        speed = total / 1e6 / step.seconds
        cells = f"{step.seconds:,.0f} | {speed:,.0f} | {step.processor:,.0f} | {step.peak / 1e9:.2f} GB"
        print(f"| {step.name} | {cells} |")
    print(f"\n{steps[1].said}\n{steps[-1].said}")


if __name__ == "__main__":
    main()
