"""``make test-slurm``: run the workflow on a real SLURM of one node, started and stopped here.

Needs root, slurm-wlm and munge (Debian's packages suffice). Submits a small experiment with configs/profiles/slurm:
first with a missing archive, which must fail with one clear line; then complete, with a training that cannot finish
within its time limit of a minute: SLURM kills it, and each new attempt resumes from the last checkpoint.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from wmt14_archives import derived_config, make_archives  # noqa: E402

SYSTEM_FILES = [Path("/etc/slurm") / name for name in ("slurm.conf", "cgroup.conf")]
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "sinfo", "scontrol")
# Small enough to start quickly.
MODEL = {
    f"{side}-{name}": size
    for side in ("encoder", "decoder")
    for name, size in {"layers": 1, "embed-dim": 16, "ffn-embed-dim": 16, "attention-heads": 2}.items()
}
# Training time of all attempts together; SLURM kills within half a minute after the limit of a minute.
SECONDS = 100


@contextlib.contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Run a SLURM with this machine as its only node; yield the environment that its commands need."""
    host = socket.gethostname().split(".")[0]
    key, socket_path = folder / "munge.key", folder / "munge" / "socket"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    socket_path.parent.mkdir()
    for name in ("state", "spool", "logs"):
        (folder / name).mkdir()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    (folder / "slurm.conf").write_text(
        f"ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n"
        f"AuthType=auth/munge\nAuthInfo=socket={socket_path}\nCredType=cred/munge\n"
        "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/cons_tres\n"
        "SelectTypeParameters=CR_CPU\nJobRequeue=1\nReturnToService=2\nMpiDefault=none\n"
        f"SlurmctldPort=16817\nSlurmdPort=16818\nStateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool\n"
        f"SlurmctldPidFile={folder}/slurmctld.pid\nSlurmdPidFile={folder}/slurmd.pid\nKillWait=5\n"
        f"SlurmctldLogFile={folder}/logs/slurmctld\nSlurmdLogFile={folder}/logs/slurmd\nMinJobAge=300\n"
        f"NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} RealMemory={memory} State=UNKNOWN\n"
        f"PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP\n"
    )
    (folder / "cgroup.conf").write_text("")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    commands = [
        [
            "munged",
            "--foreground",
            "--force",
            f"--key-file={key}",
            f"--socket={socket_path}",
            f"--pid-file={folder}/munged.pid",
            f"--log-file={folder}/logs/munged",
            f"--seed-file={folder}/munged.seed",
        ],
        ["slurmctld", "-D"],
        ["slurmd", "-D", "-N", host],
    ]
    started: list[subprocess.Popen[bytes]] = []
    try:
        # The steps of a job read the default location only, whatever SLURM_CONF is.
        for file in SYSTEM_FILES:
            file.parent.mkdir(exist_ok=True)
            file.symlink_to(folder / file.name)
        for command in commands:
            with open(folder / "logs" / f"{command[0]}.out", "wb") as log:
                started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT))
            time.sleep(1)
        for _ in range(60):
            shown = subprocess.run(["sinfo", "-h", "-o", "%t"], env=environment, capture_output=True, text=True)
            if shown.stdout.strip() == "idle":
                break
            time.sleep(1)
        else:
            logs = "".join(path.read_text(errors="replace")[-2000:] for path in (folder / "logs").iterdir())
            raise SystemExit(f"SLURM does not start: {shown.stdout}{shown.stderr}\n{logs}")
        yield environment
    finally:
        # A hanging controller or an endless step must not keep the daemons alive.
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(["scancel", "--full", "-u", "root"], env=environment, capture_output=True, timeout=20)
        time.sleep(8)  # a little longer than KillWait
        for process in reversed(started):
            process.terminate()
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for file in SYSTEM_FILES:
            file.unlink(missing_ok=True)


def run(folder: Path, environment: dict[str, str], retries: int) -> subprocess.CompletedProcess[str]:
    """Run the workflow with the profile for SLURM, with GPUs, memory and times that fit this machine."""
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "scripts" / "Snakefile")]
    command += ["--configfile", str(folder / "wmt14.yaml"), "--profile", str(ROOT / "configs" / "profiles" / "slurm")]
    command += ["--config", f"output={folder / 'out'}", f"cache={folder / 'cache'}"]
    command += ["--cores", "2", "--jobs", "4", "--retries", str(retries), "--latency-wait", "5"]
    command += ["--default-resources", "mem_mb=500", "runtime=20", "--seconds-between-status-checks", "5"]
    # This SLURM has no accounting, so sacct shows nothing.
    command += ["--slurm-init-seconds-before-status-checks", "5", "--slurm-status-command", "squeue"]
    command += [
        "--set-threads",
        *(f"{rule}=1" for rule in ("learn", "dictionary", "binarise", "binarise_words", "binarise_test_set")),
    ]
    rules = ("learn", "dictionary", "binarise", "binarise_words", "binarise_test_set", "get_data")
    command += ["--set-resources", *(f"{rule}:mem_mb=500" for rule in rules)]
    # A minute is SLURM's shortest limit. This also tests srun from within a job step.
    command += ["train:gpu=0", "train:cpus_per_gpu=0", "train:mem_mb=500", "train:runtime=1", "train:launcher=srun"]
    command += ["translate:gpu=0", "translate:cpus_per_gpu=0", "translate:mem_mb=500", "translate:runtime=20"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def main() -> int:
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if os.geteuid() != 0 or missing:
        print(
            f"test-slurm: run as root, with slurm-wlm and munge installed (missing: {', '.join(missing) or 'root'})",
            file=sys.stderr,
        )
        return 1
    for file in SYSTEM_FILES:
        if os.path.lexists(file):
            print(
                f"test-slurm: this machine already has a SLURM ({file}); run the test on a machine without one",
                file=sys.stderr,
            )
            return 1
    with tempfile.TemporaryDirectory(prefix="mt-scaffold-slurm-") as name:
        folder = Path(name)
        (folder / "cache").mkdir()
        config = derived_config("de", folder / "cache", make_archives(folder / "cache", "de"))
        config["codes"]["symbols"] = 200
        config["prepare"]["chunks"] = 2
        config["clean"]["max_ratio"] = 3.0
        config["systems"] = {"bpe": config["systems"]["bpe"]}
        config["compare_with"] = [entry for entry in config["compare_with"] if entry["beside"] == "bpe"]
        config["train"]["batch"] = "small"
        changed: dict[str, float] = {"fp16": False, "num-workers": 0, "max-tokens": 400, "save-interval-updates": 20}
        # fairseq also counts the seconds of earlier attempts, so one attempt is never enough, however fast.
        changed |= {"stop-time-hours": SECONDS / 3600}
        config["train"]["options"] |= MODEL | changed
        config["train"]["batches"]["small"]["options"] |= {"max-update": 10**6}
        config["average"]["last"] = 2
        config["translate"]["options"] |= {"fp16": False, "max-len-b": 10}
        config["score"]["bootstrap_samples"] = 20
        # Nothing listens on port 9.
        archive = folder / "cache" / "training-parallel-nc-v9.tgz"
        config["data"]["archives"]["train"][2]["archive"]["url"] = f"http://127.0.0.1:9/{archive.name}"
        (folder / "wmt14.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        with slurm(folder) as environment:
            print("SLURM is running. First run: one archive is missing.", flush=True)
            away = archive.rename(folder / archive.name)
            failed = run(folder, environment, retries=0)
            printed = (folder / "out" / "logs" / "get-data.log").read_text()
            assert failed.returncode != 0, failed.stdout
            assert f"{archive.name}: cannot be fetched, no connection" in printed, printed
            assert "Traceback" not in printed, printed

            print("Failed as expected. Second run: complete, with a minute for each attempt to train.", flush=True)
            away.rename(archive)
            start = time.time()
            done = run(folder, environment, retries=20)
            printed = done.stdout + done.stderr
            if done.returncode:
                print(printed[-6000:])
                for step_log in (folder / "out" / "logs").glob("*.log"):
                    print(f"== {step_log.name}\n{step_log.read_text(errors='replace')[-800:]}")
                return 1
            training = folder / "out" / "bpe" / "seed-1"
            log = (training / "train.log").read_text(errors="replace")
            attempts = len(re.findall(r"^\$ ", log, re.MULTILINE))
            resumed = re.findall(r"Loaded checkpoint .*checkpoint_last\.pt \(epoch \d+ @ (\d+) updates\)", log)
            report = json.loads((training / "training.json").read_text())
            updates = report["updates"]
            killed = sum(
                path.read_text(errors="replace").count("DUE TO TIME LIMIT")
                for path in (folder / ".snakemake").rglob("*.log")
            )
            print(
                f"{attempts} attempts to train; SLURM reported the time limit {killed} times; resumed from updates "
                f"{', '.join(resumed)}, finished at {updates}; {time.time() - start:.0f} s in total"
            )
            assert killed
            assert (folder / "out" / "comparison.txt").exists()
            assert report["seconds"] >= SECONDS, report
            assert attempts >= 2 and resumed and all(0 < int(update) < updates for update in resumed), log[-3000:]
            print((folder / "out" / "comparison.txt").read_text())
    print("test-slurm: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
