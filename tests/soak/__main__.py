"""Look for faults that no test foresees: random trials for any length of time (``make soak``), by default an hour.

    python tests/soak [--seconds 3600] [--seed 1] [--only trials ...] [--write]

The parts, each with its share of the time:

- trials: random corpora, on which the native core must equal the plain Python reference;
- imports: random files of tokenizers, tiktoken, SentencePiece and fastBPE (those that are installed),
  which must give the library's ids, imported and exported;
- broken-files: broken codes, configurations, counts, indices and vocabularies, each accepted or refused in one line;
- libfuzzer: the core's reader of codes under libFuzzer with the sanitizers, if clang++ is installed;
- kills: an experiment killed at random moments and restarted, compared with an undisturbed one;
- interrupts: trainings interrupted ten times with Ctrl-C, in fp32 and bf16, compared with undisturbed ones;
- full-disk: every command on a full file system, if this user may mount one.

``--write`` puts the figures into CONTRIBUTING.md. The exit status is 1 if anything was found.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import io
import itertools
import multiprocessing
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "experiment" / "workflow")]

import broken_files  # noqa: E402
import full_disk  # noqa: E402
import imports  # noqa: E402
import interrupts  # noqa: E402
import kills  # noqa: E402
import trials  # noqa: E402

from mt_scaffold import __version__  # noqa: E402

PAGE = HERE.parents[1] / "CONTRIBUTING.md"
BEGIN, END = "<!-- soak: begin -->", "<!-- soak: end -->"
# Part → its share of the whole time.
SHARES = {
    "trials": 0.2,
    "imports": 0.1,
    "broken-files": 0.14,
    "libfuzzer": 0.1,
    "kills": 0.35,
    "interrupts": 0.1,
    "full-disk": 0.01,
}
MOST_KILLS = 100
MOST_FOUND = 5


@dataclass
class Figures:
    """The result of a part: its counts, in the order of the table, the faults it found, or why it was left out."""

    counted: dict[str, int] = field(default_factory=dict)
    found: list[str] = field(default_factory=list)
    left_out: str | None = None
    seconds: float = 0


def _seeds(first: int, step: int, until: float) -> Iterator[int]:
    """Yield ``first``, ``first + step`` and so on, until time.monotonic() reaches ``until``; at least one."""
    yield first
    while time.monotonic() < until:
        first += step
        yield first


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Suppress messages of learning that pairs ran out, and warnings about configurations."""
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _run_trials(first: int, step: int, until: float) -> Figures:
    figures = Figures({"corpora": 0, "words": 0})
    for seed in _seeds(first, step, until):
        try:
            with _quietly():
                figures.counted["words"] += trials.trial(seed)
        except Exception as error:
            figures.found.append(f"seed {seed}: {type(error).__name__}: {error}")
            if len(figures.found) == MOST_FOUND:
                break
        figures.counted["corpora"] += 1
    return figures


def _run_broken_files(first: int, step: int, until: float) -> Figures:
    figures = Figures({"files": 0, "accepted": 0})
    with tempfile.TemporaryDirectory() as folder, _quietly():
        readers = broken_files.Readers(Path(folder))
        for seed in _seeds(first, step, until):
            try:
                figures.counted["accepted"] += readers.trial(seed)
            except broken_files.Unclear as error:
                figures.found.append(f"seed {seed}: {error}")
                if len(figures.found) == MOST_FOUND:
                    break
            figures.counted["files"] += 1
    return figures


@contextlib.contextmanager
def _silently() -> Iterator[None]:
    """Suppress the output of libraries in other languages to the standard streams."""
    with open(os.devnull, "wb") as null:
        kept = [os.dup(number) for number in (1, 2)]
        try:
            for number in (1, 2):
                os.dup2(null.fileno(), number)
            yield
        finally:
            for number, descriptor in zip((1, 2), kept, strict=True):
                os.dup2(descriptor, number)
                os.close(descriptor)


def _run_imports(first: int, step: int, until: float) -> Figures:
    formats = imports.available()
    outcomes = ("compared", "refused", "not made")
    figures = Figures({f"{format} {outcome}": 0 for format in formats for outcome in outcomes} | {"texts": 0})
    with tempfile.TemporaryDirectory() as folder, _quietly(), _silently():
        for seed in _seeds(first, step, until):
            for format in formats:
                try:
                    outcome, texts = imports.trial(seed, format, Path(folder))
                except Exception as error:
                    figures.found.append(f"seed {seed}: {format}: {type(error).__name__}: {error}")
                else:
                    figures.counted[f"{format} {outcome}"] += 1
                    figures.counted["texts"] += texts
            if len(figures.found) >= MOST_FOUND:
                break
    return figures


def _on_all_cores(part: Callable[[int, int, float], Figures], seed: int, seconds: float) -> Figures:
    cores = len(os.sched_getaffinity(0))
    until = time.monotonic() + seconds
    together = Figures()
    with ProcessPoolExecutor(cores, multiprocessing.get_context("fork")) as pool:
        for figures in pool.map(part, range(seed, seed + cores), [cores] * cores, [until] * cores):
            together.found += figures.found
            for name, count in figures.counted.items():
                together.counted[name] = together.counted.get(name, 0) + count
    return together


def _libfuzzer(seed: int, seconds: float) -> Figures:
    compiler = shutil.which("clang++") or shutil.which("clang++-19") or shutil.which("clang++-14")
    if compiler is None:
        return Figures(left_out="clang++ is not installed")
    figures = Figures({"runs": 0})
    core = HERE.parents[1] / "mt_scaffold" / "core"
    sources = [path for path in core.glob("*/*.cpp") if path.parent.name != "bindings"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        flags = [
            "-std=c++20",
            "-O1",
            "-g",
            "-fsanitize=fuzzer,address,undefined",
            "-fno-sanitize-recover=all",
            "-pthread",
        ]
        build = [
            compiler,
            *flags,
            f"-I{core}",
            *map(str, sources),
            str(HERE / "codes_fuzzer.cpp"),
            "-o",
            str(folder / "f"),
        ]
        built = subprocess.run(build, capture_output=True, text=True)
        if built.returncode:
            figures.found.append(f"the fuzzer does not compile: {built.stderr[-1000:]}")
            return figures
        (folder / "corpus").mkdir()
        for number, codes in enumerate(broken_files.Readers(folder).codes):
            (folder / "corpus" / str(number)).write_bytes(codes)
        run = [str(folder / "f"), f"-seed={seed}", f"-max_total_time={max(1, int(seconds))}", "-print_final_stats=1"]
        done = subprocess.run(
            [*run, str(folder / "corpus")], cwd=folder, capture_output=True, text=True, errors="replace"
        )
        for line in done.stderr.splitlines():
            if line.startswith("stat::number_of_executed_units:"):
                figures.counted["runs"] = int(line.split()[-1])
        if done.returncode:
            crashed = [path.read_bytes() for path in folder.glob("crash-*")]
            figures.found.append(f"status {done.returncode} on {crashed[:1]!r}: {done.stderr[-2000:]}")
    return figures


def _kills(seed: int, seconds: float) -> Figures:
    figures = Figures({"kills": 0, "experiments": 0})
    deadline = time.monotonic() + seconds
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    (folder / "alone").mkdir()
    try:
        expected = kills.uninterrupted(folder / "alone")
        while time.monotonic() < deadline and figures.counted["kills"] < MOST_KILLS:
            seed += 1
            done = kills.trial(seed, folder / "killed", expected, deadline)
            figures.counted["kills"] += done.kills
            figures.counted["experiments"] += 1
    except kills.Broken as error:
        figures.found.append(f"seed {seed}: {error}")
        return figures  # and keep the folder for inspection
    shutil.rmtree(folder)
    return figures


def _interrupts(seed: int, seconds: float) -> Figures:
    figures = Figures({"interrupts": 0, "trainings": 0})
    deadline = time.monotonic() + seconds
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        data = interrupts.make_data(folder)
        for number in itertools.count():
            for precision in interrupts.PRECISIONS:
                if figures.counted["trainings"] >= len(interrupts.PRECISIONS) and time.monotonic() > deadline:
                    shutil.rmtree(folder)
                    return figures
                updates = interrupts.trial(data, precision, seed + number, folder / f"{precision}-{number}")
                print(f"{precision}: interrupted after updates {updates}", flush=True)
                figures.counted["interrupts"] += len(updates)
                figures.counted["trainings"] += 1
    except interrupts.Different as error:
        figures.found.append(f"seed {seed}: {error}")
    return figures  # and keep the folder for inspection


def _full_disk(seed: int, seconds: float) -> Figures:
    figures = Figures({"commands": 0})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with full_disk.full_disk(folder / "full") as full:
            if full is None:
                figures.left_out = "this user may not mount a file system"
                return figures
            inputs = full_disk.prepare(folder)
            for command in full_disk.commands(inputs, full):
                try:
                    full_disk.trial(command, inputs, full)
                except full_disk.Unclear as error:
                    figures.found.append(str(error))
                figures.counted["commands"] += 1
    return figures


PARTS: dict[str, Callable[[int, float], Figures]] = {
    "trials": lambda seed, seconds: _on_all_cores(_run_trials, seed, seconds),
    "imports": lambda seed, seconds: _on_all_cores(_run_imports, seed, seconds),
    "broken-files": lambda seed, seconds: _on_all_cores(_run_broken_files, seed, seconds),
    "libfuzzer": _libfuzzer,
    "kills": _kills,
    "interrupts": _interrupts,
    "full-disk": _full_disk,
}


def as_markdown(parts: dict[str, Figures], seed: int) -> str:
    """Return the figures as a table, below the versions that they were measured with."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    version = f"mt_scaffold {__version__}, Python {platform.python_version()}, {len(os.sched_getaffinity(0))} cores"
    lines = [f"{today}, {version}, seed {seed}.", "", "| part | tried | minutes | found |", "|---|---|---|---|"]
    for name, figures in parts.items():
        tried = figures.left_out or ", ".join(f"{count:,} {what}" for what, count in figures.counted.items())
        lines.append(f"| {name} | {tried} | {figures.seconds / 60:.1f} | {len(figures.found) or 'nothing'} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600, help="for all parts together (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all random choices (default: %(default)s)")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help="of: " + ", ".join(PARTS)
    )
    parser.add_argument("--write", action="store_true", help=f"write the figures into {PAGE.name}")
    options = parser.parse_args()
    share = options.seconds / sum(SHARES[name] for name in options.only)
    parts = {}
    for name in options.only:
        print(f"{name}, {SHARES[name] * share / 60:.1f} minutes", flush=True)
        start = time.monotonic()
        parts[name] = PARTS[name](options.seed, SHARES[name] * share)
        parts[name].seconds = time.monotonic() - start
        for problem in parts[name].found:
            print(f"FOUND {problem}", flush=True)
    table = as_markdown(parts, options.seed)
    print(table)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        before, after = page[: page.index(BEGIN) + len(BEGIN)], page[page.index(END) :]
        PAGE.write_text(f"{before}\n\n{table}\n\n{after}", encoding="utf-8")
    return int(any(figures.found for figures in parts.values()))


if __name__ == "__main__":
    sys.exit(main())
