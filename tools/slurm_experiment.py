"""The small experiment that ``make test-slurm`` trains on the two nodes of slurm_cluster.py, with one CPU each."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml
from slurm_cluster import NODES, Cluster

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from wmt14_archives import derived_config, make_archives  # noqa: E402

from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint  # noqa: E402
from mt_scaffold.experiment.workflow import snakefile  # noqa: E402

PROFILE = snakefile().parent / "profiles" / "slurm" / "config.yaml"
# Small, to start quickly.
MODEL = {
    f"{side}-{name}": size
    for side in ("encoder", "decoder")
    for name, size in {"layers": 1, "embed-dim": 16, "ffn-embed-dim": 16, "attention-heads": 2}.items()
}
UPDATES, SAVE_EVERY = 300, 40
# Without GPUs, fairseq does not find the other processes through SLURM, but through these options and this environment.
ON_CPUS = {
    "distributed-world-size": len(NODES),
    "distributed-rank": -1,
    "distributed-init-method": "env://",
    "distributed-backend": "gloo",
    "distributed-no-spawn": True,
    "ddp-backend": "legacy_ddp",
}
TASK_PROLOG = """\
if [ "${SLURM_NTASKS:-1}" -gt 1 ]; then
  echo "export RANK=$SLURM_PROCID"
  echo "export WORLD_SIZE=$SLURM_NTASKS"
  echo "export MASTER_ADDR=127.0.0.1"
  echo "export MASTER_PORT=$((20000 + SLURM_JOB_ID))"
fi
"""
# Python imports it at startup: while the file ``slow`` exists, updates take long enough to be disturbed.
SITECUSTOMIZE = """\
import os, sys
if "RANK" in os.environ and os.path.exists({slow!r}) and "fairseq_cli.train" in sys.orig_argv:
    import time, torch.distributed as distributed
    exchange = distributed.all_reduce
    def slowly(*arguments, **options):
        time.sleep(0.1)
        return exchange(*arguments, **options)
    distributed.all_reduce = slowly
"""


class Experiment:
    """The experiment in ``folder``, on ``cluster``."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        """Make archives, configuration and profile."""
        self.folder, self.cluster = folder, cluster
        self.cache, self.slow = folder / "cache", folder / "slow"
        self.training = folder / "out" / "bpe" / "seed-1"
        self.reference = folder / "reference"
        (folder / "site").mkdir(exist_ok=True)
        (folder / "site" / "sitecustomize.py").write_text(SITECUSTOMIZE.format(slow=str(self.slow)))
        self.cache.mkdir(exist_ok=True)
        self.archive = self.cache / "training-parallel-nc-v11.tgz"
        if not (folder / "wmt14.yaml").exists():
            self._make()

    def _make(self) -> None:
        config = derived_config("de", self.cache, make_archives(self.cache, "de", pairs=600))
        config["codes"]["symbols"] = 200
        config["clean"]["max_ratio"] = 3.0
        config["systems"] = {"bpe": config["systems"]["bpe"]}
        config["compare_with"] = [entry for entry in config["compare_with"] if entry["beside"] == "bpe"]
        config["train"]["batch"] = "small"
        config["train"]["thin"] = True
        changed: dict[str, Any] = {"fp16": False, "num-workers": 0, "max-tokens": 400, "log-interval": 10}
        changed |= {"save-interval-updates": SAVE_EVERY, "disable-validation": True}
        config["train"]["options"] |= MODEL | changed | ON_CPUS
        config["train"]["batches"]["small"]["options"] |= {"max-update": UPDATES}
        config["average"]["last"] = 2
        config["translate"]["options"] |= {"fp16": False, "max-len-b": 10}
        config["score"]["bootstrap_samples"] = 20
        # Nothing listens on port 9.
        config["data"]["archives"]["train"][2]["archive"]["url"] = f"http://127.0.0.1:9/{self.archive.name}"
        (self.folder / "wmt14.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")

    def start(self, *targets: Path, **train: Any) -> subprocess.Popen[str]:
        """Start the workflow with the profile. train: resources of the training to change."""
        profile = small_profile()
        profile["set-resources"]["train"] |= {"gpu": 0, "cpus_per_gpu": 0, "runtime": 30} | train
        write_profile(self.folder, profile)
        return self._snakemake("--profile", str(self.folder / "profile"), targets=map(str, targets))

    def prepare(self) -> None:
        """Make the data folders without SLURM: Snakemake polls its jobs too rarely for such short steps."""
        self.finish(self._snakemake("--cores", "2", "--until", "binarise"))

    def _snakemake(self, *options: str, targets: Iterable[str] = ()) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "snakemake", "-s", str(snakefile()), *options]
        command += ["--configfile", str(self.folder / "wmt14.yaml")]
        command += ["--config", f"output={self.folder / 'out'}", f"cache={self.cache}", "--", *targets]
        with open(self.folder / "snakemake.txt", "w") as output:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.cluster.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
            )

    def train_again(self, disturb: Callable[[], None], **train: Any) -> None:
        """Train from scratch, slowly, with a disturbance, and check that the result is that of the first training."""
        shutil.rmtree(self.training, ignore_errors=True)
        self.slow.touch()
        process = self.start(self.training / "training.json", **train)
        try:
            disturb()
            self.finish(process)
        finally:
            process.kill()
            process.wait()
            self.slow.unlink(missing_ok=True)
        log = self.log()
        resumed = [int(number) for number in re.findall(r"Loaded checkpoint \S+ \(epoch \d+ @ (\d+) updates\)", log)]
        print(f"  resumed from the checkpoints of updates {resumed}", flush=True)
        assert resumed and all(0 < update < UPDATES for update in resumed), log[-3000:]
        folders = (self.reference, self.training)
        states = [load_checkpoint(folder / "checkpoints" / "checkpoint_last.pt") for folder in folders]
        assert states[0]["optimizer_history"][-1]["num_updates"] == UPDATES
        for key in ("model", "last_optimizer_state"):
            assert same(states[0][key], states[1][key]), f"{key} differs from that of the undisturbed training"
        print(f"  model and optimiser after {UPDATES} updates are those of the undisturbed training", flush=True)

    def finish(self, process: subprocess.Popen[str]) -> None:
        """Wait for a workflow; exit with its logs if it fails."""
        if process.wait():
            for path in [self.folder / "snakemake.txt", *(self.folder / "out" / "logs").glob("*.log")]:
                print(f"== {path.name}\n{path.read_text(errors='replace')[-3000:]}")
            raise SystemExit("the workflow failed")

    def log(self) -> str:
        """Return the log of the training."""
        path = self.training / "train.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def step_log(self, name: str) -> str:
        """Return the log of a step."""
        path = self.folder / "out" / "logs" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else (self.folder / "snakemake.txt").read_text()

    def wait_for_update(self, update: int, attempt: int = 1) -> None:
        """Wait until the training has logged this update in its run number ``attempt``."""
        self.wait_for(lambda: last_update(self.log().split("\n$ ")[attempt - 1 :]) >= update, f"update {update}")

    def wait_for(self, condition: Callable[[], bool], event: str, seconds: int = 400) -> None:
        """Wait until the condition holds; exit after ``seconds``."""
        for _ in range(seconds * 2):
            if condition():
                return
            time.sleep(0.5)
        raise SystemExit(f"no {event} within {seconds} s\n{self.cluster.call('squeue')}\n{self.log()[-3000:]}")

    def job(self) -> str:
        """Return the number of the training's job."""
        lines = self.cluster.call("squeue", "-h", "-o", "%i %k").splitlines()
        return next(line.split()[0] for line in lines if "train" in line)

    def shown(self, job: str, field: str) -> str:
        """Return a field of a job as scontrol shows it."""
        found = re.search(rf"\b{field}=(\S+)", self.cluster.call("scontrol", "show", "job", job))
        return found[1] if found else "?"


def small_profile() -> dict[str, Any]:
    """Return the profile slurm with its lines for two nodes, and with sizes that fit this machine."""
    _, _, rest = PROFILE.read_text(encoding="utf-8").partition("    # For two nodes")
    lines = [line.replace("# ", "", 1) for line in rest.partition("\n  translate:")[0].splitlines()[1:]]
    profile: dict[str, Any] = yaml.safe_load(PROFILE.read_text(encoding="utf-8"))
    profile["set-resources"]["train"] |= yaml.safe_load("\n".join(lines))
    # Without retries, because SLURM must requeue a training.
    profile |= {"cores": 2, "jobs": 4, "retries": 0, "latency-wait": 5, "seconds-between-status-checks": 5}
    # This SLURM has no accounting, so sacct shows nothing.
    profile |= {"slurm-init-seconds-before-status-checks": 5, "slurm-status-command": "squeue"}
    profile["default-resources"] |= {"mem_mb": 500, "runtime": 20}
    profile["set-threads"] = dict.fromkeys(profile["set-threads"], 1)
    resources = {rule: {**given, "mem_mb": 500} for rule, given in profile["set-resources"].items()}
    profile["set-resources"] = resources
    for rule in ("translate", "losses"):
        profile["set-resources"][rule] |= {"gpu": 0, "cpus_per_gpu": 0}
    return profile


def write_profile(folder: Path, profile: dict[str, Any]) -> None:
    (folder / "profile").mkdir(exist_ok=True)
    (folder / "profile" / "config.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")


def last_update(runs: list[str]) -> int:
    """Return the last update in the first of some logs of fairseq; 0 if there is none."""
    return max(map(int, re.findall(r"num_updates=(\d+)", runs[0])), default=0) if runs else 0


def same(one: Any, other: Any) -> bool:
    """Return whether two parts of a checkpoint are equal, bit for bit."""
    import torch

    if isinstance(one, torch.Tensor):
        return bool(torch.equal(one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    equal: bool = one == other
    return equal
