"""Measure mt_scaffold and its peers and write benchmarks/out/results.json (see docs/benchmarks.md).

    python benchmarks/run.py [--corpus FILE] [--repeat 5] [--only learn apply ...] [--old]

All figures are of whole processes, from start to end. The systems alternate, one round of all systems after the other,
so that a busy minute of the machine affects all alike.
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import install
import report
import systems
from systems import (
    BPE,
    CORES,
    OLD,
    OURS,
    OUT,
    PEERS,
    SCAFFOLD,
    SEGMENTING,
    WC,
    WITH_DROPOUT,
    Command,
)

WORK = OUT / "work"
SYMBOLS = 32_000
DROPOUT = 0.1
# A system that is slow at a task runs fewer times than --repeat, but at least once.
SECONDS_PER_SYSTEM = 40
TIMES = (1, 2, 4, 8)


class Failure(Exception):
    """A measured command failed or gave a wrong result; the message says why."""


@dataclass
class Cell:
    """One measurement: a system at a task, under a setting such as a corpus size."""

    task: str
    system: str
    command: Command
    setting: str = ""
    lines: int | None = None  # the required lines of the output, if it is segmented text
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    peak_mib: list[float] = field(default_factory=list)


def run_measured(command: Command) -> tuple[float, float, float]:
    """Run a command; return wall-clock seconds, CPU seconds and peak memory in MiB. Raises Failure if it fails.

    The peak is the largest resident set of the process or of any one process it started (getrusage(2)), including
    pages of memory-mapped files. It is never lower than that of this program, some 25 MiB, because the new process
    begins as its fork.
    """
    errors = WORK / "stderr"
    with (
        (command.stdin or Path(os.devnull)).open("rb") as stdin,
        (command.output if command.to_stdout and command.output else Path(os.devnull)).open("wb") as stdout,
        errors.open("wb") as stderr,
    ):
        start = time.perf_counter()
        process = subprocess.Popen(command.arguments, stdin=stdin, stdout=stdout, stderr=stderr)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            raise
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        printed = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise Failure(f"status {process.returncode}" + (f": {printed[-1][:200]}" if printed else ""))
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def count_lines(path: Path) -> int:
    """Return the number of lines; the last one counts with or without a line end, because some systems add one."""
    lines, last = 0, b"\n"
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            lines += block.count(b"\n")
            last = block[-1:]
    return lines + (last != b"\n")


def sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class Benchmark:
    """The parts of the benchmark, and their measurements."""

    def __init__(self, corpus: Path, repeat: int, missing: dict[str, str], cores: set[int], old: bool = False) -> None:
        self.corpus, self.repeat, self.missing, self.cores = corpus, repeat, missing, cores
        # Our systems in the parts learn, apply and dropout.
        self.ours = [*OURS, *OLD] if old else [*OURS]
        self.lines = count_lines(corpus)
        self.measured: list[dict[str, Any]] = []
        self.failed: list[str] = []

    def available(self, names: Iterable[str]) -> list[str]:
        """Return the systems in ``names`` that could be installed."""
        without = {name.lower() for name in self.missing}
        return [name for name in names if name.lower() not in without]

    def alternate(self, part: str, cells: list[Cell], repeat: int | None = None) -> None:
        """Measure the cells in alternation and store the figures under the name ``part``.

        Every other round is in reverse order, so that no cell always follows the same one: the caches and clock rates
        that the previous cell leaves behind changed single figures by up to 5 %.
        """
        repeat = repeat or self.repeat
        for round_number in range(repeat):
            for cell in cells[::-1] if round_number % 2 else cells[:]:
                if round_number and round_number * cell.seconds[0] > SECONDS_PER_SYSTEM - cell.seconds[0]:
                    continue
                try:
                    self._measure(cell, check=round_number == 0)
                except (Failure, OSError) as failure:
                    cells.remove(cell)
                    self.failed.append(f"{cell.system}, {f'{cell.task} {cell.setting}'.strip()}: {failure}")
                    print(f"FAILED {self.failed[-1]}", flush=True)
                    continue
                name = f"{cell.task} {cell.setting}".strip()
                print(f"{name:32} {cell.system:26} {cell.seconds[-1]:8.2f} s {cell.peak_mib[-1]:7.0f} MiB", flush=True)
        self.measured += [
            {
                "part": part,
                "task": cell.task,
                "system": cell.system,
                "setting": cell.setting,
                "seconds": [round(value, 4) for value in cell.seconds],
                "cpu_seconds": [round(value, 4) for value in cell.cpu_seconds],
                "peak_mib": [round(value, 1) for value in cell.peak_mib],
            }
            for cell in cells
        ]

    def _measure(self, cell: Cell, check: bool) -> None:
        output = cell.command.output
        if output is not None:
            output.unlink(missing_ok=True)
        figures = run_measured(cell.command)
        if check and output is not None and output.stat().st_size == 0:
            raise Failure("the output is empty")
        if check and cell.lines is not None and output is not None and count_lines(output) != cell.lines:
            raise Failure(f"the output has {count_lines(output)} lines, the input {cell.lines}")
        if cell.lines is not None and output is not None:
            output.unlink()  # before it is written back to the disk
        for values, figure in zip((cell.seconds, cell.cpu_seconds, cell.peak_mib), figures, strict=True):
            values.append(figure)

    def model(self, system: str) -> Path:
        """Return the model that a system has learned from the corpus; learn it if no part has done so."""
        path = WORK / f"{system.replace(', ', '-')}.model"
        if not path.exists():
            run_measured(systems.learn(system, self.corpus, path, SYMBOLS))
        return path

    def models(self, names: Iterable[str]) -> dict[str, Path]:
        """Return the models of several systems; one that fails to learn is reported and left out."""
        models = {}
        for system in self.available(names):
            try:
                models[system] = self.model(system)
            except (Failure, OSError) as failure:
                self.failed.append(f"{system}, learning for other tasks: {failure}")
        return models

    def learn(self) -> None:
        """Learn from the corpus with all systems."""
        cells = [
            Cell(
                "learn",
                system,
                systems.learn(system, self.corpus, WORK / f"{system.replace(', ', '-')}.model", SYMBOLS),
            )
            for system in self.available([*self.ours, *PEERS])
        ]
        self.alternate("learn", [*cells, Cell("learn", WC, systems.count(self.corpus))])

    def apply(self) -> None:
        """Segment the corpus with all systems."""
        cells = [
            Cell("apply", system, systems.apply(system, self.corpus, model, WORK / "segmented"), lines=self.lines)
            for system, model in self.models([*self.ours, *SEGMENTING]).items()
        ]
        self.alternate("apply", [*cells, Cell("apply", WC, systems.count(self.corpus))])

    def dropout(self) -> None:
        """Segment the corpus with dropout in all systems that have it."""
        cells = [
            Cell(
                "apply with dropout",
                system,
                systems.apply(system, self.corpus, model, WORK / "segmented", DROPOUT),
                lines=self.lines,
            )
            for system, model in self.models([*self.ours, *WITH_DROPOUT]).items()
        ]
        self.alternate("dropout", cells)

    def _ours(self, corpus: Path, setting: str, lines: int, threads: int | None = None) -> list[Cell]:
        """Return the cells of mt_scaffold's learners and its applier on a corpus."""
        cells = [
            Cell("learn", system, systems.learn(system, corpus, WORK / "scaled.model", SYMBOLS, threads), setting)
            for system in (BPE, SCAFFOLD)
        ]
        applying = systems.apply(BPE, corpus, self.model(BPE), WORK / "segmented", threads=threads)
        return [*cells, Cell("apply", BPE, applying, setting, lines)]

    def corpus_size(self) -> None:
        """Measure the corpus repeated once, twice, four and eight times: the same word types, with higher counts."""
        larger = {times: WORK / f"x{times}" for times in TIMES}
        for times, path in larger.items():
            run_measured(systems.corpora("repeat", path, "--times", str(times), "--of", self.corpus))
        cells = [
            cell for times, path in larger.items() for cell in self._ours(path, f"corpus ×{times}", times * self.lines)
        ]
        self.alternate("corpus_size", cells, min(self.repeat, 3))
        for path in larger.values():
            path.unlink()

    def workers(self) -> None:
        """Measure one thread, two, and so on, doubling up to the number of cores."""
        held = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self.cores)
        cells = []
        for number in (2**power for power in range(16) if 2**power <= max(2, len(self.cores))):
            setting = "1 thread" if number == 1 else f"{number} threads"
            cells += self._ours(self.corpus, setting, self.lines, threads=number)
        self.alternate("workers", cells, min(self.repeat, 3))
        os.sched_setaffinity(0, held)


def against_old(measured: list[dict[str, Any]]) -> str:
    """Return the medians of this revision relative to the older one's: below 1 is faster or smaller."""
    found = {(str(row["task"]), str(row["system"])): row for row in measured}
    lines = ["this revision / the older one, medians:"]
    for (task, system), row in found.items():
        for new, old in zip(OURS, OLD, strict=False):
            if system == new and (task, old) in found:
                figures = [
                    f"{name} {statistics.median(row[key]) / statistics.median(found[task, old][key]):.3f}"
                    for name, key in (("seconds", "seconds"), ("CPU", "cpu_seconds"), ("memory", "peak_mib"))
                ]
                lines.append(f"  {task:20} {system:26} {'  '.join(figures)}")
    return "\n".join(lines)


PARTS: dict[str, Callable[[Benchmark], None]] = {
    "learn": Benchmark.learn,
    "apply": Benchmark.apply,
    "dropout": Benchmark.dropout,
    "corpus-size": Benchmark.corpus_size,
    "workers": Benchmark.workers,
}


def machine() -> dict[str, object]:
    """Return the properties of the machine that the figures depend on."""
    information = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    models = [line.split(":", 1)[1].strip() for line in information.splitlines() if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "cores_used": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
    }


def versions() -> dict[str, str]:
    """Return the versions of the measured systems and of the tools that built them."""
    found = {"python": platform.python_version()}
    for name in (*("mt-scaffold", "subword-nmt", "youtokentome", "tokenizers", "sentencepiece", "rustbpe", "gigabpe"),):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    found["fastBPE"] = install.FASTBPE
    for name, command in {
        "commit": ("git", "describe", "--always", "--dirty"),
        "g++": ("g++", "-dumpfullversion"),
        "wc": ("wc", "--version"),
    }.items():
        try:
            printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=systems.HERE).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
        found[name] = printed.splitlines()[0].removeprefix(f"{name} ")
    return found


def open_corpus(path: Path | None, benchmark_corpus: Callable[[], Path]) -> Path:
    """Return the corpus to measure on: the given one, decompressed if necessary, or the generated one."""
    if path is None:
        return benchmark_corpus()
    if path.suffix != ".gz":
        return path
    unpacked = OUT / "corpora" / path.stem
    unpacked.parent.mkdir(exist_ok=True)
    with gzip.open(path) as source, unpacked.open("wb") as target:
        shutil.copyfileobj(source, target)
    return unpacked


def generated_corpus() -> Path:
    """Return the file with 72 MB of prose in an invented language; generate it once."""
    path = OUT / "corpora" / "generated.txt"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        print("generating a corpus of 72 MB", flush=True)
        run_measured(systems.corpora("text", path))
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="a text, also .gz (default: generated)")
    parser.add_argument("--repeat", type=int, default=5, help="rounds; a slow system runs fewer (default: %(default)s)")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="measure only these parts")
    parser.add_argument(
        "--old",
        action="store_true",
        help="compare with the revision that install.py --old installed (learn, apply, dropout)",
    )
    options = parser.parse_args()
    if options.corpus is not None and not options.corpus.is_file():
        print(f"benchmarks: {options.corpus}: not a file; give the path of a text", file=sys.stderr)
        return 1
    if options.repeat < 1:
        print(f"benchmarks: --repeat must be positive, not {options.repeat}", file=sys.stderr)
        return 2
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    os.environ["LC_ALL"] = "C.UTF-8"
    start = time.monotonic()
    about_machine = machine()
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"benchmarks: the machine is busy (load {load:.2f}): figures will be noisy")
    corpus = open_corpus(options.corpus, generated_corpus).resolve()
    missing = json.loads((OUT / "missing.json").read_text(encoding="utf-8"))
    cores = os.sched_getaffinity(0)
    benchmark = Benchmark(corpus, options.repeat, missing, cores, options.old)
    os.sched_setaffinity(0, sorted(cores)[:CORES])
    parts = options.only or list(PARTS)
    interrupted = False
    try:
        for part in parts:
            try:
                PARTS[part](benchmark)
            except Failure as failure:
                benchmark.failed.append(f"{part}: {failure}")
                print(f"FAILED {benchmark.failed[-1]}", flush=True)
    except KeyboardInterrupt:
        interrupted = True
    results = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": {**about_machine, "load_at_start": round(load, 2)},
        "versions": versions(),
        "corpus": {
            "name": corpus.name,
            "bytes": corpus.stat().st_size,
            "lines": benchmark.lines,
            "sha256": sha256(corpus),
        },
        "repeat": options.repeat,
        "symbols": SYMBOLS,
        "threads": CORES,
        "missing": missing,
        "failed": benchmark.failed,
        "measured": benchmark.measured,
        "minutes": round((time.monotonic() - start) / 60, 1),
    }
    (OUT / "results.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    shutil.rmtree(WORK, ignore_errors=True)
    print()
    print(report.table(results))
    if options.old:
        print(against_old(benchmark.measured))
    return 130 if interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
