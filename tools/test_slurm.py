"""``make test-slurm``: run the workflow on a real SLURM of two nodes, started and stopped here.

    python tools/test_slurm.py [--folder DIR] [SCENARIO ...]

Submits a small experiment with the profile slurm, whose training runs on both nodes, with one process each on the CPU
(gloo). After a complete run, the training is repeated with each disturbance: a time limit, a preemption, a dead node.
Each must end with the checkpoint of the first. Needs root, slurm-wlm and munge (Debian's packages suffice).
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from slurm_cluster import GPUS, NODES, Cluster, refusal, running
from slurm_experiment import ROOT, SAVE_EVERY, TASK_PROLOG, Experiment, small_profile, write_profile


def complete(experiment: Experiment) -> None:
    """Without an archive, the workflow fails with one line; with it, it prepares the data, trains and compares."""
    away = experiment.archive.rename(experiment.folder / experiment.archive.name)
    failed = experiment.start()
    experiment.wait_for(lambda: failed.poll() is not None, "end of the workflow")
    printed = experiment.step_log("get-data")
    assert failed.returncode != 0
    assert f"{experiment.archive.name}: cannot be fetched, no connection" in printed, printed
    assert "Traceback" not in printed, printed
    print("  one archive is missing: failed with one line, as it should", flush=True)
    away.rename(experiment.archive)
    experiment.prepare()
    experiment.finish(experiment.start())
    log = experiment.log()
    assert log.count("initialized host") == 2 and "training on 2 devices" in log, log[-3000:]
    print((experiment.folder / "out" / "comparison.txt").read_text(), flush=True)
    experiment.training.rename(experiment.reference)


def time_limit(experiment: Experiment) -> None:
    """SLURM sends SIGUSR1 before the limit; the training saves a checkpoint and its job is requeued."""
    # Two minutes, because SLURM's limits are whole minutes and the signal may come 30 seconds earlier.
    job, restarts = "", ""

    def watch() -> None:
        nonlocal job, restarts
        experiment.wait_for_update(10)
        job = experiment.job()
        experiment.wait_for_update(10, attempt=2)
        restarts = experiment.shown(job, "Restarts")
        # One requeue is enough.
        experiment.cluster.call("scontrol", "update", f"JobId={job}", "TimeLimit=60")

    experiment.train_again(watch, runtime=2, slurm_extra="'--signal=USR1@30'")
    stopped = re.findall(r"stopped on request after update (\d+)", experiment.log())
    print(f"  job {job}: requeued {restarts} time(s) after the signal, stopped after updates {stopped}", flush=True)
    assert len(stopped) == 1 and restarts == "1"


def preemption(experiment: Experiment) -> None:
    """A job of a partition with a higher priority takes both nodes; SLURM requeues the training."""

    def disturb() -> None:
        experiment.wait_for_update(3 * SAVE_EVERY // 2)
        job = experiment.job()
        call = experiment.cluster.call
        call("sbatch", "-p", "urgent", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap", "sleep 10")
        experiment.wait_for_update(10, attempt=2)
        print(f"  job {job}: preempted, requeued {experiment.shown(job, 'Restarts')} time(s)", flush=True)

    experiment.train_again(disturb)


def dead_node(experiment: Experiment) -> None:
    """All processes of the node that runs the job's script are killed; SLURM requeues the training."""

    def disturb() -> None:
        experiment.wait_for_update(3 * SAVE_EVERY // 2)
        job, cluster = experiment.job(), experiment.cluster
        node = experiment.shown(job, "BatchHost")
        killed = cluster.kill_node(node)
        begin = time.monotonic()
        experiment.wait_for(lambda: "down" in cluster.call("sinfo", "-h", "-N", "-o", "%t"), "node that is down")
        print(f"  {node}: {killed} processes killed; down after {time.monotonic() - begin:.0f} s", flush=True)
        cluster.start_node(node)
        experiment.wait_for_update(10, attempt=2)
        print(f"  job {job}: requeued {experiment.shown(job, 'Restarts')} time(s)", flush=True)

    experiment.train_again(disturb)


# A rule train whose processes only print their resources.
GEOMETRY = f"""
rule train:
    output: "geometry.txt"
    resources: gpu=0, nodes=1, launcher="fairseq"
    shell:
        "{sys.executable} {__file__} geometry "
        "{{resources.launcher}} {{resources.nodes}} {{resources.gpu}} > {{output}}"
"""


def recipe(experiment: Experiment) -> None:
    """The profile's lines for two nodes start one process per node, with all its GPUs and processors."""
    folder = experiment.folder / "recipe"
    folder.mkdir(exist_ok=True)
    (folder / "geometry.txt").unlink(missing_ok=True)
    profile = small_profile()
    profile["set-resources"]["train"] |= {"gpu": len(GPUS) * len(NODES), "cpus_per_gpu": 1}
    write_profile(folder, profile)
    (folder / "Snakefile").write_text(GEOMETRY)
    command = [sys.executable, "-m", "snakemake", "--profile", str(folder / "profile"), "--workflow-profile", "none"]
    done = subprocess.run(command, cwd=folder, env=experiment.cluster.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = sorted((folder / "geometry.txt").read_text().splitlines())
    print("".join(f"  {line}\n" for line in lines), end="", flush=True)
    expected = [f"node {number}, {len(GPUS)} processors, {len(GPUS)} GPUs" for number in range(len(NODES))]
    assert lines == expected, lines


def geometry(launcher: str, nodes: str, gpus: str) -> None:
    """Start processes as the launcher does for a training; each only prints its resources."""
    from mt_scaffold.experiment.runtime.fairseq import launcher_command

    shown = "import os; print('node', os.environ['SLURM_NODEID'] + ',', len(os.sched_getaffinity(0)), 'processors,', "
    shown += "os.environ['SLURM_GPUS_ON_NODE'], 'GPUs')"
    launch = launcher_command(launcher, int(nodes), int(gpus) // int(nodes))
    subprocess.run([*launch, sys.executable, "-c", shown], check=True)


SCENARIOS: dict[str, Callable[[Experiment], None]] = {
    "recipe": recipe,
    "complete": complete,
    "limit": time_limit,
    "preemption": preemption,
    "node": dead_node,
}


def main() -> int:
    if sys.argv[1:2] == ["geometry"]:
        geometry(*sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)} (default: all)")
    parser.add_argument("--folder", type=Path, help="work here and keep all files, so that ``complete`` is run once")
    options = parser.parse_args()
    chosen = options.scenarios or list(SCENARIOS)
    if unknown := [name for name in chosen if name not in SCENARIOS]:
        parser.error(f"no scenario is called {unknown[0]}; choose from {', '.join(SCENARIOS)}")
    if reason := refusal():
        print(f"test-slurm: {reason}", file=sys.stderr)
        return 1
    with contextlib.ExitStack() as stack:
        folder = options.folder
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mt-scaffold-slurm-")))
        folder = folder.resolve()
        # Disturbed trainings are compared with an undisturbed one.
        if set(chosen) - {"recipe", "complete"} and not (folder / "reference").exists():
            chosen = [name for name in SCENARIOS if name in {*chosen, "complete"}]
        shutil.rmtree(folder / "slurm", ignore_errors=True)
        (folder / "slurm").mkdir(parents=True)
        environment = {"PYTHONPATH": f"{folder / 'site'}:{ROOT}", "OMP_NUM_THREADS": "1"}
        cluster = stack.enter_context(running(Cluster(folder / "slurm", environment, TASK_PROLOG)))
        print(f"SLURM is running: {' '.join(cluster.call('sinfo', '-h', '-N', '-p', 'test').split())}", flush=True)
        experiment = Experiment(folder, cluster)
        for name in chosen:
            print(f"== {name}: {SCENARIOS[name].__doc__}", flush=True)
            begin = time.monotonic()
            SCENARIOS[name](experiment)
            cluster.wait_for_nodes("idle")
            print(f"  {time.monotonic() - begin:.0f} s", flush=True)
    print(f"test-slurm: passed ({', '.join(chosen)})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
