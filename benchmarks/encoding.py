"""Measure encoding texts into ids against other tokenisers with the same codes, and compare the ids.

    python benchmarks/encoding.py --german mdn.de --english FILE [--megabytes 8] [--rounds 2] [--only SYSTEM ...]

Each figure is of one call on texts in memory that the library has not seen as objects before, after one call that warms
it up; the best of several, each round in a separate process, in which the systems take turns. Every text is a list of
str. Two files are encoded into a file of ids, too, on all cores: by what the library has for files, or else by reading
the documents with Python first. Writes benchmarks/out/encoding.json and prints the tables.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import importlib.metadata
import itertools
import json
import os
import random
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
WORK = HERE / "out" / "encoding"
SYMBOLS = 32_000
# GPT-2's pattern, as tiktoken takes it.
GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
# The tokens of cl100k_base without the special ones.
CL100K = 100_256
OURS = ("mt_scaffold, BPE", "mt_scaffold, Scaffold-BPE")
TEXTS = {
    "short": "short documents: the lines of the German text",
    "long": "long documents of 1 MB of it",
    "german": "German, 3,000 characters each",
    "english": "English, 3,000 characters each",
    "code": "source code: the modules of Python's standard library",
    "bytes": "random bytes as Latin-1, 3,000 each",
}

FILES = {
    "lines.txt": "each line of the German text is a document",
    "documents.jsonl": "the German documents of 3,000 characters as JSON lines",
}

Encode = Callable[[list[str]], Any]
Ids = Callable[[Any], Any]
EncodeFile = Callable[[Path, Path], None]


def flat(parts: Iterable[Any]) -> Any:
    import numpy

    return numpy.concatenate([numpy.asarray(part, numpy.uint32) for part in parts])


def from_buffer(result: Any) -> Any:
    import numpy

    return numpy.frombuffer(result[0], numpy.uint32)


def ours(model: Path, cores: int) -> tuple[Encode, Ids]:
    from mt_scaffold import BPE

    bpe = BPE(model)
    return lambda texts: bpe.encode_batch(texts, num_workers=cores), lambda result: result[0]


def gigatoken(model: Path, cores: int) -> tuple[Encode, Ids]:
    import awkward
    from gigatoken import Tokenizer

    tokenizer = Tokenizer(str(model))
    return lambda texts: tokenizer.encode_batch(texts, parallel=cores > 1), awkward.flatten


def tokie(model: Path, cores: int) -> tuple[Encode, Ids]:
    from tokie import Tokenizer

    tokenizer: Any = Tokenizer.from_json(str(model))
    return lambda texts: tokenizer.encode_batch_flat(texts, add_special_tokens=False), lambda result: result[0]


def fastokens(model: Path, cores: int) -> tuple[Encode, Ids]:
    from fastokens import _native

    return _native.Tokenizer.from_file(str(model)).encode_batch_flat, from_buffer


def splintr(model: Path, cores: int) -> tuple[Encode, Ids]:
    from splintr import GPT2_PATTERN, Tokenizer

    return Tokenizer.from_bytes(model.read_bytes(), GPT2_PATTERN).encode_batch_flat, from_buffer


def kitoken(model: Path, cores: int) -> tuple[Encode, Ids]:
    from kitoken import Kitoken

    return Kitoken.from_tokenizers_file(str(model)).encode_all, flat


def tiktoken(model: Path, cores: int) -> tuple[Encode, Ids]:
    from tiktoken import Encoding

    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, model.read_bytes().splitlines())}
    encoding = Encoding("", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={})
    return lambda texts: encoding.encode_ordinary_batch(texts, num_threads=cores), flat


def tokenizers(model: Path, cores: int) -> tuple[Encode, Ids]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model))

    def encode(texts: list[str]) -> Any:
        return tokenizer.encode_batch_fast(texts, add_special_tokens=False)

    return encode, lambda result: flat(encoding.ids for encoding in result)


def bpe_openai(model: Path, cores: int) -> tuple[Encode, Ids]:
    from bpe_openai import get_encoding

    return get_encoding("cl100k_base").encode_ordinary_batch, flat


def rs_bpe(model: Path, cores: int) -> tuple[Encode, Ids]:
    from rs_bpe.bpe import openai

    options = openai.ParallelOptions(min_batch_size=1, chunk_size=100, max_threads=cores)
    encoding = openai.cl100k_base()
    return lambda texts: encoding.encode_batch_parallel(texts, options), lambda result: flat(result[0])


def quicktok(model: Path, cores: int) -> tuple[Encode, Ids]:
    from quicktok import get_encoding

    return get_encoding("cl100k_base").encode_batch, lambda result: result[0]


# Vocabulary → system → how it is loaded, and from which file.
SYSTEMS: dict[str, dict[str, tuple[Callable[[Path, int], tuple[Encode, Ids]], str]]] = {
    "gpt2, 32,000": {
        OURS[0]: (ours, "bpe.codes"),
        OURS[1]: (ours, "scaffold.codes"),
        "gigatoken": (gigatoken, "tokenizer.json"),
        "tokie": (tokie, "tokenizer.json"),
        "fastokens": (fastokens, "tokenizer.json"),
        "splintr-rs": (splintr, "bpe.ranks"),
        "kitoken": (kitoken, "tokenizer.json"),
        "tiktoken": (tiktoken, "bpe.ranks"),
        "tokenizers": (tokenizers, "tokenizer.json"),
    },
    "cl100k_base": {
        OURS[0]: (ours, "cl100k.codes"),
        "quicktok-v1": (quicktok, ""),
        "rs-bpe": (rs_bpe, ""),
        "bpe-openai": (bpe_openai, ""),
    },
}
# Its ids fit into two bytes.
WITH_FILES = ("gpt2, 32,000",)
# Why another tokeniser has no row.
LEFT_OUT = {"wordchipper": "it loads published vocabularies only, and downloads them when it is first used"}


def file_of_ours(model: Path, cores: int) -> EncodeFile:
    from mt_scaffold.corpus.documents import Documents
    from mt_scaffold.segment.encode import DocumentEncoder

    encoder = DocumentEncoder(model, num_workers=cores)

    def encode(path: Path, output: Path) -> None:
        documents = Documents([path], field=FIELD if path.suffix == ".jsonl" else None)
        encoder.encode(documents, documents.inputs, output)

    return encode


def file_of_gigatoken(model: Path, cores: int) -> EncodeFile:
    import awkward
    import numpy
    from gigatoken import JsonlFileSource, TextFileSource, Tokenizer

    tokenizer = Tokenizer(str(model))

    def encode(path: Path, output: Path) -> None:
        lines = path.suffix == ".txt"
        source = TextFileSource([path], separator="\n") if lines else JsonlFileSource([path], field=FIELD)
        ids = awkward.flatten(tokenizer.encode_files(source, parallel=cores > 1))
        numpy.asarray(ids).astype(numpy.uint16).tofile(output)

    return encode


def file_by_reading(load: Callable[[Path, int], tuple[Encode, Ids]]) -> Callable[[Path, int], EncodeFile]:
    """Encode a file with a library that takes texts only."""

    def loaded(model: Path, cores: int) -> EncodeFile:
        import numpy

        encode_texts, ids = load(model, cores)

        def encode(path: Path, output: Path) -> None:
            lines = path.read_bytes().split(b"\n")[:-1]
            texts = [line.decode() if path.suffix == ".txt" else json.loads(line)[FIELD] for line in lines]
            numpy.asarray(ids(encode_texts(texts))).astype(numpy.uint16).tofile(output)

        return encode

    return loaded


FIELD = "text"
OF_FILES: dict[str, Callable[[Path, int], EncodeFile]] = {
    OURS[0]: file_of_ours,
    OURS[1]: file_of_ours,
    "gigatoken": file_of_gigatoken,
}


def documents(lines: Iterable[str], size: int) -> Iterator[str]:
    """Join lines to documents of at least that many characters."""
    held: list[str] = []
    length = 0
    for line in lines:
        held.append(line)
        length += len(line)
        if length >= size:
            yield "".join(held)
            held, length = [], 0
    if held:
        yield "".join(held)


def lines_of(path: Path, size: int) -> list[str]:
    with path.open("rb") as stream:
        return [line.decode("utf-8", "replace") for line in stream.readlines(size)]


def write_texts(german: Path, english: Path, size: int) -> None:
    """Write the six texts, each as a JSON list, and what the codes are learned from: a fifth of each but the bytes."""
    modules = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))
    code, length = [], 0
    for path in modules:
        if length < size and "site-packages" not in path.parts:
            code.append(path.read_text("utf-8", "replace"))
            length += len(code[-1])
    of_german = lines_of(german, size)
    noise = random.Random(1).randbytes(size).decode("latin-1")
    texts = {
        "short": of_german,
        "long": list(documents(of_german, 1_000_000)),
        "german": list(documents(of_german, 3_000)),
        "english": list(documents(lines_of(english, size), 3_000)),
        "code": code,
        "bytes": [noise[at : at + 3_000] for at in range(0, size, 3_000)],
    }
    for name, text in texts.items():
        (WORK / f"{name}.json").write_text(json.dumps(text), encoding="ascii")
    (WORK / "lines.txt").write_text("".join(of_german), encoding="utf-8")
    objects = "".join(json.dumps({FIELD: text}, ensure_ascii=False) + "\n" for text in texts["german"])
    (WORK / "documents.jsonl").write_text(objects, encoding="utf-8")
    learned = "".join("".join(texts[name])[: size // 5] for name in ("german", "english", "code"))
    (WORK / "mixture").write_text(learned, encoding="utf-8")


def write_models() -> None:
    """Learn codes of both kinds and import cl100k's; the plain ones in the formats of the others, too."""
    tool = [sys.executable, "-m", "mt_scaffold"]
    learn = [*tool, "learn-bpe", "--pretokenise", "gpt2", "--total-symbols", "--symbols", str(SYMBOLS)]
    export = [*tool, "export-tokenizers", "--codes", "bpe.codes"]
    commands = [
        *(
            [*learn, "--algorithm", kind, "--input", "mixture", "--output", f"{kind}.codes"]
            for kind in ("bpe", "scaffold")
        ),
        [*export, "--to", "tiktoken", "--output", "bpe.ranks"],
        # gigatoken knows the pattern by its text.
        [*export, "--pattern", "published", "--output", "tokenizer.json"],
        [*tool, "import", "cl100k.ranks", "--pretokenise", "cl100k", "--output", "cl100k.codes"],
    ]
    # rs-bpe carries the published tokens.
    from rs_bpe.bpe import openai

    table = openai.cl100k_base().bpe()
    tokens = [bytes(table.decode_tokens([number])) for number in range(CL100K)]
    ranks = b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))
    (WORK / "cl100k.ranks").write_bytes(ranks)
    for command in commands:
        subprocess.run(command, check=True, cwd=WORK, stdout=subprocess.DEVNULL)


def memory(reset: bool = False) -> float:
    """Return the peak memory of this process in MiB since the last reset (Linux)."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def measure(vocabulary: str, system: str, text: str, cores: int, seconds: float) -> dict[str, Any]:
    """Time a system on a text in this process; its ids' digest comes with the figures."""
    import numpy

    load, model = SYSTEMS[vocabulary][system]
    stored = [document.encode() for document in json.loads((WORK / f"{text}.json").read_text(encoding="ascii"))]
    encode, ids = load(WORK / model, cores)
    clock: list[float] = []
    used: list[float] = []
    digest, peak = "", 0.0
    while len(clock) < 3 or (sum(clock) < seconds and len(clock) < 20):
        # New objects, because CPython keeps the UTF-8 of a str that was asked for it once.
        fresh = [document.decode() for document in stored]
        before = memory(reset=True)
        cpu, start = time.process_time(), time.perf_counter()
        result = encode(fresh)
        clock.append(time.perf_counter() - start)
        used.append(time.process_time() - cpu)
        if len(clock) == 1:
            peak = memory() - before
            digest = hashlib.sha256(numpy.asarray(ids(result), numpy.uint32).tobytes()).hexdigest()
        del result, fresh
        if sum(clock) > 4 * seconds:
            break
    megabytes = sum(map(len, stored)) / 1e6
    return {"MB/s": megabytes / min(clock), "CPU MB/s": megabytes / min(used), "peak_mib": peak, "ids": digest}


def measure_file(vocabulary: str, system: str, name: str, cores: int, seconds: float) -> dict[str, Any]:
    """Time a system on a file in this process; its ids' digest comes with the figures."""
    import numpy

    load, model = SYSTEMS[vocabulary][system]
    load_for_files: Callable[[Path, int], EncodeFile] = OF_FILES.get(system) or file_by_reading(load)
    encode = load_for_files(WORK / model, cores)
    output, clock, used, peak = WORK / f"{os.getpid()}.bin", list[float](), list[float](), 0.0
    while len(clock) < 3 or (sum(clock) < seconds and len(clock) < 20):
        before = memory(reset=True)
        cpu, start = time.process_time(), time.perf_counter()
        encode(WORK / name, output)
        clock.append(time.perf_counter() - start)
        used.append(time.process_time() - cpu)
        peak = peak or memory() - before
        if sum(clock) > 4 * seconds:
            break
    digest = hashlib.sha256(numpy.fromfile(output, numpy.uint16).tobytes()).hexdigest()
    for path in WORK.glob(f"{os.getpid()}.*"):
        path.unlink()
    megabytes = (WORK / name).stat().st_size / 1e6
    return {"MB/s": megabytes / min(clock), "CPU MB/s": megabytes / min(used), "peak_mib": peak, "ids": digest}


def run_alone(vocabulary: str, system: str, text: str, cores: int, seconds: float) -> dict[str, Any]:
    """Measure in a new process that may use only that many cores."""
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    threads = {name: str(cores) for name in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS")}
    command = [sys.executable, __file__, "--one", vocabulary, system, text, str(cores), str(seconds)]
    done = subprocess.run(
        ["taskset", "--cpu-list", ",".join(map(str, allowed)), *command],
        capture_output=True,
        text=True,
        env={**os.environ, **threads, "TOKENIZERS_PARALLELISM": str(cores > 1).lower()},
        check=False,
    )
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1][:200]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure_all(rounds: int, seconds: float, only: Collection[str], most: int) -> list[dict[str, Any]]:
    """Measure every system on every text, in turns; the best of the rounds, and whether the ids are ours."""
    rows: dict[tuple[str, str, int, str], dict[str, Any]] = {}
    cores = min(most, len(os.sched_getaffinity(0)))
    for _ in range(rounds):
        for vocabulary, systems in SYSTEMS.items():
            texts = [*itertools.product(TEXTS, sorted({1, cores}))]
            for text, count in texts + [(name, cores) for name in FILES if vocabulary in WITH_FILES]:
                for system in systems:
                    key = vocabulary, text, count, system
                    if (only and system not in only) or "failed" in rows.get(key, {}):
                        continue
                    found = run_alone(vocabulary, system, text, count, seconds)
                    best = rows.setdefault(key, found)
                    if "failed" not in found:
                        best.update({name: max(found[name], best[name]) for name in ("MB/s", "CPU MB/s", "peak_mib")})
                    print(*key, {name: value for name, value in found.items() if name != "ids"}, flush=True)
    names = "vocabulary", "text", "cores", "system"
    measured = [{**dict(zip(names, key, strict=True)), **row} for key, row in rows.items()]
    for row in measured:
        own = rows.get((row["vocabulary"], row["text"], row["cores"], OURS[0]), {})
        row["equal"] = row["system"] == OURS[1] or row.get("ids") == own.get("ids")
    return measured


def tables(measured: list[dict[str, Any]]) -> str:
    """MB/s of every system on every text, by vocabulary and cores, as Markdown."""
    printed = []

    def place(row: dict[str, Any]) -> tuple[int, bool, int]:
        return list(SYSTEMS).index(row["vocabulary"]), row["text"] in FILES, row["cores"]

    for (number, of_files, cores), group in itertools.groupby(sorted(measured, key=place), key=place):
        vocabulary, texts = list(SYSTEMS)[number], FILES if of_files else TEXTS
        cells = {(row["system"], row["text"]): row for row in group}
        kept = [name for name in SYSTEMS[vocabulary] if any(name == system for system, _ in cells)]
        # A figure with other ids is no figure.
        # One core's time is measured as its own, which other work on the machine changes less than the clock.
        figure = "CPU MB/s" if cores == 1 and not of_files else "MB/s"
        speed = {key: row[figure] for key, row in cells.items() if "failed" not in row and row["equal"]}
        what = f"{vocabulary}, {cores} core{'s' * (cores > 1)}{', files to ids' * of_files}"
        printed += [
            f"| {what} | {' | '.join(texts)} | peak MiB |",
            "|---" + "|---:" * (len(texts) + 1) + "|",
        ]
        for name in kept:
            peak = max((cells[name, text].get("peak_mib", 0) for text in texts if (name, text) in cells), default=0)
            figures = [f"{speed[name, text]:.0f}" if (name, text) in speed else "–" for text in texts]
            printed.append(f"| {name} | {' | '.join(figures)} | {peak:.0f} |")
        for name in OURS:
            peers = {
                text: max((speed.get((peer, text), 0) for peer in kept if peer not in OURS), default=0)
                for text in texts
            }
            ratios = [
                f"{speed[name, text] / peers[text]:.2f}" if (name, text) in speed and peers[text] else "–"
                for text in texts
            ]
            if name in kept:
                printed.append(f"| {name} / fastest other | {' | '.join(ratios)} | |")
        printed.append("")
    for system in dict.fromkeys(row["system"] for row in measured):
        rows = [row for row in measured if row["system"] == system]
        if failed := [row for row in rows if "failed" in row]:
            failing = ", ".join(dict.fromkeys(row["text"] for row in failed))
            printed.append(f"- {system} fails on {failing}: {failed[0]['failed']}")
        if other := list(dict.fromkeys(row["text"] for row in rows if "failed" not in row and not row["equal"])):
            printed.append(f"- {system} gives other ids on {', '.join(other)}")
    printed += [f"- {system}: {reason}" for system, reason in LEFT_OUT.items()]
    return "\n".join(printed) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--german", type=Path, help="a text in German")
    parser.add_argument("--english", type=Path, help="a text in English")
    parser.add_argument("--megabytes", type=int, default=8, help="of each text (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="processes per figure (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.5, help="of calls per process (default: %(default)s)")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1, help="at most (default: all)")
    parser.add_argument("--only", nargs="+", default=(), help="measure these systems")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        vocabulary, system, text, cores, seconds = options.one
        of_text = measure_file if text in FILES else measure
        print(json.dumps(of_text(vocabulary, system, text, int(cores), float(seconds))))
        return 0
    for path in (options.german, options.english):
        if path is None or not path.is_file():
            print("benchmarks: --german and --english: give the paths of two texts", file=sys.stderr)
            return 2
    WORK.mkdir(parents=True, exist_ok=True)
    write_texts(options.german, options.english, options.megabytes * 1_000_000)
    write_models()
    measured = measure_all(options.rounds, options.seconds, options.only, options.cores)
    versions = {
        name: importlib.metadata.version(name) for systems in SYSTEMS.values() for name in systems if name not in OURS
    }
    result = {"versions": versions, "texts": TEXTS | FILES, "measured": measured}
    (HERE / "out" / "encoding.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(tables(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
