"""Run fairseq's programs, each in a child process with a log."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated

from mt_scaffold.corpus.files import PathLike, explain_os_error
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.runtime.child_processes import BLOCKED, child_command
from mt_scaffold.experiment.runtime.schema import OptionValue
from mt_scaffold.options import refuse_text
from mt_scaffold.options_from_signature import Option

_LOG_END = 25
_PYTHON = (sys.executable, "-P")
LAUNCHERS = ("fairseq", "torchrun", "srun")
FairseqOptions = Annotated[Sequence[str], Option("-- OPTIONS", positional=True)]
# A PyTorch build for each major version of CUDA; any driver of that version runs it.
_WHEELS = {11: "cu118", 12: "cu126", 13: "cu130"}
# The device files of NVIDIA's driver, on Linux and in WSL, and of AMD's.
_GPU_DEVICES = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
# With its default of 8, fairseq drops a last batch of up to 7 sentences.
WHOLE_DATA_SET: dict[str, OptionValue] = {"required-batch-size-multiple": 1}


def user_dir() -> Path:
    """Return the folder for fairseq's ``--user-dir``.

    Print the folder for fairseq's --user-dir, with which its commands can load our checkpoints.
    """
    return Path(__file__).resolve().parent.parent / "fairseq_plugin" / "user_dir" / "mt_scaffold_fairseq"


def option_arguments(options: Mapping[str, object]) -> list[str]:
    """Return options as arguments: ``True`` becomes a flag, ``False`` is left out, a list gives several values.

    >>> option_arguments({"max-tokens": 4096, "share-all-embeddings": True, "fp16": False})
    ['--max-tokens', '4096', '--share-all-embeddings']
    """
    arguments = []
    for name, value in options.items():
        if value is False:
            continue
        arguments.append(f"--{name}")
        if value is not True:
            arguments += [str(entry) for entry in value] if isinstance(value, list) else [str(value)]
    return arguments


def options_in(arguments: Sequence[str]) -> dict[str, OptionValue]:
    """Return the options in arguments, as ``option_arguments`` takes them; what precedes the first one is left out.

    >>> options_in(["data", "--max-tokens", "4096", "--lr", "0.1", "0.2", "--fp16"])
    {'max-tokens': '4096', 'lr': ['0.1', '0.2'], 'fp16': True}
    """
    found: dict[str, list[int | float | str]] = {}
    values: list[int | float | str] = []
    for argument in arguments:
        if argument.startswith("--"):
            name, _, value = argument.removeprefix("--").partition("=")
            values = found[name] = [value] if value else []
        else:
            values.append(argument)
    return {name: values if len(values) > 1 else values[0] if values else True for name, values in found.items()}


def number_of(value: OptionValue | None) -> int:
    """Return an option as a whole number: the last of several values, and 0 if it is not a finite number."""
    last = value[-1] if isinstance(value, list) else value
    try:
        return int(float(last)) if last is not None and not isinstance(last, bool) else 0
    except (ValueError, OverflowError):
        return 0


def refuse_options(
    arguments: Sequence[str],
    own: Collection[str],
    program: str,
    why: str = "is set by mt-scaffold itself; remove it from the options",
) -> None:
    """Raise UsageError if ``arguments`` set an option in ``own`` (without dashes); why: the reason, for the error."""
    refuse_text(options=arguments)
    for name in (name.replace("_", "-") for name in options_in(arguments)):
        if name in own:
            raise UsageError(f"{program}: --{name} {why}")


def _refusal(text: str) -> str | None:
    """Return the last error of fairseq's parser in ``text``, without its list of choices."""
    refusals = re.findall(r"^(?:fairseq-)?(\w+)(?:\.py)?: error: (.*)", text, re.MULTILINE)
    if not refusals:
        return None
    program, cause = refusals[-1]
    return f"fairseq-{program}: {cause.partition(' (choose from ')[0]}"


def has_gpu_device() -> bool:
    """Return whether the device file of a GPU driver exists."""
    return any(os.path.exists(path) for path in _GPU_DEVICES)


def sees_gpu() -> bool:
    """Return whether PyTorch finds a GPU; without the device file of a driver, PyTorch is not loaded."""
    if not has_gpu_device():
        return False
    import torch

    return bool(torch.cuda.is_available())


def gpus_here() -> str:
    """Return the number and names of the GPUs that PyTorch finds, as text."""
    if not sees_gpu():
        return "no GPU"
    import torch

    names = Counter(torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count()))
    return " and ".join(f"{count} x {name}" for name, count in names.items())


def no_gpu_message() -> str:
    """Return the reason why PyTorch finds no GPU on this machine, and a remedy."""
    if not has_gpu_device():
        return "no device file of a driver exists, such as /dev/nvidiactl; check the driver, or the job's GPUs"
    import torch

    build = torch.version.cuda
    if build is None and torch.version.hip is None:
        return f"PyTorch {torch.__version__} is built for CPUs only; {_other_pytorch(_driver_cuda())}"
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None and not visible.strip("-1 "):
        return f"CUDA_VISIBLE_DEVICES={visible} hides every GPU; unset it, or request GPUs for the job"
    driver = _driver_cuda()
    if build is not None and driver is not None and int(build.split(".")[0]) > driver[0]:
        return (
            f"PyTorch {torch.__version__} is built for CUDA {build}, and the driver supports CUDA up to "
            f"{driver[0]}.{driver[1]}; update the driver, or {_other_pytorch(driver)}"
        )
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        return f"{str(error).strip().splitlines()[0]}; check the driver with nvidia-smi"
    return "its driver reports none; check it with nvidia-smi"


def _driver_cuda() -> tuple[int, int] | None:
    """Return the newest CUDA version (major, minor) that NVIDIA's driver supports, or None without that driver."""
    version = ctypes.c_int(0)
    try:
        failed = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return None
    return None if failed or not version.value else (version.value // 1000, version.value % 1000 // 10)


def _other_pytorch(driver: tuple[int, int] | None) -> str:
    which = "the driver's CUDA (nvidia-smi shows it)" if driver is None else f"CUDA {driver[0]}"
    return (
        f"install PyTorch for {which}: pip install torch --index-url https://download.pytorch.org/whl/cuXXX, "
        f"XXX as on https://pytorch.org/get-started (such as {_WHEELS.get(driver[0] if driver else 12, 'cu130')})"
    )


def gpus_in_all(nodes: int, gpus: int) -> int:
    """Return the total number of GPUs on ``nodes`` with ``gpus`` each (0: all that PyTorch finds)."""
    import torch

    return nodes * (gpus or torch.cuda.device_count())


def command_line(program: str, arguments: Sequence[str], launcher: Sequence[str] = ()) -> list[str]:
    """Return the command that runs ``program`` (``preprocess``, ``train``, ``generate``) with this Python."""
    # -P: a file called random.py in the current folder must not shadow Python's own.
    return [
        *launcher,
        *(() if "torch.distributed.run" in launcher else _PYTHON),
        "-m",
        f"fairseq_cli.{program}",
        *arguments,
    ]


def launcher_command(launcher: str, nodes: int, gpus: int) -> list[str]:
    """Return the command that precedes fairseq-train for ``launcher``, one of LAUNCHERS.

    With ``fairseq``, fairseq-train itself starts a process for each GPU of one node; ``torchrun`` starts one for each
    of ``gpus``; ``srun``, in a SLURM job, starts fairseq once on each of ``nodes``, and these find each other through
    SLURM.
    Raises UsageError for a number of nodes or GPUs that the launcher does not support.
    """
    if gpus < 0:
        raise UsageError(f"--gpus {gpus}: the number of GPUs must be 0 (all) or more")
    if nodes < 1:
        raise UsageError(f"--nodes {nodes}: the number of nodes must be 1 or more")
    if nodes > 1 and launcher != "srun":
        raise UsageError(f"--nodes {nodes}: {launcher} trains on one node only; use --launcher srun for several")
    if launcher == "torchrun":
        if gpus < 1:
            raise UsageError("--launcher torchrun: give the number of GPUs with --gpus N")
        return [*_PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(gpus)]
    if launcher == "srun":
        if "SLURM_JOB_ID" not in os.environ:
            raise UsageError("--launcher srun: not in a SLURM job; start the training with sbatch")
        # --overlap: the job's own step already holds these processors. --cpu-bind: SLURM must not pin tasks to a few.
        command = ["srun", "--overlap", "--cpu-bind=none"]
        command += ["--nodes", str(nodes), "--ntasks", str(nodes), "--ntasks-per-node", "1"]
        return command + (["--gpus-per-node", str(gpus)] if gpus else [])
    return []


def run_tool(program: str, arguments: Sequence[str], log: PathLike) -> None:
    """Run a fairseq program to completion, as ``run_command`` does."""
    run_command(program, command_line(program, arguments), log)


def run_command(
    program: str, command: Sequence[str], log: PathLike, variables: Mapping[str, str] | None = None
) -> None:
    """Run the ``command`` of a fairseq program to completion, appending its output to the file ``log``.

    ``variables`` are added to its environment. It ignores SIGUSR1 and gets no Ctrl-C, which mt-scaffold handles, and
    ends with this process (on Linux, even if that is killed), so that no orphaned training survives. Raises
    MTScaffoldError if fairseq is not installed and, with the end of the log, if the program fails; UsageError for an
    option that fairseq's parser rejects.
    """
    if importlib.util.find_spec("fairseq_cli") is None:
        raise MTScaffoldError("fairseq is not installed; run make venv in the source folder (see README.md)")
    # On a CPU, torch allocates tensors faster in huge pages.
    environment = {"THP_MEM_ALLOC_ENABLE": "1", **os.environ, "PYTHONHASHSEED": "0", **(variables or {})}
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)
    try:
        with open(log, "ab") as stream:
            stream.write(f"$ {shlex.join(command)}\n".encode())
            stream.flush()
            # Not preexec_fn: a fork would copy mutexes held by other threads, such as the thread that touches a lock.
            process = subprocess.Popen(
                child_command(command),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=environment,
            )
    except OSError as error:
        raise explain_os_error(error, log) from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
    try:
        with _paused_together(process):
            status = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if status:
        if status == 2 and (refusal := _refusal(log_end(log, indent=""))):
            raise UsageError(f"{refusal}; whole log: {log}")
        how = f"exit status {status}" if status > 0 else f"signal {-status}"
        raise MTScaffoldError(f"fairseq-{program} failed ({how}); whole log: {log}; it ends:\n{log_end(log)}")


@contextlib.contextmanager
def _paused_together(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Within the block, on Ctrl-Z, pause a program together with this process, which alone receives it.

    Only in the main thread, as Python handles signals in no other.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTSTP) != signal.SIG_DFL:
        yield
        return

    def pause(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGCONT)

    signal.signal(signal.SIGTSTP, pause)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)


def log_end(log: PathLike, lines: int = _LOG_END, indent: str = "  | ") -> str:
    """Return the last ``lines`` lines of a log, each preceded by ``indent`` and cut to 400 characters."""
    with open(log, encoding="utf-8", errors="replace") as stream:
        return "".join(f"{indent}{line.rstrip()[:400]}\n" for line in deque(stream, maxlen=lines)).rstrip("\n")
