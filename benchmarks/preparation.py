"""Time the preparation of a corpus, step by step: raw text → words → codes → dictionary → binarised.

    python benchmarks/preparation.py [--pairs 1000000] [--workers 2] [--symbols 32000] [--folder DIR] [--with-fairseq]

The corpus is generated in mt-scaffold's invented languages. Each step is the command that the workflow calls, run on
its own; seconds are wall-clock. Prints a Markdown table. With --with-fairseq, fairseq-preprocess then makes one of the
data folders from the text of the subwords; its files are compared byte for byte, and its time with that of binarise.
"""

from __future__ import annotations

import argparse
import filecmp
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OWN = "learn, dictionary, binarise"
CONFIG = """\
name: preparation
languages: {{source: qaa, target: qab}}
data: {{synthetic: {{pairs: {pairs}, valid: 500, test: 500, seed: 1}}}}
codes: {{symbols: {symbols}}}
systems: {{bpe: {{algorithm: bpe}}}}
baseline: bpe
train: {{options: {{}}}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--symbols", type=int, default=32_000)
    parser.add_argument("--with-fairseq", action="store_true", help="run fairseq-preprocess, too")
    parser.add_argument("--folder", type=Path, help="work here and keep all files (default: a temporary folder)")
    options = parser.parse_args()
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        prepare(options.folder, options)
        return
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), options)


def prepare(folder: Path, options: argparse.Namespace) -> None:
    (folder / "config.yaml").write_text(CONFIG.format(pairs=options.pairs, symbols=options.symbols))
    workers = ["--num-workers", options.workers]
    languages = ("qaa", "qab")
    (folder / "words").mkdir(exist_ok=True)
    timed(folder, "generate", "get-data", "--config", folder / "config.yaml", "--output-dir", folder / "raw")
    seconds: dict[str, float] = {}

    def step(name: str, *arguments: object) -> None:
        seconds[name] = seconds.get(name, 0.0) + timed(folder, name, *arguments)

    for part in ("train", "valid", "test"):
        for language in languages:
            files = ["--input", folder / "raw" / f"{part}.{language}"]
            files += ["--output", folder / "words" / f"{part}.{language}.gz"]
            step("tokenise", "tokenise", "--language", language, *files, *workers)
        sides = [folder / "words" / f"{part}.{language}" for language in languages]
        arguments = ["--source", f"{sides[0]}.gz", "--target", f"{sides[1]}.gz", "--max-ratio", 3]
        step("clean", "clean", *arguments, "--output-source", sides[0], "--output-target", sides[1])
    trained_on = [folder / "words" / f"train.{language}" for language in languages]
    languages_given = ["--source-lang", languages[0], "--target-lang", languages[1]]
    for algorithm in ("bpe", "scaffold"):
        codes, folders = folder / f"{algorithm}.codes", folder / algorithm
        settings = ["--algorithm", algorithm, "--symbols", options.symbols, *workers]
        step(f"learn, {algorithm}", "learn-bpe", *settings, "--input", *trained_on, "--output", codes)
        arguments = [*languages_given, "--train", folder / "words" / "train", "--codes", codes, *workers]
        step(f"dictionary, {algorithm}", "dictionary", *arguments, "--output", folders / "dictionaries")
        arguments += ["--valid", folder / "words" / "valid", "--test", folder / "words" / "test"]
        arguments += ["--dictionaries", folders / "dictionaries", "--output", folders / "binarised"]
        step(f"binarise, {algorithm}", "binarise", *arguments)
    if options.with_fairseq:
        compare_with_fairseq(folder, "bpe", languages, options.workers, seconds)

    whole = sum(seconds.values())
    own = sum(number for name, number in seconds.items() if name.split(",")[0] in OWN.split(", "))
    print(f"\n{options.pairs:,} generated pairs, {options.symbols:,} symbols, {options.workers} workers.\n")
    print("| step | seconds | share |\n|---|---|---|")
    for name, number in seconds.items():
        print(f"| {name} | {number:.1f} | {number / whole:.1%} |")
    print(f"| **all** | {whole:.1f} | |\n| **our own: {OWN}** | {own:.1f} | {own / whole:.1%} |")


def compare_with_fairseq(
    folder: Path, system: str, languages: tuple[str, str], workers: int, seconds: dict[str, float]
) -> None:
    """Binarise the text of the subwords with fairseq-preprocess; print how its time and its files compare."""
    subwords = folder / "subwords"
    subwords.mkdir(exist_ok=True)
    for part in ("train", "valid", "test"):
        for language in languages:
            files = ["--input", folder / "words" / f"{part}.{language}", "--output", subwords / f"{part}.{language}"]
            timed(folder, "apply", "apply-bpe", "--codes", folder / f"{system}.codes", *files)
    arguments: list[object] = ["--source-lang", languages[0], "--target-lang", languages[1], "--joined-dictionary"]
    arguments += ["--trainpref", subwords / "train", "--validpref", subwords / "valid", "--testpref", subwords / "test"]
    arguments += ["--destdir", folder / "fairseq", "--workers", workers]
    taken = timed(folder, "fairseq-preprocess", *arguments, module="fairseq_cli.preprocess")
    own = seconds[f"dictionary, {system}"] + seconds[f"binarise, {system}"]
    theirs = sorted(path for path in (folder / "fairseq").iterdir() if path.suffix in (".bin", ".idx", ".txt"))
    same = [filecmp.cmp(path, folder / system / "binarised" / path.name, shallow=False) for path in theirs]
    print(
        f"fairseq-preprocess takes {taken:.1f} s for {system}, dictionary and binarise {own:.1f} s: {taken / own:.1f}x"
    )
    print(f"{sum(same)} of its {len(theirs)} files are the same, byte for byte")


def timed(folder: Path, name: str, *arguments: object, module: str = "mt_scaffold") -> float:
    """Run one command with its output in a log; return its seconds."""
    with open(folder / "log", "ab") as log:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", module, *map(str, arguments)], check=True, stdout=log, stderr=log)
    taken = time.perf_counter() - start
    print(f"{name}: {taken:.1f} s", file=sys.stderr, flush=True)
    return taken


if __name__ == "__main__":
    main()
