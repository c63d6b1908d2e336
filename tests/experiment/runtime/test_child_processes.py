"""Programs that mt-scaffold starts end with it, and ignore its signal."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.runtime.fairseq import log_end, run_command

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
def test_no_program_survives_its_parent(tmp_path: Path) -> None:
    """An orphaned training would keep its GPUs, and block its folder for the next one."""
    log = tmp_path / "log"
    program = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(f'{{os.getpid()}}\\n'); time.sleep(60)"
    starter = (
        "import sys; from mt_scaffold.experiment.runtime.fairseq import run_command; "
        "run_command('train', [sys.executable, '-c', sys.argv[1]], sys.argv[2])"
    )
    parent = subprocess.Popen([sys.executable, "-c", starter, program, log])
    try:
        deadline = time.monotonic() + 30
        while not (tmp_path / "pid").exists() or not (written := (tmp_path / "pid").read_text()).endswith("\n"):
            assert time.monotonic() < deadline and parent.poll() is None
            time.sleep(0.01)
    finally:
        parent.kill()
        parent.wait()
    while is_running(int(written)):
        assert time.monotonic() < deadline, "the program still runs"
        time.sleep(0.01)


def is_running(process: int) -> bool:
    """Return whether a process exists and has not ended; a zombie counts as ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_a_program_ignores_the_signal_for_mt_scaffold(tmp_path: Path) -> None:
    """SLURM sends SIGUSR1 to every process of a job; only mt-scaffold knows what to do with it."""
    program = (
        "import os, signal\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\n"
        "print(signal.getsignal(signal.SIGUSR1).name, signal.SIGUSR1 in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    )
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    run_command("train", [sys.executable, "-c", program], tmp_path / "log")
    assert log_end(tmp_path / "log", 1, "") == "SIG_IGN False"
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    """Such as srun, outside a cluster."""
    with pytest.raises(MTScaffoldError, match="no-such-srun: No such file or directory"):
        run_command("train", ["no-such-srun", "x"], tmp_path / "log", {"PATH": os.defpath})


@pytest.mark.parametrize("given", [None, "0"])
def test_tensors_are_in_huge_pages_unless_told_otherwise(
    given: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The faster setting for CPUs is only a default, which an administrator may have changed."""
    monkeypatch.delenv("THP_MEM_ALLOC_ENABLE", raising=False)
    if given is not None:
        monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", given)
    program = "import os; print(os.environ['THP_MEM_ALLOC_ENABLE'])"
    run_command("train", [sys.executable, "-c", program], tmp_path / "log")
    assert log_end(tmp_path / "log", 1, "") == (given or "1")
