"""Compare the losses of a resumed training with those of an uninterrupted one, in every precision.

    python benchmarks/resuming.py [--model translation|llama|gpt_neox] [--precision NAME ...] [--checkpoint 60]
        [--kill 80] [--updates 160] [--folder DIR] [-- FAIRSEQ OPTIONS]

A training on generated text, of a translation model with BPE-dropout or of a language model, is killed with ``kill -9``
within an epoch, after the checkpoint of update 60, and resumed from it twice: as it is, and without the plug-in's
additions to fairseq's checkpoints. Prints a Markdown table: how many of the following losses are equal bit for bit, how
far apart the others are, the first update whose batch differs, if any, and whether the final parameters and optimiser
state are equal bit for bit. Runs on the CPU, in the precisions that fairseq supports there.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PRECISIONS = {
    "fp32": [],
    # Without the flat copy of the parameters and without an overflow, which need a GPU.
    "fp16": ["--fp16", "--fp16-no-flatten-grads", "--fp16-init-scale", "4"],
    "bf16": ["--bf16"],
    "memory-efficient fp16": ["--memory-efficient-fp16", "--fp16-init-scale", "4", "--fp16-scale-window", "100"],
    "memory-efficient bf16": ["--memory-efficient-bf16"],
}
COMMON = (
    "--dropout 0.1 --optimizer adam --lr 0.0005 --num-workers 2 --seed 1 --disable-validation "
    "--no-epoch-checkpoints --keep-interval-updates 1 --no-progress-bar"
).split()
TRANSLATION = (
    "--task translation_bpe_dropout --bpe-dropout 0.1 --arch transformer --share-all-embeddings --encoder-layers 2 "
    "--decoder-layers 2 --encoder-embed-dim 64 --decoder-embed-dim 64 --encoder-ffn-embed-dim 128 "
    "--decoder-ffn-embed-dim 128 --encoder-attention-heads 2 --decoder-attention-heads 2 "
    "--criterion label_smoothed_cross_entropy --label-smoothing 0.1 --max-tokens 1000"
).split()
LANGUAGE_MODEL = (
    "--task language_modeling_resumable --decoder-layers 2 --decoder-embed-dim 64 --decoder-ffn-embed-dim 128 "
    "--decoder-attention-heads 2 --criterion cross_entropy --tokens-per-sample 64 --batch-size 8"
).split()
PAIRS = 1500
# The plug-in's additions to the optimiser's state (mt_scaffold.experiment.fairseq_plugin.mixed_precision).
ADDED = ("fp32_params", "loss_scaler")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("translation", "llama", "gpt_neox"), default="translation")
    parser.add_argument("--precision", choices=PRECISIONS, nargs="+", default=list(PRECISIONS))
    parser.add_argument("--checkpoint", type=int, default=60, help="the update that is saved")
    parser.add_argument("--kill", type=int, default=80, help="the update in which the training is killed")
    parser.add_argument("--updates", type=int, default=160, help="the last update")
    parser.add_argument("--folder", type=Path, help="work here and keep all files (default: a temporary folder)")
    parser.add_argument("fairseq_options", nargs="*", help="further options of fairseq-train, after --")
    options = parser.parse_args()
    model = TRANSLATION if options.model == "translation" else ["--arch", options.model, *LANGUAGE_MODEL]
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        data = prepare(folder) if options.model == "translation" else prepare_documents(folder)
        rows = []
        for name in options.precision:
            print(name, file=sys.stderr)
            command = [str(data), *model, *COMMON, *PRECISIONS[name], *options.fairseq_options]
            command += ["--max-update", str(options.updates)]
            rows.append([name, *measure(folder / name.replace(" ", "-"), command, options.checkpoint, options.kill)])
    print(
        f"| precision | killed in | losses equal of {options.updates - options.checkpoint}, with the plug-in "
        "| parameters, optimiser | without what it saves |\n|---|---|---|---|---|"
    )
    for row in rows:
        print(f"| {' | '.join(row)} |")
    return 0


def prepare(folder: Path) -> Path:
    """Make a data folder of words from generated text."""
    from mt_scaffold.experiment.binarise.pairs_as_words import binarise_words
    from mt_scaffold.experiment.binarise.segmentation import joint_segmentation
    from mt_scaffold.experiment.data.synthetic import sentence_pairs
    from mt_scaffold.methods.learn import learn_bpe

    words = folder / "train"
    pairs = list(itertools.islice(sentence_pairs(1), PAIRS))
    for side, language in enumerate(("qaa", "qab")):
        Path(f"{words}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    texts = [Path(f"{words}.{language}") for language in ("qaa", "qab")]
    (folder / "codes").write_bytes(learn_bpe(paths=texts, num_symbols=500).text)
    binarise_words(folder / "data", "qaa", "qab", joint_segmentation(folder / "codes"), words, words)
    return folder / "data"


def prepare_documents(folder: Path) -> Path:
    """Make a data folder of documents from generated text."""
    from mt_scaffold.experiment.binarise.documents import binarise_documents
    from mt_scaffold.experiment.data.synthetic import sentence_pairs
    from mt_scaffold.methods.learn import learn_bpe

    text, pairs = folder / "train", itertools.islice(sentence_pairs(1), PAIRS)
    text.write_text("".join(f"{target}\n" for _, target in pairs), encoding="utf-8")
    (folder / "codes").write_bytes(learn_bpe(paths=[text], num_symbols=500, pretokenise="gpt2").text)
    binarise_documents(folder / "data", folder / "codes", [text])
    return folder / "data"


def measure(folder: Path, command: list[str], checkpoint: int, kill: int) -> list[str]:
    """Return the cells of one precision."""
    command = [*command, "--save-interval-updates", str(checkpoint)]
    whole = train(folder / "whole", command)
    stopped = train(folder / "cut", command, kill)
    cells = [place_of(stopped, kill)]
    shutil.copytree(folder / "cut", folder / "fairseq-only")
    remove_from(folder / "fairseq-only" / "checkpoints", ADDED)
    for name in ("cut", "fairseq-only"):
        resumed = train(folder / name, command)
        assert min(resumed) == checkpoint + 1, f"resumed at {min(resumed)}"
        cells.append(described(whole, resumed))
        if name == "cut":
            cells.append(compare_last(folder / "whole", folder / name))
    return cells


def place_of(updates: dict[int, Any], kill: int) -> str:
    """Return the epoch and the sample of an update: a repeated id begins the next epoch."""
    epoch, seen = 1, set[int]()
    for update in range(1, kill + 1):
        ids = updates[update]["ids"]
        if seen.intersection(ids):
            epoch, seen = epoch + 1, set()
        seen.update(ids)
    return f"epoch {epoch}, after {len(seen):,} samples"


def compare_last(whole: Path, resumed: Path) -> str:
    """Return whether the last checkpoints hold the same parameters and optimisers, bit for bit."""
    import torch

    from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint

    states = [load_checkpoint(each / "checkpoints" / "checkpoint_last.pt") for each in (whole, resumed)]
    tensors = [dict(_tensors({key: each[key] for key in ("model", "last_optimizer_state")})) for each in states]
    assert tensors[0].keys() == tensors[1].keys()
    differing = [name for name, value in tensors[0].items() if not torch.equal(value, tensors[1][name])]
    return f"{len(differing)} of {len(tensors[0])} tensors differ" if differing else f"all {len(tensors[0])} equal"


def _tensors(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    import torch

    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, dict | list | tuple):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _tensors(each, f"{name}/{key}")


def described(whole: dict[int, Any], resumed: dict[int, Any]) -> str:
    """Return how many losses are equal, and the largest relative difference of the others."""
    batches = [update for update in resumed if resumed[update]["ids"] != whole[update]["ids"]]
    differing = [update for update in resumed if resumed[update]["loss"] != whole[update]["loss"]]
    text = f"{len(resumed) - len(differing)} of {len(resumed)}"
    if differing:
        relative = max(
            abs(float.fromhex(resumed[each]["loss"]) / float.fromhex(whole[each]["loss"]) - 1) for each in differing
        )
        text += f", from update {differing[0]} up to {relative:.0e} apart"
    return text + (f", BATCHES DIFFER from update {batches[0]}" if batches else "")


def remove_from(checkpoints: Path, names: tuple[str, ...]) -> None:
    """Remove entries of the optimiser's state from all checkpoints."""
    import torch

    from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint

    for path in checkpoints.glob("*.pt"):
        state = load_checkpoint(path)
        for name in names:
            state["last_optimizer_state"].pop(name, None)
        torch.save(state, path.with_suffix(".new"))
        path.with_suffix(".new").replace(path)


def train(folder: Path, command: list[str], kill: int = 0) -> dict[int, Any]:
    """Run a training to completion, or kill it in update ``kill``; return the record of each update of this run."""
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / "record.jsonl"
    record.unlink(missing_ok=True)
    command = [sys.executable, __file__, "--train", str(record), *command, "--save-dir", str(folder / "checkpoints")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with open(folder / "log", "ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
        while process.poll() is None:
            time.sleep(0.01)
            if kill and record.exists() and record.read_bytes().count(b"\n") >= kill:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if process.returncode not in (0, -signal.SIGKILL if kill else 0):
        raise SystemExit(f"{folder / 'log'}: the training failed, with status {process.returncode}")
    recorded = map(json.loads, record.read_text(encoding="utf-8").splitlines())
    return {each["update"]: each for each in recorded}


def train_and_record(record: str, arguments: list[str]) -> None:
    """Run fairseq-train in this process, and record every update: the ids of its sentences, and its loss."""
    from fairseq.tasks import FairseqTask
    from fairseq_cli import train as fairseq

    from mt_scaffold.experiment.runtime.fairseq import user_dir

    train_step = FairseqTask.train_step
    with open(record, "a", encoding="utf-8", buffering=1) as stream:

        def recorded(self: Any, sample: Any, *rest: Any, update_num: int, **named: Any) -> Any:
            result = train_step(self, sample, *rest, update_num=update_num, **named)
            noted = {"update": update_num + 1, "ids": sample["id"].tolist(), "loss": float(result[0]).hex()}
            stream.write(json.dumps(noted) + "\n")
            return result

        FairseqTask.train_step = recorded
        sys.argv = ["fairseq-train", *arguments, "--user-dir", str(user_dir()), "--cpu"]
        fairseq.cli_main()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--train"]:
        train_and_record(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(main())
