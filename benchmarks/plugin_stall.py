"""Measure the stall between two epochs, memory and processes: the plug-in's task against fairseq's own.

    python benchmarks/plugin_stall.py [--pairs 1000000] [--words 25] [--dropout 0.1] [--symbols 32000]

Two processes on two cores (gloo, one data-loading worker each) train a tiny model on generated pairs, first from ids
with fairseq's task, then from words with BPE-dropout. The stall is the time from the end of the last update of an epoch
until the first batch of the next reaches the model, in the slower process: making and sorting batches, starting
workers, loading. Nothing is validated or saved, and the model sees two sentences of each batch. Every epoch ends after
a few updates, but not before the lengths of the next are drawn, as they would be in an epoch of minutes; all batches
are made.

Memory is measured after the last update of an epoch, without mapped files; in the column with the data-loading worker,
memory shared by two processes counts half for each. CPU is the processor time of the process itself in the stall.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from itertools import islice
from pathlib import Path
from typing import Any

from mt_scaffold.experiment.binarise.pairs_as_ids import binarise
from mt_scaffold.experiment.binarise.pairs_as_words import binarise_words
from mt_scaffold.experiment.binarise.segmentation import joint_segmentation
from mt_scaffold.experiment.data.synthetic import sentence_pairs
from mt_scaffold.experiment.runtime.fairseq import WHOLE_DATA_SET, user_dir
from mt_scaffold.methods.learn import learn_bpe

LANGUAGES = ("en", "de")
RANKS, EPOCHS, UPDATES = 2, 6, 6
MODEL = (
    "--arch transformer --encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 8 --decoder-embed-dim 8 "
    "--encoder-ffn-embed-dim 8 --decoder-ffn-embed-dim 8 --encoder-attention-heads 1 --decoder-attention-heads 1 "
    "--share-all-embeddings --criterion cross_entropy --optimizer adam --lr 0.0005 --max-tokens 4000"
).split()


def generate(prefix: Path, pairs: int, words: int) -> None:
    """Write pairs with ``words`` words per side: generated sentences, joined and cut."""
    chosen = random.Random(1)
    sentences = [tuple(side.split() for side in pair) for pair in islice(sentence_pairs(1), min(pairs, 100_000))]
    with open(f"{prefix}.en", "w", encoding="utf-8") as source, open(f"{prefix}.de", "w", encoding="utf-8") as target:
        for _ in range(pairs):
            sides: tuple[list[str], list[str]] = ([], [])
            while min(map(len, sides)) < words:
                for side, more in zip(sides, chosen.choice(sentences), strict=True):
                    side += more
            for stream, side in zip((source, target), sides, strict=True):
                stream.write(" ".join(side[:words]) + "\n")


def memory(process: int | str) -> tuple[int, int]:
    """Return the bytes of data that a process sees, and those with only its share of shared memory.

    Mapped files, mostly programs, are left out: other processes may map them as well.
    """
    text = ""
    with contextlib.suppress(OSError):  # it may have ended
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    found = re.findall(r"^(\w+): +(\d+) kB", text, re.MULTILINE)
    sizes = {"Anonymous": 0, "Pss_Anon": 0, "Pss_Shmem": 0, **{name: int(size) << 10 for name, size in found}}
    return sizes["Anonymous"] + sizes["Pss_Shmem"], sizes["Pss_Anon"] + sizes["Pss_Shmem"]


def children(process: int) -> list[int]:
    """Return the children of a process and their descendants."""
    found = []
    for task in Path(f"/proc/{process}/task").iterdir():
        with contextlib.suppress(OSError):
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *children(child)]
    return found


def two_sentences(batch: dict[str, Any]) -> dict[str, Any]:
    """Return the first two sentences of a batch: the model's own time and memory are not measured."""
    inputs = {name: values[:2] for name, values in batch["net_input"].items()}
    cut = {
        "id": batch["id"][:2],
        "target": batch["target"][:2],
        "net_input": inputs,
        "nsentences": len(batch["id"][:2]),
    }
    return {**batch, **cut, "ntokens": int((cut["target"] != 1).sum())}


def train(output: Path, arguments: list[str]) -> None:
    """Train as one of the processes, and write the measurements as JSON."""
    import torch
    from fairseq import options
    from fairseq.data.iterators import FrozenBatchSampler
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq.distributed import utils as distributed
    from fairseq.trainer import Trainer
    from fairseq_cli import train as fairseq_train

    measured: dict[str, list[Any]] = {name: [] for name in ("stalls", "busy", "alone", "together", "processes")}
    make_batches, train_step = FrozenBatchSampler.make_batches_for_epoch, Trainer.train_step
    updates, ended, busy = 0, 0.0, 0.0

    def few_batches(self: Any, *rest: Any, **named: Any) -> None:
        make_batches(self, *rest, **named)
        self.batches = self.batches[:UPDATES]

    def timed(self: Any, samples: Any, *rest: Any, **named: Any) -> Any:
        nonlocal updates, ended, busy
        if updates and updates % UPDATES == 0:
            measured["stalls"].append(time.perf_counter() - ended)
            measured["busy"].append(time.process_time() - busy)
        updates += 1
        if updates % UPDATES == UPDATES - 1:
            for thread in threading.enumerate():
                if thread.name.startswith("lengths of epoch"):
                    thread.join()
        result = train_step(self, [two_sentences(sample) for sample in samples], *rest, **named)
        if updates % UPDATES == 0:
            own = [os.getpid(), *children(os.getpid())]
            measured["alone"].append(memory("self")[0])
            measured["together"].append(sum(memory(process)[1] for process in own))
            measured["processes"].append(len(own))
            torch.distributed.barrier()
        ended, busy = time.perf_counter(), time.process_time()
        return result

    FrozenBatchSampler.make_batches_for_epoch, Trainer.train_step = few_batches, timed
    config = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), arguments))
    distributed.call_main(config, fairseq_train.main)
    output.write_text(json.dumps(measured), encoding="utf-8")


def measure(folder: Path, arguments: list[str]) -> dict[str, Any]:
    """Train in all processes and return their measurements."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    common = [*arguments, *MODEL, *WHOLE_DATA_SET, "--user-dir", str(user_dir()), "--no-save", "--disable-validation"]
    common += ["--cpu", "--no-progress-bar", "--seed", "1", "--num-workers", "1", "--max-epoch", str(EPOCHS)]
    common += ["--distributed-world-size", str(RANKS), "--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"]
    common += ["--distributed-no-spawn", "--distributed-init-method", f"tcp://localhost:{port}"]
    logs = [open(folder / f"{rank}.log", "wb") for rank in range(RANKS)]  # noqa: SIM115
    program = [sys.executable, __file__, "--train"]
    processes = [
        subprocess.Popen(
            [*program, str(folder / f"{rank}.json"), "--", *common, "--distributed-rank", str(rank)],
            stdout=logs[rank],
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for rank in range(RANKS)
    ]
    statuses = [process.wait() for process in processes]
    if any(statuses):
        # If one process fails, the others end because of it.
        failed = folder / f"{next(rank for rank in range(RANKS) if statuses[rank])}.log"
        raise SystemExit(failed.read_text(encoding="utf-8", errors="replace")[-4000:])
    ranks = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(RANKS)]
    log = (folder / "0.log").read_text(encoding="utf-8")
    return {
        "stalls": [max(each) for each in zip(*(rank["stalls"] for rank in ranks), strict=True)],
        "busy": max(max(rank["busy"]) for rank in ranks),
        "alone": max(max(rank["alone"]) for rank in ranks),
        "together": max(sum(each) for each in zip(*(rank["together"] for rank in ranks), strict=True)) / RANKS,
        "processes": [sum(each) for each in zip(*(rank["processes"] for rank in ranks), strict=True)],
        "waited": [float(seconds) for seconds in re.findall(r"epoch \d+: waited ([\d.]+) s", log)],
    }


def main() -> None:
    """Prepare, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--words", type=int, default=25, help="words per side (default: 25)")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--symbols", type=int, default=32_000)
    parser.add_argument("--train", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("fairseq", nargs="*", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.train:
        train(asked.train, asked.fairseq)
        return
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:RANKS])
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        text = folder / "text"
        generate(text, asked.pairs, asked.words)
        codes = folder / "codes"
        codes.write_bytes(learn_bpe(paths=[f"{text}.{side}" for side in LANGUAGES], num_symbols=asked.symbols).text)
        segmentation = joint_segmentation(codes)
        binarise_words(folder / "words", *LANGUAGES, segmentation, text)
        binarise(folder / "ids", *LANGUAGES, segmentation, text, dictionaries=folder / "words")
        dropout = ["--task", "translation_bpe_dropout", "--bpe-dropout", str(asked.dropout)]
        trainings = {
            "fairseq's task, ids": [str(folder / "ids")],
            "`translation_bpe_dropout`, words": [str(folder / "words"), *dropout],
        }
        results = {name: measure(folder, arguments) for name, arguments in trainings.items()}
    print(f"{asked.pairs:,} pairs of {asked.words} words a side, {RANKS} processes on {RANKS} cores\n")
    print("| | stall, s: median (longest) | waited for lengths | CPU, s | MB of a process | with worker | processes |")
    print("|---|---|---|---|---|---|---|")
    for name, found in results.items():
        stall = f"{statistics.median(found['stalls']):.2f} ({max(found['stalls']):.2f})"
        waited = f"{max(found['waited'][1:]):.2f}" if found["waited"] else ""
        megabytes = " | ".join(f"{found[kind] / 1e6:.0f}" for kind in ("alone", "together"))
        counted = f"{min(found['processes'])} to {max(found['processes'])}"
        print(f"| {name} | {stall} | {waited} | {found['busy']:.2f} | {megabytes} | {counted} |")
    standard, ours = results.values()
    ratios = [f"{ours[kind] / standard[kind]:.3f}" for kind in ("alone", "together")]
    print(f"| ratio | | | | {' | '.join(ratios)} | |")
    if ours["waited"]:
        print(f"\nwaited for the lengths of the first epoch: {ours['waited'][0]:.2f} s")


if __name__ == "__main__":
    main()
