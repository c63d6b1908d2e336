"""A SLURM of two nodes, both on this machine, started and stopped for a test.

Each node is a separate slurmd. Needs root, slurm-wlm and munge (Debian's packages suffice), and no other SLURM.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

NODES = ("node1", "node2")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "sinfo", "squeue", "scontrol", "scancel")
# The steps of a job read only the default location, whatever SLURM_CONF is.
SYSTEM_FILES = [Path("/etc/slurm") / name for name in ("slurm.conf", "cgroup.conf", "gres.conf")]
# Seconds until the jobs of a lost node are requeued, until a requeued job may start, and from SIGTERM to SIGKILL.
NODE_TIMEOUT, REQUEUE_DELAY, KILL_WAIT = 15, 20, 5
# Devices that each node presents as its GPUs.
GPUS = ("/dev/null", "/dev/zero")
# Environment variables by which all processes of the test, and those of a node, are found.
_MARK, _NODE_MARK = "MT_SCAFFOLD_TEST_SLURM", "MT_SCAFFOLD_TEST_NODE"


def refusal() -> str | None:
    """Return why this machine cannot run the cluster; None if it can."""
    if os.geteuid() != 0:
        return "run as root"
    if missing := [program for program in PROGRAMS if shutil.which(program) is None]:
        return f"install slurm-wlm and munge (missing: {', '.join(missing)})"
    if present := [str(file) for file in SYSTEM_FILES if os.path.lexists(file)]:
        return f"this machine already has a SLURM ({present[0]}); run the test on a machine without one"
    return None


class Cluster:
    """A cluster; ``environment`` is that of its commands."""

    def __init__(self, folder: Path, environment: dict[str, str], task_prolog: str) -> None:
        """Write the configuration into ``folder``. task_prolog: a shell script that SLURM runs before each task."""
        self.folder = folder
        self.environment = {**os.environ, **environment, _MARK: str(folder)}
        self._daemons: list[subprocess.Popen[bytes]] = []
        for name in ("state", "logs", "munge", *NODES):
            (folder / name).mkdir()
        (folder / "munge.key").write_bytes(os.urandom(1024))
        (folder / "munge.key").chmod(0o400)
        (folder / "prolog").write_text(f"#!/bin/sh\n{task_prolog}")
        (folder / "prolog").chmod(0o755)
        gpus = "".join(f"Name=gpu File={device}\n" for device in GPUS)
        for file, text in zip(SYSTEM_FILES, (self._configuration(), "", gpus), strict=True):
            (folder / file.name).write_text(text)

    def _configuration(self) -> str:
        host = socket.gethostname().split(".")[0]
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
        settings = {
            "ClusterName": "test",
            "SlurmctldHost": f"{host}(127.0.0.1)",
            "SlurmUser": "root",
            "SlurmdUser": "root",
            "AuthType": "auth/munge",
            "AuthInfo": f"socket={self.folder}/munge/socket,cred_expire={REQUEUE_DELAY}",
            "CredType": "cred/munge",
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/affinity",
            "TaskProlog": f"{self.folder}/prolog",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_CPU",
            "GresTypes": "gpu",
            "PreemptType": "preempt/partition_prio",
            "PreemptMode": "REQUEUE",
            "JobRequeue": 1,
            "ReturnToService": 2,
            "MpiDefault": "none",
            "SlurmctldPort": 16817,
            "StateSaveLocation": f"{self.folder}/state",
            "SlurmdSpoolDir": f"{self.folder}/%n",
            "SlurmctldPidFile": f"{self.folder}/slurmctld.pid",
            "SlurmdPidFile": f"{self.folder}/%n/pid",
            "SlurmctldLogFile": f"{self.folder}/logs/slurmctld",
            "SlurmdLogFile": f"{self.folder}/logs/%n",
            "SlurmdTimeout": NODE_TIMEOUT,
            "KillWait": KILL_WAIT,
            "MinJobAge": 300,
        }
        lines = [f"{name}={value}" for name, value in settings.items()]
        for number, node in enumerate(NODES, 1):
            lines.append(
                f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={16820 + number} CPUs={os.cpu_count()} "
                f"RealMemory={memory} Gres=gpu:{len(GPUS)} State=UNKNOWN"
            )
        listed = ",".join(NODES)
        lines.append(f"PartitionName=test Nodes={listed} Default=YES MaxTime=INFINITE PriorityTier=1 State=UP")
        lines.append(f"PartitionName=urgent Nodes={listed} MaxTime=INFINITE PriorityTier=2 PreemptMode=OFF State=UP")
        return "\n".join(lines) + "\n"

    def start(self) -> None:
        """Start all daemons and wait until the nodes are idle."""
        for file in SYSTEM_FILES:
            file.parent.mkdir(exist_ok=True)
            file.symlink_to(self.folder / file.name)
        folder = self.folder
        munge = ["munged", "--foreground", "--force", f"--key-file={folder}/munge.key"]
        munge += [f"--socket={folder}/munge/socket", f"--pid-file={folder}/munged.pid"]
        munge += [f"--log-file={folder}/logs/munged", f"--seed-file={folder}/munged.seed"]
        for command in (munge, ["slurmctld", "-D"]):
            self._start(command)
            time.sleep(1)
        for node in NODES:
            self.start_node(node)
        self.wait_for_nodes("idle")

    def start_node(self, node: str) -> None:
        """Start a node, for the first time or after it was killed."""
        self._start(["slurmd", "-D", "-N", node], {_NODE_MARK: node})

    def _start(self, command: list[str], more: dict[str, str] | None = None) -> None:
        with open(self.folder / "logs" / f"{command[0]}.out", "ab") as log:
            environment = self.environment | (more or {})
            self._daemons.append(subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT))

    def wait_for_nodes(self, *states: str, seconds: int = 60) -> None:
        """Wait until each node has one of these states."""
        shown: list[str] = []
        for _ in range(seconds):
            shown = self.call("sinfo", "-h", "-N", "-p", "test", "-o", "%t").split()
            if len(shown) == len(NODES) and all(state in states for state in shown):
                return
            time.sleep(1)
        logs = "".join(path.read_text(errors="replace")[-2000:] for path in (self.folder / "logs").iterdir())
        raise SystemExit(f"the nodes are not {' or '.join(states)}: {shown}\n{logs}")

    def call(self, *command: str) -> str:
        """Return the output of a SLURM command."""
        return subprocess.run(command, env=self.environment, capture_output=True, text=True).stdout

    def kill_node(self, node: str) -> int:
        """Kill all processes of a node at once, as a power failure would; return their number."""
        tasks = _marked(f"SLURMD_NODENAME={node}")
        # Daemons first, so that they cannot report the end of a task.
        daemons = _marked(f"{_NODE_MARK}={node}") + [
            each for each in map(_parent, tasks) if _name(each) == "slurmstepd"
        ]
        killed = list(dict.fromkeys(daemons + tasks))
        _kill(killed)
        return len(killed)

    def stop(self) -> None:
        """Stop all daemons and all remaining processes."""
        # A hanging controller or an endless step must not keep the daemons alive.
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(["scancel", "--full", "-u", "root"], env=self.environment, capture_output=True, timeout=20)
        time.sleep(2)
        _kill(_marked(f"{_MARK}={self.folder}"))
        for daemon in self._daemons:
            daemon.wait()
        for file in SYSTEM_FILES:
            file.unlink(missing_ok=True)


@contextlib.contextmanager
def running(cluster: Cluster) -> Iterator[Cluster]:
    """Run ``cluster`` within the block."""
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def _marked(entry: str) -> list[int]:
    """Return the processes with ``NAME=VALUE`` in their environment, except this one."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if entry.encode() in path.read_bytes().split(b"\0") and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
    return found


def _name(process: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/comm").read_text().strip()
    return ""


def _parent(process: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _kill(processes: list[int]) -> None:
    for each in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
