"""Measure encoding texts into ids against other tokenisers with the same codes, and compare the ids.

    python benchmarks/encoding.py [--megabytes 16] [--processes 5] [--symbols 32000 200000] [--cores 1 2]
                                  [--only SYSTEM ...] [--text NAME ...]

Codes are learned with GPT-2's pattern from one half of each of six texts (benchmarks/texts.py), all together, and from
the German half alone, for texts in another language and in another script than the codes'. The other half gives two
figures in MB of text per second: *unseen*, the first time that it is encoded, in a process that has encoded only one
sentence, and *seen*, the best of the later calls. With one core it is processor time, which other
work on the machine affects less than wall-clock time. Then come microseconds per call for one sentence, as a list of
ids and as an array. Each figure is the median of several processes; the systems take turns. Every text is a list of new
str objects. Writes benchmarks/out/encoding.json and encoding.csv, and prints the tables.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib.metadata
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import install
import texts

HERE = Path(__file__).resolve().parent
OUT = HERE / "out"
WORK = OUT / "encoding"
# Row → the texts that its codes are learned from, and the text that it encodes.
ROWS = {name: ("all", name) for name in texts.TEXTS} | {
    "another language": ("german", "english"),
    "another script": ("german", "chinese and japanese"),
}
OURS = ("mt_scaffold, BPE", "mt_scaffold, Scaffold-BPE")
SENTENCE = "one sentence"
SENTENCES = 1_000
FIGURES = {"unseen": "MB/s", "seen": "MB/s", "list": "µs", "array": "µs"}
CALLS_SEEN, SECONDS_SEEN = 4, 2


@dataclass(frozen=True)
class Loaded:
    """A tokeniser with its codes.

    encode: a list of texts. ids: the result of encode → one array. to_list, to_array: encode one text; None if there is
    no such call.
    """

    encode: Callable[[list[str]], Any]
    ids: Callable[[Any], Any]
    to_list: Callable[[str], Any]
    to_array: Callable[[str], Any] | None = None


def flat(parts: Iterable[Any]) -> Any:
    import numpy

    return numpy.concatenate([numpy.asarray(part, numpy.uint32) for part in parts])


def ours(model: Path, cores: int) -> Loaded:
    from mt_scaffold import BPE

    bpe = BPE(model)
    return Loaded(
        lambda batch: bpe.encode_batch(batch, num_workers=cores),
        lambda result: result[0],
        bpe.encode,
        bpe.encode_to_numpy,
    )


def gigatoken(model: Path, cores: int) -> Loaded:
    import awkward
    from gigatoken import Tokenizer

    tokenizer = Tokenizer(str(model))
    return Loaded(
        lambda batch: tokenizer.encode_batch(batch, parallel=cores > 1),
        awkward.flatten,
        lambda text: tokenizer.encode(text).tolist(),
        tokenizer.encode,
    )


def tokie(model: Path, cores: int) -> Loaded:
    from tokie import Tokenizer

    tokenizer: Any = Tokenizer.from_json(str(model))
    return Loaded(
        lambda batch: tokenizer.encode_batch_flat(batch, add_special_tokens=False),
        lambda result: result[0],
        lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
    )


def snaptokens(model: Path, cores: int) -> Loaded:
    import numpy
    from snaptokens import Tokenizer

    tokenizer: Any = Tokenizer.from_file(str(model))
    return Loaded(
        tokenizer.encode_batch_flat,
        lambda result: numpy.frombuffer(result[0], numpy.uint32),
        lambda text: tokenizer.encode(text).ids,
    )


def fastokens(model: Path, cores: int) -> Loaded:
    import numpy
    from fastokens import Tokenizer

    tokenizer: Any = Tokenizer.from_file(str(model))
    return Loaded(
        tokenizer.encode_batch_flat,
        lambda result: numpy.frombuffer(result[0], numpy.uint32),
        tokenizer.encode,
    )


def tokenizers(model: Path, cores: int) -> Loaded:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model))
    return Loaded(
        lambda batch: tokenizer.encode_batch(batch, add_special_tokens=False),
        lambda result: flat(encoding.ids for encoding in result),
        lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
    )


# System → its loader and the file of its codes.
SYSTEMS: dict[str, tuple[Callable[[Path, int], Loaded], str]] = {
    OURS[0]: (ours, "bpe.codes"),
    OURS[1]: (ours, "scaffold.codes"),
    "gigatoken": (gigatoken, "tokenizer.json"),
    "snaptokens": (snaptokens, "tokenizer.json"),
    "tokie": (tokie, "tokenizer.json"),
    "fastokens": (fastokens, "tokenizer.json"),
    "tokenizers": (tokenizers, "tokenizer.json"),
}


def write_models(symbols: int, learned: str) -> None:
    """Learn codes of both kinds from a text, or from all; export the plain ones to the format of the others as well."""
    folder = WORK / learned / str(symbols)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "learned.txt").open("w", encoding="utf-8") as mixture:
        for name in texts.TEXTS if learned == "all" else [learned]:
            mixture.writelines(texts.read(texts.halves(WORK, name)[0]))
    tool = [sys.executable, "-m", "mt_scaffold"]
    learn = [*tool, "learn-bpe", "--pretokenise", "gpt2", "--total-symbols", "--symbols", str(symbols)]
    learn += ["--input", "learned.txt"]
    # gigatoken knows the pattern by its text.
    export = [*tool, "export-tokenizers", "--codes", "bpe.codes", "--pattern", "published"]
    for command in (
        [*learn, "--algorithm", "bpe", "--output", "bpe.codes"],
        [*learn, "--algorithm", "scaffold", "--output", "scaffold.codes"],
        [*export, "--output", "tokenizer.json"],
    ):
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)


def measure(system: str, symbols: int, row: str, cores: int) -> dict[str, Any]:
    """Time a system on an unseen half in this process; return the figures and the digest of its ids."""
    import numpy

    load, model = SYSTEMS[system]
    learned, text = ROWS[row]
    loaded = load(WORK / learned / str(symbols) / model, cores)
    stored = [document.encode() for document in texts.read(texts.halves(WORK, text)[1])]
    # Tables that are built in the first call are not part of encoding.
    loaded.encode(["One sentence."])
    clock = time.process_time if cores == 1 else time.perf_counter
    speeds, digest, began = list[float](), "", clock()
    for _ in range(1 + CALLS_SEEN):
        # New objects, because CPython caches the UTF-8 of a str.
        fresh = [document.decode() for document in stored]
        start = clock()
        result = loaded.encode(fresh)
        speeds.append(sum(map(len, stored)) / (clock() - start) / 1e6)
        digest = digest or hashlib.sha256(numpy.asarray(loaded.ids(result), numpy.uint32).tobytes()).hexdigest()
        del result, fresh
        if len(speeds) > 1 and clock() - began > SECONDS_SEEN:
            break
    return {"unseen": speeds[0], "seen": max(speeds[1:]), "ids": digest}


def measure_sentences(system: str, symbols: int) -> dict[str, Any]:
    """Time calls with one sentence each, whose words have been encoded before."""
    load, model = SYSTEMS[system]
    loaded = load(WORK / "all" / str(symbols) / model, 1)
    sentences = texts.read(texts.halves(WORK, "lines")[1])[:SENTENCES]
    found: dict[str, Any] = {}
    for name, encode in (("list", loaded.to_list), ("array", loaded.to_array)):
        if encode is None:
            continue
        times = []
        for _ in range(20):
            start = time.process_time()
            for sentence in sentences:
                encode(sentence)
            times.append(time.process_time() - start)
        found[name] = min(times) / len(sentences) * 1e6
    ids = [list(map(int, loaded.to_list(sentence))) for sentence in sentences]
    return found | {"ids": hashlib.sha256(json.dumps(ids).encode()).hexdigest()}


def run_alone(system: str, symbols: int, text: str, cores: int) -> dict[str, Any]:
    """Measure in a new process that may use only that many cores."""
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    threads = {name: str(cores) for name in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS")}
    # Version 1 of tokenizers cannot learn, which run.py measures with an older one.
    python = str(OUT / "tokenizers/bin/python") if system == "tokenizers" else sys.executable
    one = [python, __file__, "--one", system, str(symbols), text, str(cores)]
    done = subprocess.run(
        ["taskset", "--cpu-list", ",".join(map(str, allowed)), *one],
        capture_output=True,
        text=True,
        env={**os.environ, **threads, "TOKENIZERS_PARALLELISM": str(cores > 1).lower()},
        check=False,
    )
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1][:200]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure_all(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure every system on every text, in turns; return the medians, and whether the ids are those of our BPE."""
    rows: dict[tuple[int, int, str, str], list[dict[str, Any]]] = {}
    cases = [
        (symbols, cores, text)
        for symbols, cores, text in itertools.product(options.symbols, options.cores, (*options.text, SENTENCE))
        if text != SENTENCE or cores == 1
    ]
    for number, case in itertools.product(range(options.processes), cases):
        for system in options.only:
            of_system = rows.setdefault((*case, system), [])
            if number and "failed" in of_system[0]:
                continue
            symbols, cores, text = case
            of_system.append(run_alone(system, symbols, text, cores))
            print(*case, system, {name: value for name, value in of_system[-1].items() if name != "ids"}, flush=True)
    measured = []
    for (symbols, cores, text, system), found in rows.items():
        own = rows.get((symbols, cores, text, OURS[0]), found)[0]
        sound = [one for one in found if "failed" not in one] or found
        medians = {
            name: statistics.median(one[name] for one in sound)
            for name, value in sound[0].items()
            if isinstance(value, float)
        }
        equal = system == OURS[1] or found[0].get("ids") == own.get("ids")
        names = {"symbols": symbols, "cores": cores, "text": text, "system": system}
        measured.append({**names, **medians, "equal": equal, "failed": found[0].get("failed", "")})
    return measured


def table(title: str, columns: dict[str, tuple[str, str]], rows: list[dict[str, Any]], digits: int) -> list[str]:
    """Return figures of every system as Markdown, without those of systems with other ids.

    columns: name → text and figure. digits: after the point, for microseconds, of which the least is best; 0 for
    speeds.
    """
    found = {(row["system"], row["text"], name): value for row in rows if row["equal"] for name, value in row.items()}
    cells = {
        system: [found.get((system, *column)) for column in columns.values()]
        for system in dict.fromkeys(row["system"] for row in rows)
    }

    def line(name: str, figures: Iterable[float | None], digits: int) -> str:
        return f"| {name} | {' | '.join('–' if one is None else f'{one:.{digits}f}' for one in figures)} |"

    lines = [f"| {title} | {' | '.join(columns)} |", "|---" + "|---:" * len(columns) + "|"]
    lines += [line(system, figures, digits) for system, figures in cells.items()]
    for system in OURS:
        ratios = list[float | None]()
        for column, own in enumerate(cells.get(system, [])):
            others = [figures[column] for name, figures in cells.items() if name not in OURS]
            known = [figure for figure in others if figure is not None]
            ratios.append(own / (min if digits else max)(known) if own is not None and known else None)
        if ratios:
            lines.append(line(f"{system} / best other", ratios, 2))
    return [*lines, ""]


def tables(measured: list[dict[str, Any]]) -> str:
    """Return all figures as Markdown, then the failures."""
    printed = []
    for symbols, cores in dict.fromkeys((row["symbols"], row["cores"]) for row in measured):
        rows = [row for row in measured if (row["symbols"], row["cores"]) == (symbols, cores)]
        of_texts = [row for row in rows if row["text"] != SENTENCE]
        for figure in ("unseen", "seen"):
            columns = {row["text"]: (row["text"], figure) for row in of_texts}
            title = f"{symbols:,} tokens, {cores} core{'s' * (cores > 1)}, {figure}, MB/s"
            printed += table(title, columns, of_texts, 0)
        if sentences := [row for row in rows if row["text"] == SENTENCE]:
            columns = {name: (SENTENCE, name) for name in ("list", "array")}
            printed += table(f"{symbols:,} tokens, one sentence per call, µs", columns, sentences, 2)
    for row in measured:
        if row["failed"] or not row["equal"]:
            problem = f"fails: {row['failed']}" if row["failed"] else "gives other ids"
            printed.append(f"- {row['symbols']:,} tokens, {row['text']}: {row['system']} {problem}")
    return "\n".join(printed) + "\n"


def write_csv(measured: list[dict[str, Any]], path: Path) -> None:
    """Write every figure, without those of systems that failed or gave other ids."""
    instructions = os.environ.get("MT_SCAFFOLD_SIMD", "best")
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["tokens", "cores", "instructions", "text", "system", "figure", "value"])
        for row in measured:
            for figure, unit in FIGURES.items():
                if row["equal"] and figure in row:
                    place = row["symbols"], row["cores"], instructions, row["text"], row["system"]
                    rows.writerow([*place, f"{figure}, {unit}", f"{row[figure]:.2f}"])


def version_of(system: str) -> str:
    if system == "tokenizers":
        return install.TOKENIZERS
    return importlib.metadata.version(system)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=16, help="of each text, at most (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=5, help="per figure (default: %(default)s)")
    parser.add_argument("--symbols", type=int, nargs="+", default=[32_000, 200_000], help="tokens of the codes")
    cores = sorted({1, os.cpu_count() or 1})
    parser.add_argument("--cores", type=int, nargs="+", default=cores, help="of each process (default: one, and all)")
    parser.add_argument("--only", nargs="+", default=list(SYSTEMS), metavar="SYSTEM", choices=SYSTEMS)
    parser.add_argument("--text", nargs="*", default=list(ROWS), metavar="NAME", choices=ROWS)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        system, symbols, text, count = options.one
        alone = (
            measure_sentences(system, int(symbols))
            if text == SENTENCE
            else measure(system, int(symbols), text, int(count))
        )
        print(json.dumps(alone))
        return 0
    size = WORK / "megabytes"  # written last, with the size of the texts that are there
    if not size.exists() or size.read_text() != str(options.megabytes):
        texts.write(WORK, options.megabytes * 1_000_000)
        size.write_text(str(options.megabytes))
    for symbols, learned in itertools.product(
        options.symbols, sorted({ROWS[row][0] for row in options.text} | {"all"})
    ):
        write_models(symbols, learned)
    load_before = os.getloadavg()[0]
    measured = measure_all(options)
    result = {
        "versions": {name: version_of(name) for name in options.only if name not in OURS},
        "load": load_before,
        "simd": os.environ.get("MT_SCAFFOLD_SIMD", "best"),
        "texts": texts.TEXTS,
        "measured": measured,
    }
    (OUT / "encoding.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    write_csv(measured, OUT / "encoding.csv")
    print(tables(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
