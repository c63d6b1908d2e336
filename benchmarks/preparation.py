"""Time the preparation of a corpus for four systems, step by step, and with the published tools on the same text.

    python benchmarks/preparation.py [--pairs 1000000] [--workers 2] [--symbols 32000] [--folder DIR]
        [--raw FOLDER --languages de en] [--with-fairseq [--moses FOLDER]]

The systems are BPE and Scaffold-BPE, each with and without BPE-dropout. The corpus is generated in mt-scaffold's
invented languages, or ``--raw``: ``{train,valid,test}.LANGUAGE``. Each step is the command that the workflow calls, run
on its own. Prints a Markdown table: wall-clock and processor seconds, and the peak memory of the largest process.

With ``--with-fairseq``, BPE is also prepared as in fairseq's examples: Moses' Perl scripts (``--moses``: their folder;
remove-non-printing-char.perl only if it exists; without a folder, sacremoses' command), subword-nmt,
fairseq-preprocess. All files are compared.
"""

from __future__ import annotations

import argparse
import contextlib
import filecmp
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

REMOVING = "remove-non-printing-char.perl"
PARTS = ("train", "valid", "test")
CONFIG = """\
name: preparation
languages: {{source: {source}, target: {target}}}
data: {{synthetic: {{pairs: {pairs}, valid: 500, test: 500, seed: 1}}}}
codes: {{symbols: {symbols}}}
systems: {{bpe: {{algorithm: bpe}}}}
baseline: bpe
train: {{options: {{}}}}
"""


@dataclass
class Step:
    """Wall-clock and processor seconds of a step's processes together, and the peak memory of the largest, in MiB."""

    seconds: float = 0.0
    cpu: float = 0.0
    peak: float = 0.0

    def add(self, other: Step) -> None:
        self.seconds += other.seconds
        self.cpu += other.cpu
        self.peak = max(self.peak, other.peak)


@dataclass
class Run:
    """The timed steps of one way to prepare a corpus. folder: where the commands work."""

    folder: Path
    languages: tuple[str, str]
    workers: int
    symbols: int
    steps: dict[str, Step] = field(default_factory=dict)

    def step(self, name: str, *arguments: object, module: str = "mt_scaffold") -> None:
        """Run ``python -m module`` as part of a step."""
        self.pipeline(name, [[sys.executable, "-m", module, *map(str, arguments)]])

    def pipeline(
        self, name: str, commands: Sequence[Sequence[str]], source: Path | None = None, target: Path | None = None
    ) -> None:
        """Run commands as a pipeline, as part of a step; exit if one fails."""
        step = Step()
        start = time.perf_counter()
        with contextlib.ExitStack() as files:
            log = files.enter_context(open(self.folder / "log", "ab"))
            stdin: IO[bytes] | int | None = files.enter_context(open(source, "rb")) if source else subprocess.DEVNULL
            output = files.enter_context(open(target, "wb")) if target else log
            processes = []
            for number, command in enumerate(commands):
                stdout = output if number == len(commands) - 1 else subprocess.PIPE
                processes.append(subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=log))
                if stdin is not None and not isinstance(stdin, int):
                    stdin.close()
                stdin = processes[-1].stdout
            for process, command in zip(processes, commands, strict=True):
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                if process.returncode:
                    sys.exit(f"{command[:4]}: exit status {process.returncode}; see {self.folder / 'log'}")
                step.add(Step(0.0, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024))
        step.seconds = time.perf_counter() - start
        print(f"{name}: {step.seconds:.1f} s", file=sys.stderr, flush=True)
        self.steps.setdefault(name, Step()).add(step)

    def table(self, title: str) -> None:
        """Print all steps."""
        whole = sum(step.seconds for step in self.steps.values())
        print(f"\n| {title} | seconds | share | CPU seconds | peak MiB |\n|---|---|---|---|---|")
        for name, step in self.steps.items():
            print(f"| {name} | {step.seconds:.1f} | {step.seconds / whole:.1%} | {step.cpu:.1f} | {step.peak:.0f} |")
        cpu, peak = sum(step.cpu for step in self.steps.values()), max(step.peak for step in self.steps.values())
        print(f"| **all** | **{whole:.1f}** | | {cpu:.1f} | {peak:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--symbols", type=int, default=32_000)
    parser.add_argument("--raw", type=Path, metavar="FOLDER", help="a corpus in place of a generated one")
    parser.add_argument("--languages", nargs=2, default=("qaa", "qab"))
    parser.add_argument("--with-fairseq", action="store_true", help="also prepare one system with the published tools")
    parser.add_argument("--moses", type=Path, metavar="FOLDER", help="the folder of tokenizer.perl and other scripts")
    parser.add_argument("--folder", type=Path, help="work here and keep all files (default: a temporary folder)")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        languages = (options.languages[0], options.languages[1])
        raw = options.raw or folder / "raw"
        if options.raw is None:
            config = CONFIG.format(
                source=languages[0], target=languages[1], pairs=options.pairs, symbols=options.symbols
            )
            (folder / "config.yaml").write_text(config)
            generating = Run(folder, languages, 1, 0)
            generating.step("generate", "get-data", "--config", folder / "config.yaml", "--output-dir", raw)
        with open(raw / f"train.{languages[0]}", "rb") as stream:
            pairs = sum(1 for _ in stream)
        print(f"{pairs:,} pairs, {options.symbols:,} symbols, {options.workers} workers")
        run = Run(folder, languages, options.workers, options.symbols)
        prepare(run, raw)
        run.table("four systems")
        if options.with_fairseq:
            published = Run(folder / "published", languages, options.workers, options.symbols)
            prepare_as_published(published, raw, folder, options.moses)
            published.table("the published way, BPE alone")
            compare(run, published)


def prepare(run: Run, raw: Path) -> None:
    """Tokenise, clean, learn, make dictionaries, and binarise for four systems."""
    folder, languages, workers = run.folder, run.languages, ["--num-workers", run.workers]
    words = folder / "words"
    words.mkdir(exist_ok=True)
    for part in PARTS:
        for language in languages:
            files = ["--input", raw / f"{part}.{language}", "--output", words / f"{part}.uncleaned.{language}.gz"]
            run.step("tokenise", "tokenise", "--language", language, *files, *workers)
        arguments: list[object] = ["--max-ratio", 3]
        for side, language in zip(("source", "target"), languages, strict=True):
            arguments += [f"--{side}", words / f"{part}.uncleaned.{language}.gz"]
            arguments += [f"--output-{side}", words / f"{part}.{language}"]
        run.step("clean", "clean", *arguments)
    for algorithm in ("bpe", "scaffold"):
        codes, folders = folder / f"{algorithm}.codes", folder / algorithm
        settings = ["--algorithm", algorithm, "--symbols", run.symbols, *workers]
        trained_on = [words / f"train.{language}" for language in languages]
        run.step(f"learn, {algorithm}", "learn-bpe", *settings, "--input", *trained_on, "--output", codes)
        arguments = ["--source-lang", languages[0], "--target-lang", languages[1], "--codes", codes, *workers]
        arguments += ["--train", words / "train"]
        # Systems that differ only in dropout share their dictionaries.
        shared = folders / "dictionaries"
        run.step(f"dictionary, {algorithm}", "dictionary", *arguments, "--with-dropout", "--output", shared)
        arguments += ["--valid", words / "valid", "--test", words / "test", "--dictionaries", shared]
        run.step(f"binarise, {algorithm}", "binarise", *arguments, "--output", folders / "binarised")
        name = f"binarise-words, {algorithm} + dropout"
        run.step(name, "binarise-words", *arguments, "--output", folders / "binarised.words")


def prepare_as_published(run: Run, raw: Path, ours: Path, moses: Path | None) -> None:
    """Prepare BPE as in fairseq's examples, without cleaning, whose rule differs there."""
    folder, workers = run.folder, str(run.workers)
    subwords = folder / "subwords"
    subwords.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        for language in run.languages:
            source, target = raw / f"{part}.{language}", folder / f"{part}.{language}"
            run.pipeline("tokenise", moses_commands(moses, language, workers), source, target)
            unpacked = unpack(ours / "words" / f"{part}.uncleaned.{language}.gz", folder)
            same = filecmp.cmp(target, unpacked, shallow=False)
            print(f"{target.name}: words {'the same' if same else 'differ'}")
    # From here on, both prepare the same words.
    words = ours / "words"
    codes = folder / "bpe.codes"
    joined = folder / "joined"
    with open(joined, "wb") as output:
        for language in run.languages:
            with open(words / f"train.{language}", "rb") as stream:
                shutil.copyfileobj(stream, output)
    run.pipeline("learn-bpe", [[*subword_nmt("learn_bpe"), "--symbols", str(run.symbols)]], joined, codes)
    for part in PARTS:
        for language in run.languages:
            command = [*subword_nmt("apply_bpe"), "--codes", str(codes)]
            run.pipeline("apply-bpe", [command], words / f"{part}.{language}", subwords / f"{part}.{language}")
    arguments: list[object] = ["--source-lang", run.languages[0], "--target-lang", run.languages[1]]
    arguments += ["--joined-dictionary", "--destdir", folder / "binarised", "--workers", workers]
    for part in PARTS:
        arguments += [f"--{part}pref", subwords / part]
    run.step("fairseq-preprocess", *arguments, module="fairseq_cli.preprocess")


def compare(run: Run, published: Run) -> None:
    """Make the dictionary and the data folder of BPE at once; print how they compare with the published tools'."""
    folder, words = run.folder, run.folder / "words"
    alone = Run(folder, run.languages, run.workers, run.symbols)
    arguments: list[object] = ["--source-lang", run.languages[0], "--target-lang", run.languages[1]]
    arguments += ["--codes", folder / "bpe.codes", "--num-workers", run.workers]
    for part in PARTS:
        arguments += [f"--{part}", words / part]
    alone.step("dictionary and binarise", "binarise", *arguments, "--output", folder / "alone")
    alone.table("BPE, without dropout's subwords in the dictionary")
    theirs = sorted(path for path in (published.folder / "binarised").iterdir() if path.suffix != ".log")
    same = [filecmp.cmp(path, folder / "alone" / path.name, shallow=False) for path in theirs]
    print(f"\nfiles of fairseq-preprocess: {len(theirs)}; the same byte for byte: {sum(same)}")
    same_codes = filecmp.cmp(folder / "bpe.codes", published.folder / "bpe.codes", shallow=False)
    print(f"codes of subword-nmt: {'the same' if same_codes else 'differ'}")
    ours = alone.steps["dictionary and binarise"].seconds
    for names in (["fairseq-preprocess"], ["apply-bpe", "fairseq-preprocess"]):
        taken = sum(published.steps[name].seconds for name in names)
        print(f"{' and '.join(names)}: {taken:.1f} s; dictionary and binarise: {ours:.2f} s; {taken / ours:.1f} times")


def moses_commands(moses: Path | None, language: str, workers: str) -> list[list[str]]:
    """Return the commands of fairseq's examples that tokenise a text."""
    if moses is None:
        options = ["-l", language, "-j", workers]
        return [[sys.executable, "-m", "sacremoses", *options, "normalize", "tokenize", "-a"]]
    commands = [["perl", script(moses, "normalize-punctuation*.perl"), "-l", language]]
    if any(moses.glob(REMOVING)):
        commands.append(["perl", script(moses, REMOVING)])
    commands.append(["perl", script(moses, "tokenizer*.perl"), "-q", "-threads", workers, "-a", "-l", language])
    return commands


def script(folder: Path, pattern: str) -> str:
    """Return the latest version of a script."""
    return str(max(folder.glob(pattern)))


def subword_nmt(command: str) -> list[str]:
    return [sys.executable, "-m", f"subword_nmt.{command}"]


def unpack(path: Path, folder: Path) -> Path:
    """Decompress a file into ``folder``."""
    import gzip

    with gzip.open(path) as stream, open(folder / "unpacked", "wb") as output:
        shutil.copyfileobj(stream, output)
    return folder / "unpacked"


if __name__ == "__main__":
    main()
