"""Measures mt_scaffold and its peers side by side and writes benchmarks/out/results.json (see docs/benchmarks.md).

    python benchmarks/run.py [--corpus FILE] [--repeat 5] [--only learn apply ...]

Every figure is that of a whole process, from its start to its end, in wall-clock seconds. What is compared runs in
alternation: one round of all systems, then the next round, so that a busy minute of the machine hits all alike.
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
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import install
import report
import systems
from systems import BPE, FASTBPE, OURS, OUT, PEERS, SEGMENTING, THREADS, WC, WITH_DROPOUT, Command

WORK = OUT / "work"
SYMBOLS = 32_000
DROPOUT = 0.1
# A system that is slow at something is run fewer times than --repeat, but at least once.
SECONDS_PER_SYSTEM = 40
TIMES = (1, 2, 4, 8)
VOCABULARIES = (8_000, 32_000, 128_000)
UNIQUE_WORDS = (1_000_000, 2_000_000, 4_000_000)
ALPHABETS = {"one letter": "a", "four letters": "abcd", "26 letters": "abcdefghijklmnopqrstuvwxyz"}


class Failure(Exception):
    """A command that was to be measured did not do its work; the message says why."""


@dataclass
class Cell:
    """One thing that is measured: a system at a task, under a setting such as a corpus size."""

    task: str
    system: str
    command: Command
    setting: str = ""
    lines: int | None = None  # what the output must have, where it is segmented text
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    peak_mib: list[float] = field(default_factory=list)


def run_measured(command: Command) -> tuple[float, float, float]:
    """Run a command: wall-clock seconds, processor seconds and peak memory in MiB; Failure where it fails.

    The peak is the largest resident set of the process or of any one process it started (getrusage(2)); pages of a
    file that is mapped into memory count. No peak can come out lower than this program's own, some 25 MiB, since the
    new process begins in its memory.
    """
    complaints = WORK / "stderr"
    with (
        (command.stdin or Path(os.devnull)).open("rb") as stdin,
        (command.output if command.to_stdout and command.output else Path(os.devnull)).open("wb") as stdout,
        complaints.open("wb") as stderr,
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
        said = complaints.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise Failure(f"status {process.returncode}" + (f": {said[-1][:200]}" if said else ""))
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def count_lines(path: Path) -> int:
    """The lines of a file; the last one counts with or without its line end, which some systems add."""
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
    """The parts of the benchmark, and what they have measured so far."""

    def __init__(self, corpus: Path, repeat: int, missing: dict[str, str], cores: set[int]) -> None:
        self.corpus, self.repeat, self.missing, self.cores = corpus, repeat, missing, cores
        self.lines = count_lines(corpus)
        self.measured: list[dict[str, object]] = []
        self.failed: list[str] = []
        self.bookkeeping_seconds: dict[str, object] = {}

    def available(self, names: Iterable[str]) -> list[str]:
        """The systems of ``names`` that could be installed."""
        without = {name.lower() for name in self.missing}
        return [name for name in names if name.lower() not in without]

    def alternate(self, part: str, cells: list[Cell], repeat: int | None = None) -> None:
        """Measure cells in alternation and keep the figures under the name ``part``."""
        repeat = repeat or self.repeat
        for round_number in range(repeat):
            for cell in list(cells):
                if round_number and round_number * cell.seconds[0] > SECONDS_PER_SYSTEM - cell.seconds[0]:
                    continue
                try:
                    self._measure(cell, check=round_number == 0)
                except (Failure, OSError) as failure:
                    cells.remove(cell)
                    self.failed.append(f"{cell.system}, {f'{cell.task} {cell.setting}'.strip()}: {failure}")
                    print(f"FAILED {self.failed[-1]}", flush=True)
                    continue
                what = f"{cell.task} {cell.setting}".strip()
                print(f"{what:32} {cell.system:26} {cell.seconds[-1]:8.2f} s {cell.peak_mib[-1]:7.0f} MiB", flush=True)
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
            raise Failure("the result is empty")
        if check and cell.lines is not None and output is not None and count_lines(output) != cell.lines:
            raise Failure(f"the result has {count_lines(output)} lines, the text {cell.lines}")
        if cell.lines is not None and output is not None:
            output.unlink()  # so that the disk need not keep up with what nobody reads
        for values, figure in zip((cell.seconds, cell.cpu_seconds, cell.peak_mib), figures, strict=True):
            values.append(figure)

    def model(self, system: str) -> Path:
        """What a system has learned from the corpus; learned now where no part has done it."""
        path = WORK / f"{system.replace(', ', '-')}.model"
        if not path.exists():
            run_measured(systems.learn(system, self.corpus, path, SYMBOLS))
        return path

    def models(self, names: Iterable[str]) -> dict[str, Path]:
        """The models of several systems; one that does not learn is noted and left out."""
        models = {}
        for system in self.available(names):
            try:
                models[system] = self.model(system)
            except (Failure, OSError) as failure:
                self.failed.append(f"{system}, learning for its other tasks: {failure}")
        return models

    def make(self, name: str, *arguments: str | Path) -> Path:
        """A corpus of the benchmark's own; it is kept for the next time unless it is in the work folder."""
        path = WORK / name if arguments[0] == "repeat" else OUT / "corpora" / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            print(f"making {name}", flush=True)
            run_measured(systems.corpora(arguments[0], path, *arguments[1:]))
        return path

    def learn(self) -> None:
        """All systems learn from the corpus."""
        cells = [
            Cell(
                "learn",
                system,
                systems.learn(system, self.corpus, WORK / f"{system.replace(', ', '-')}.model", SYMBOLS),
            )
            for system in self.available([*OURS, *PEERS])
        ]
        self.alternate("learn", [*cells, Cell("learn", WC, systems.count(self.corpus))])

    def apply(self) -> None:
        """All systems segment the corpus."""
        cells = [
            Cell("apply", system, systems.apply(system, self.corpus, model, WORK / "segmented"), lines=self.lines)
            for system, model in self.models([*OURS, *SEGMENTING]).items()
        ]
        self.alternate("apply", [*cells, Cell("apply", WC, systems.count(self.corpus))])

    def dropout(self) -> None:
        """Those that have BPE-dropout segment the corpus with it."""
        cells = [
            Cell(
                "apply with dropout",
                system,
                systems.apply(system, self.corpus, model, WORK / "segmented", DROPOUT),
                lines=self.lines,
            )
            for system, model in self.models([*OURS, *WITH_DROPOUT]).items()
        ]
        self.alternate("dropout", cells)

    def _ours(
        self, corpus: Path, setting: str, lines: int, vocabulary: int = SYMBOLS, threads: int = THREADS
    ) -> list[Cell]:
        """mt_scaffold's learners and its applier, on a corpus."""
        cells = [
            Cell("learn", system, systems.learn(system, corpus, WORK / "scaled.model", vocabulary, threads), setting)
            for system in OURS
        ]
        model = self.model(BPE)
        if vocabulary != SYMBOLS:
            model = WORK / f"{vocabulary}.model"
            run_measured(systems.learn(BPE, self.corpus, model, vocabulary))
        applying = systems.apply(BPE, corpus, model, WORK / "segmented", threads=threads)
        return [*cells, Cell("apply", BPE, applying, setting, lines)]

    def corpus_size(self) -> None:
        """The corpus once, twice, four and eight times over: the same word types, more of each."""
        larger = {
            times: self.make(f"x{times}", "repeat", "--times", str(times), "--of", self.corpus) for times in TIMES
        }
        cells = [
            cell for times, path in larger.items() for cell in self._ours(path, f"corpus ×{times}", times * self.lines)
        ]
        self.alternate("corpus_size", cells, min(self.repeat, 3))
        for path in larger.values():
            path.unlink()

    def workers(self) -> None:
        """One thread, two, and as many more as there are cores, doubling."""
        held = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self.cores)
        cells = []
        for number in (2**power for power in range(16) if 2**power <= max(2, len(self.cores))):
            setting = "1 thread" if number == 1 else f"{number} threads"
            cells += self._ours(self.corpus, setting, self.lines, threads=number)
        self.alternate("workers", cells, min(self.repeat, 3))
        os.sched_setaffinity(0, held)

    def vocabulary(self) -> None:
        """Small and large vocabularies."""
        cells = [
            cell for size in VOCABULARIES for cell in self._ours(self.corpus, f"{size:,} merges", self.lines, size)
        ]
        self.alternate("vocabulary", cells, min(self.repeat, 3))

    def unique(self) -> None:
        """Random strings, none twice: a table of words is of no use, and must not grow for ever."""
        cells = []
        for words in UNIQUE_WORDS:
            corpus = self.make(f"unique-{words}", "unique", "--words", str(words))
            for system, model in self.models([BPE, FASTBPE]).items():
                if system == BPE or words == UNIQUE_WORDS[0]:
                    command = systems.apply(system, corpus, model, WORK / "segmented")
                    cells.append(Cell("apply", system, command, f"{words:,} words", count_lines(corpus)))
        self.alternate("unique", cells, min(self.repeat, 3))

    def long_word(self) -> None:
        """One word of a million letters, with codes that find much to merge in it."""
        cells = []
        for name, alphabet in ALPHABETS.items():
            short = self.make(f"words-{len(alphabet)}", "words", "--alphabet", alphabet)
            long = self.make(f"word-{len(alphabet)}", "word", "--alphabet", alphabet)
            for system in OURS:
                model = WORK / f"word-{OURS[system]}-{len(alphabet)}.model"
                run_measured(systems.learn(system, short, model, SYMBOLS))
                for task, p in (("apply", 0.0), ("apply with dropout", DROPOUT)):
                    command = systems.apply(system, long, model, WORK / "segmented", p)
                    cells.append(Cell(task, system, command, f"a word of {name}", lines=1))
        self.alternate("long_word", cells, min(self.repeat, 3))

    def bookkeeping(self) -> None:
        """What telling scaffold tokens apart costs, in the merging alone."""
        command = systems.bookkeeping(self.corpus, SYMBOLS, self.repeat)
        try:
            run_measured(command)
        except Failure as failure:
            self.failed.append(f"bookkeeping: {failure}")
            return
        assert command.output is not None
        self.bookkeeping_seconds = json.loads(command.output.read_text(encoding="utf-8"))


PARTS: dict[str, Callable[[Benchmark], None]] = {
    "learn": Benchmark.learn,
    "apply": Benchmark.apply,
    "dropout": Benchmark.dropout,
    "corpus-size": Benchmark.corpus_size,
    "workers": Benchmark.workers,
    "vocabulary": Benchmark.vocabulary,
    "unique": Benchmark.unique,
    "long-word": Benchmark.long_word,
    "bookkeeping": Benchmark.bookkeeping,
}


def machine() -> dict[str, object]:
    """What the figures depend on beside the programs."""
    information = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    models = [line.split(":", 1)[1].strip() for line in information.splitlines() if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "cores_used": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "load_at_start": round(os.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    """The versions of all that is measured, and of what built it."""
    found = {"python": platform.python_version()}
    for name in ("mt-scaffold", "subword-nmt", "youtokentome", "tokenizers", "sentencepiece", "rustbpe", "bpeasy"):
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
            said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=systems.HERE).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
        found[name] = said.splitlines()[0].removeprefix(f"{name} ")
    return found


def open_corpus(path: Path | None, benchmark_corpus: Callable[[], Path]) -> Path:
    """The corpus to measure on: the given one, unpacked where it is compressed, or the generated one."""
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
    """72 MB of prose of an invented language."""
    path = OUT / "corpora" / "generated.txt"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        print("making a corpus of 72 MB", flush=True)
        run_measured(systems.corpora("text", path))
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="a text, .gz too (default: one that is generated)")
    parser.add_argument("--repeat", type=int, default=5, help="rounds; a slow system runs fewer (default: %(default)s)")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="measure only these parts")
    options = parser.parse_args()
    if options.corpus is not None and not options.corpus.is_file():
        print(f"benchmarks: {options.corpus}: there is no such file", file=sys.stderr)
        return 1
    if options.repeat < 1:
        print(f"benchmarks: --repeat must be positive, not {options.repeat}", file=sys.stderr)
        return 2
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    # Rust's thread pool asks for this; the others are told on their command lines or count the cores.
    os.environ["RAYON_NUM_THREADS"] = str(THREADS)
    os.environ["LC_ALL"] = "C.UTF-8"
    start = time.monotonic()
    about_machine = machine()
    if about_machine["load_at_start"] > 0.5:  # type: ignore[operator]
        print(f"benchmarks: the machine is busy (load {about_machine['load_at_start']}): figures will be noisy")
    corpus = open_corpus(options.corpus, generated_corpus).resolve()
    missing = json.loads((OUT / "missing.json").read_text(encoding="utf-8"))
    cores = os.sched_getaffinity(0)
    benchmark = Benchmark(corpus, options.repeat, missing, cores)
    # Some peers cannot be told how many threads to use: every system gets as many cores as it may use threads.
    os.sched_setaffinity(0, sorted(cores)[:THREADS])
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
        "machine": about_machine,
        "versions": versions(),
        "corpus": {
            "name": corpus.name,
            "bytes": corpus.stat().st_size,
            "lines": benchmark.lines,
            "sha256": sha256(corpus),
        },
        "repeat": options.repeat,
        "symbols": SYMBOLS,
        "threads": THREADS,
        "missing": missing,
        "failed": benchmark.failed,
        "measured": benchmark.measured,
        "bookkeeping": benchmark.bookkeeping_seconds,
        "minutes": round((time.monotonic() - start) / 60, 1),
    }
    (OUT / "results.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    shutil.rmtree(WORK, ignore_errors=True)
    print()
    print(report.as_text(results))
    return 130 if interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
