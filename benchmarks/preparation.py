"""Time the preparation of a corpus, step by step: raw text → words → codes → subwords → binarised.

    python benchmarks/preparation.py [--pairs 1000000] [--workers 2] [--symbols 32000] [--folder DIR]

The corpus is generated in mt-scaffold's invented languages. Each step is the command that the workflow calls, run on
its own; seconds are wall-clock. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OWN = "learn, apply, dictionary"
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
    for name in ("words", "subwords"):
        (folder / name).mkdir(exist_ok=True)
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
    for algorithm in ("bpe", "scaffold"):
        codes, subwords = folder / f"{algorithm}.codes", folder / "subwords" / algorithm
        subwords.mkdir(exist_ok=True)
        settings = ["--algorithm", algorithm, "--symbols", options.symbols, *workers]
        step(f"learn, {algorithm}", "learn-bpe", *settings, "--input", *trained_on, "--output", codes)
        for part in ("train", "valid", "test"):
            for language in languages:
                files = ["--input", folder / "words" / f"{part}.{language}"]
                files += ["--output", subwords / f"{part}.{language}"]
                step(f"apply, {algorithm}", "apply-bpe", "--codes", codes, *files, *workers)
        for language in languages:
            files = ["--input", subwords / f"train.{language}", "--output", subwords / f"vocab.{language}"]
            step(f"dictionary, {algorithm}", "get-vocab", *files)
        arguments = ["--source-lang", languages[0], "--target-lang", languages[1], *workers]
        arguments += ["--train", subwords / "train", "--valid", subwords / "valid", "--test", subwords / "test"]
        step(f"binarise (fairseq), {algorithm}", "binarise", *arguments, "--output", subwords / "binarised")

    whole = sum(seconds.values())
    own = sum(number for name, number in seconds.items() if name.split(",")[0] in OWN.split(", "))
    print(f"\n{options.pairs:,} generated pairs, {options.symbols:,} symbols, {options.workers} workers.\n")
    print("| step | seconds | share |\n|---|---|---|")
    for name, number in seconds.items():
        print(f"| {name} | {number:.1f} | {number / whole:.1%} |")
    print(f"| **all** | {whole:.1f} | |\n| **our own: {OWN}** | {own:.1f} | {own / whole:.1%} |")


def timed(folder: Path, name: str, *arguments: object) -> float:
    """Run one mt-scaffold command with its output in a log; return its seconds."""
    with open(folder / "log", "ab") as log:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "mt_scaffold", *map(str, arguments)], check=True, stdout=log, stderr=log)
    taken = time.perf_counter() - start
    print(f"{name}: {taken:.1f} s", file=sys.stderr, flush=True)
    return taken


if __name__ == "__main__":
    main()
