"""Commands of scripts/smoke_gpu.sh: run and watch a training, also in two processes; kill, compare and describe it."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from mt_scaffold.experiment.configuration.layout import CHECKPOINTS, TRAINING_LOG
from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint
from mt_scaffold.experiment.runtime.fairseq import sees_gpu
from mt_scaffold.experiment.training.train import start_with

# The file of the observations in a training's folder.
_SEEN = "seen.json"
_POLL_SECONDS = 0.05
# Losses are logged with three decimals.
_ROUNDING = 0.0015
# If no two trainings are equal, a resumed one may be this many times as far from the first as an undisturbed one.
_FARTHER = 2.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("device", help="print the GPU or CPU")
    running = commands.add_parser("run", help="run a training, the command after --, and watch it")
    running.add_argument("folder", type=Path, help="of the training")
    running.add_argument("--kill-like", type=Path, help="kill it at three quarters of the updates of this training")
    pair = commands.add_parser("pair", help="train in two processes on the CPU, with the options after --")
    pair.add_argument("data", type=Path)
    pair.add_argument("folder", type=Path, help="of the training")
    comparing = commands.add_parser("compare", help="compare losses and weights; status 1 if they differ")
    comparing.add_argument("folders", nargs=2, type=Path)
    judging = commands.add_parser(
        "judge", help="status 1 if a resumed training differs more from a whole one than a second whole one does"
    )
    judging.add_argument("folders", nargs=3, type=Path, metavar="FOLDER", help="the whole one, the second, the resumed")
    describing = commands.add_parser("describe", help="print the observations of a training")
    describing.add_argument("folder", type=Path)
    # The command itself may contain a --.
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options = parser.parse_args(sys.argv[1:end])
    if options.command == "device":
        print(device())
    elif options.command == "run":
        kill_at = None if options.kill_like is None else len(losses(options.kill_like)) * 3 // 4
        return run(options.folder, sys.argv[end + 1 :], kill_at)
    elif options.command == "pair":
        return train_pair(options.data, options.folder, sys.argv[end + 1 :])
    elif options.command == "compare":
        return 0 if compare(*options.folders) else 1
    elif options.command == "judge":
        return 0 if judge(*options.folders) else 1
    else:
        describe(options.folder)
    return 0


def device() -> str:
    """Return the device that a training uses, and the version of PyTorch."""
    import torch

    name = f"GPU {torch.cuda.get_device_name()}" if sees_gpu() else f"CPU, {os.cpu_count()} cores"
    return f"{name}; PyTorch {torch.__version__}, Python {sys.version.split()[0]}"


def run(folder: Path, command: list[str], kill_at: int | None) -> int:
    """Run a training; at update ``kill_at`` kill all its processes. Return 0 if it ended as intended."""
    log = folder / TRAINING_LOG
    folder.mkdir(parents=True, exist_ok=True)
    # A resumed training appends to its log.
    position = log.stat().st_size if log.exists() else 0
    resumed, begin, processes = position > 0, time.monotonic(), 0
    seconds: dict[int, float] = {}
    with open(folder / "output.txt", "w+b") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        while process.poll() is None:
            time.sleep(_POLL_SECONDS)
            with open(log, "rb") if log.exists() else open(os.devnull, "rb") as stream:
                stream.seek(position)
                whole_lines = stream.read().rpartition(b"\n")
            position += len(whole_lines[0]) + len(whole_lines[1])
            for values in read_updates(whole_lines[0].decode("utf-8", "replace")):
                seconds[int(values["num_updates"])] = time.monotonic() - begin
                processes = max(processes, len(descendants(process.pid)))
            if kill_at is not None and seconds and max(seconds) >= kill_at:
                kill(process)
                print(f"killed at update {max(seconds)}, with all its {processes} processes")
                return 0
        output.seek(0)
        said = output.read().decode("utf-8", "replace").strip().splitlines()
    if process.returncode or kill_at is not None or not seconds:
        print(f"failed, status {process.returncode}: {reason(said)}")
        return 1
    if resumed:
        print(f"resumed, with update {min(seconds)} first")
    (folder / _SEEN).write_text(json.dumps({"processes": processes, "seconds": seconds}), encoding="utf-8")
    return 0


def train_pair(data: Path, folder: Path, options: list[str]) -> int:
    """Train in two processes that exchange gradients with gloo; the first writes the log. Return their status."""
    # Two processes that exchange gradients with NCCL cannot share a GPU.
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    os.environ.update(environment)
    shared = ["--distributed-world-size", "2", "--distributed-backend", "gloo", "--distributed-no-spawn"]
    command = start_with(data, folder, [*options, *shared, "--ddp-backend", "legacy_ddp"]).command
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder.mkdir(parents=True, exist_ok=True)
    processes = []
    for rank in (0, 1):
        own = ["--distributed-init-method", f"tcp://127.0.0.1:{port}", "--distributed-rank", str(rank)]
        with open(folder / (f"rank-{rank}.log" if rank else TRAINING_LOG), "ab") as log:
            processes.append(subprocess.Popen([*command, *own], stdout=log, stderr=subprocess.STDOUT, env=environment))
    while all(process.poll() is None for process in processes):
        time.sleep(_POLL_SECONDS)
    # The other would wait for ever for gradients.
    if any(process.poll() for process in processes):
        for process in processes:
            process.kill()
        print((folder / TRAINING_LOG).read_text(encoding="utf-8", errors="replace")[-2000:])
    return max(abs(process.wait()) for process in processes)


def reason(said: list[str]) -> str:
    """Return the line with the cause of failure in a command's output."""
    errors = [line for line in said if re.search(r"^\s*\|?\s*\w*(Error|Exception)\b", line)]
    return (errors or said or ["nothing was printed"])[-1].strip()


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its descendants, as the failure of a machine would."""
    for each in descendants(process.pid):
        os.kill(each, signal.SIGSTOP)
    for each in descendants(process.pid):
        os.kill(each, signal.SIGKILL)
    process.wait()


def descendants(root: int) -> list[int]:
    """Return a process and its descendants."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name in parentheses may contain any character.
            parent = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    found = [root]
    for each in found:
        found += children.get(each, [])
    return found


def read_updates(text: str) -> list[dict[str, Any]]:
    """Return the values that fairseq logged for each update."""
    return [json.loads(found) for found in re.findall(r"\| INFO \| train_inner \| (\{.*\})", text)]


def losses(folder: Path) -> dict[int, str]:
    """Return the logged loss of each update, the last one if it was logged twice."""
    text = (folder / TRAINING_LOG).read_text(encoding="utf-8", errors="replace")
    return {int(values["num_updates"]): values["loss"] for values in read_updates(text)}


def compare(before: Path, after: Path) -> bool:
    """Print and return whether two trainings are equal, from the first update of the last run of ``after``."""
    first = min(map(int, seen(after)["seconds"]))
    old, new = losses(before), losses(after)
    differing = [update for update in sorted(old | new) if update >= first and old.get(update) != new.get(update)]
    shown = differing[0] if differing else first
    print(
        f"losses of updates {first} to {max(old)} equal: {'NO' if differing else 'yes'} "
        f"(update {shown}: {old.get(shown)} and {new.get(shown)}; update {max(old)}: {old[max(old)]} and "
        f"{new.get(max(old))})"
    )
    models = [load_checkpoint(folder / CHECKPOINTS / "checkpoint_last.pt")["model"] for folder in (before, after)]
    difference = max(float((models[0][name].float() - models[1][name].float()).abs().max()) for name in models[0])
    print(f"weights at the end equal: {'NO, the largest difference is' if difference else 'yes,'} {difference:.3g}")
    return not differing and difference == 0


def judge(whole: Path, again: Path, resumed: Path) -> bool:
    """Return whether a resumed training is about as close to a whole one as a second whole one; print both distances.

    The distance is the mean difference of the losses, starting at the first update after the kill. By chance, trainings
    differ little at first; one that resumed with other data, another learning rate or without the optimiser's state
    differs at once.
    """
    first = min(map(int, seen(resumed)["seconds"]))
    expected = losses(whole)

    def distance(folder: Path, last: int) -> float:
        found = losses(folder)
        updates = [update for update in expected if first <= update <= last]
        return sum(abs(float(found[update]) - float(expected[update])) for update in updates) / len(updates)

    good = losses(whole).keys() == losses(again).keys() == losses(resumed).keys()
    # The first updates alone as well, because chance grows with every update.
    for last in (min(first + 4, max(expected)), max(expected)) if good else ():
        undisturbed, other = distance(again, last), distance(resumed, last)
        good &= other <= _FARTHER * undisturbed + _ROUNDING
        print(
            f"losses of updates {first} to {last}: two undisturbed ones differ by {undisturbed:.4f} on average, the "
            f"resumed one by {other:.4f}"
        )
    return good


def seen(folder: Path) -> dict[str, Any]:
    """Return the observations that ``run`` wrote."""
    noted: dict[str, Any] = json.loads((folder / _SEEN).read_text(encoding="utf-8"))
    return noted


def describe(folder: Path) -> None:
    """Print the speed of a training, its number of processes, and the time to start an epoch."""
    noted = seen(folder)
    seconds = {int(update): when for update, when in noted["seconds"].items()}
    text = (folder / TRAINING_LOG).read_text(encoding="utf-8", errors="replace")
    epoch = {int(values["num_updates"]): int(values["epoch"]) for values in read_updates(text)}
    second = min((update for update in epoch if epoch[update] == 2), default=None)
    summaries = [json.loads(found) for found in re.findall(r"\| INFO \| train \| (\{.*\})", text)]
    speed = ", ".join(f"{float(values['train_wps']):,.0f}" for values in summaries)
    print(
        f"{len(seconds)} updates in {max(epoch.values())} epochs; {speed} target tokens per second in each; "
        f"at most {noted['processes']} processes"
    )
    if second is not None:
        print(f"from the last update of epoch 1 to the first of epoch 2: {seconds[second] - seconds[second - 1]:.2f} s")
    waited = re.findall(r"epoch (\d+): waited ([\d.]+) s for its lengths", text)
    shown = ", ".join(f"epoch {number} {time} s" for number, time in waited)
    print(f"waited for the lengths of the sentences: {shown or 'not available, this task does not log it'}")


if __name__ == "__main__":
    sys.exit(main())
