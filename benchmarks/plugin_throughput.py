"""Measure the cost of segmenting during training: fairseq-train from words against fairseq-train from subwords.

    python benchmarks/plugin_throughput.py [--words PREFIX --languages en de] [--dropout 0.1] [-- FAIRSEQ OPTIONS]

Both train the same model with the same dictionary on the same sentences, several times. The subwords of the standard
task are one draw with the same dropout, so that both see sentences of the same lengths. On the CPU they train at the
same time, each on half of the cores (data-loading workers included), and swap halves every time, so that other load on
the machine affects both alike; on a GPU they take turns. Two speeds are printed, in target subwords per second:
fairseq's own (wps, which counts from the first batch of an epoch; the median of the epochs after the first), and that
of the whole training, including the work between epochs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from mt_scaffold.experiment.binarise.pairs_as_words import binarise_words
from mt_scaffold.experiment.binarise.segmentation import joint_segmentation
from mt_scaffold.experiment.data.synthetic import sentence_pairs
from mt_scaffold.experiment.runtime.fairseq import WHOLE_DATA_SET, run_tool, sees_gpu, user_dir
from mt_scaffold.experiment.runtime.provenance import versions
from mt_scaffold.methods.learn import learn_bpe
from mt_scaffold.segment.apply import BPE

MODEL = (
    "--arch transformer --share-all-embeddings --encoder-layers 3 --decoder-layers 3 --encoder-embed-dim 256 "
    "--decoder-embed-dim 256 --encoder-ffn-embed-dim 512 --decoder-ffn-embed-dim 512 --encoder-attention-heads 4 "
    "--decoder-attention-heads 4 --dropout 0.1 --optimizer adam --lr 0.0005 --criterion label_smoothed_cross_entropy "
    "--label-smoothing 0.1 --max-tokens 4000"
).split()


def prepare(
    folder: Path, words: Path, languages: tuple[str, str], symbols: int, dropout: float
) -> dict[str, list[str]]:
    """Make both data folders; return the fairseq-train arguments of each."""
    source, target = languages
    codes = folder / "codes"
    texts = [Path(f"{words}.{language}") for language in languages]
    codes.write_bytes(learn_bpe(paths=texts, num_symbols=symbols).text)
    binarise_words(folder / "words", source, target, joint_segmentation(codes), words, words)
    bpe = BPE(codes)
    for side, language in enumerate(languages):
        bpe.process_file(Path(f"{words}.{language}"), folder / f"subwords.{language}", dropout=dropout, seed=1 + side)
    prefix = str(folder / "subwords")
    arguments = ["--source-lang", source, "--target-lang", target, "--trainpref", prefix, "--joined-dictionary"]
    arguments += ["--srcdict", str(folder / "words" / f"dict.{source}.txt"), "--destdir", str(folder / "subwords")]
    run_tool("preprocess", arguments, folder / "preprocess.log")
    return {
        "standard task, subwords": [str(folder / "subwords")],
        "our task, words": [
            *(str(folder / "words"), "--task", "translation_bpe_dropout", "--bpe-dropout", str(dropout))
        ],
    }


def measure(arguments: list[str], log: Path) -> tuple[float, float]:
    """Train, and return both speeds; the second is taken over the whole training."""
    log.unlink(missing_ok=True)
    run_tool("train", arguments, log)
    text = log.read_text(encoding="utf-8")
    epochs = [json.loads(found) for found in re.findall(r"\| train \| (\{.*\})", text)]
    seconds = re.search(r"done training in ([\d.]+) seconds", text)
    if not epochs or not seconds:
        raise SystemExit(f"{log}: no training speed found; see the end of this log")
    words = sum(float(epoch["train_wpb"]) * steps for epoch, steps in zip(epochs, updates(epochs), strict=True))
    # fairseq warms up in the first epoch.
    return statistics.median(float(epoch["train_wps"]) for epoch in epochs[1:] or epochs), words / float(seconds[1])


def measure_both(trainings: list[list[str]], folder: Path, swap: bool) -> list[tuple[float, float]]:
    """Train both: at the same time on the CPU, in turn on a GPU."""
    if sees_gpu():
        return [measure(arguments, folder / "train.log") for arguments in trainings]
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("at least two cores are needed, one for each training")
    halves = [cores[: len(cores) // 2], cores[len(cores) // 2 : len(cores) // 2 * 2]]

    def on_half(number: int) -> tuple[float, float]:
        os.sched_setaffinity(0, halves[number ^ swap])  # of this thread and the processes it starts
        return measure(trainings[number], folder / f"train-{number}.log")

    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(on_half, range(2)))


def updates(epochs: list[dict[str, str]]) -> list[int]:
    """Return the number of updates in each epoch."""
    ends = [int(epoch["train_num_updates"]) for epoch in epochs]
    return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=Path, metavar="PREFIX", help="tokenised text (default: generated)")
    parser.add_argument("--languages", nargs=2, default=["en", "de"], metavar=("SOURCE", "TARGET"))
    parser.add_argument("--pairs", type=int, default=4000, help="sentence pairs to generate (default: 4,000)")
    parser.add_argument("--symbols", type=int, default=4000, help="symbols of the codes (default: 4,000)")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=6)
    parser.add_argument("--num-workers", type=int, default=1)
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the figures, as JSON")
    parser.add_argument("fairseq_options", nargs="*", metavar="-- OPTIONS", help="replace the default model options")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        words = options.words
        if words is None:
            words = folder / "generated"
            pairs = list(islice(sentence_pairs(1), options.pairs))
            for side, language in enumerate(options.languages):
                Path(f"{words}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
        trained = prepare(folder, words, tuple(options.languages), options.symbols, options.dropout)
        common = [*(options.fairseq_options or MODEL), "--user-dir", str(user_dir()), "--no-save", *WHOLE_DATA_SET]
        common += ["--disable-validation", "--log-format", "json", "--max-epoch", str(options.epochs), "--seed", "1"]
        common += ["--num-workers", str(options.num_workers), *([] if sees_gpu() else ["--cpu"])]
        speeds: dict[str, list[tuple[float, float]]] = {name: [] for name in trained}
        for repetition in range(options.repetitions):
            trainings = [[*arguments, *common] for arguments in trained.values()]
            for name, speed in zip(trained, measure_both(trainings, folder, bool(repetition % 2)), strict=True):
                speeds[name].append(speed)
    standard, ours = ([[speed[kind] for speed in speeds[name]] for kind in (0, 1)] for name in speeds)
    print("| | wps | whole training |\n|---|---|---|")
    for name, measured in zip(speeds, (standard, ours), strict=True):
        cells = [f"{statistics.median(each):,.0f} ({min(each):,.0f} to {max(each):,.0f})" for each in measured]
        print(f"| {name} | {cells[0]} | {cells[1]} |")
    # Compare each training with the one that ran at the same time.
    ratios = [
        statistics.median(one / other for one, other in zip(ours[kind], standard[kind], strict=True)) for kind in (0, 1)
    ]
    print(f"| ratio | {ratios[0]:.3f} | {ratios[1]:.3f} |")
    if options.output:
        figures = {"speeds": speeds, "ratios": ratios, "versions": versions(), "arguments": sys.argv[1:]}
        options.output.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
