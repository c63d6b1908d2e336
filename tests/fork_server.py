"""Programs without their start: a process that has imported what takes them seconds forks for each of them."""

import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mt_scaffold.experiment.workflow import snakefile

SNAKEFILE = snakefile()


class ForkServer:
    """Starts Python programs, each in a separate process, which has imported ``modules``."""

    def __init__(self, *modules: str, **environment: str) -> None:
        self._server = subprocess.Popen(
            [sys.executable, __file__, *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._server:
            # Its input may not end: workers that a test has forked, and that are still there, hold it open.
            self._server.terminate()

    def start(
        self, command: Sequence[str], folder: Path, output: Path, environment: Mapping[str, str] | None = None
    ) -> int:
        """Start ``-m MODULE`` or a file with arguments; returns the process id. All that it prints goes to a file."""
        return int(self._ask("start", list(command), str(folder), str(output), dict(environment or {})))

    def wait(self, process: int, timeout: float = 300) -> int:
        """Return its exit status, or raise TimeoutExpired, and kill it, where it has none after ``timeout`` seconds."""
        if (status := self._ask("wait", process, timeout)) is None:
            raise subprocess.TimeoutExpired(str(process), timeout)
        return int(status)

    def _ask(self, *request: Any) -> Any:
        assert self._server.stdin is not None and self._server.stdout is not None
        print(json.dumps(request), file=self._server.stdin, flush=True)
        return json.loads(self._server.stdout.readline())


class Snakemake(ForkServer):
    """Runs ``python -m snakemake`` on ``SNAKEFILE``; importing it takes longer than a dry run."""

    def __init__(self) -> None:
        # Snakemake itself, and what the Snakefile imports.
        super().__init__("snakemake.cli", "mt_scaffold.experiment.workflow.steps")

    def run(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it in ``folder``; ``stdout`` of the result is all that it and its steps have printed."""
        # A rule with ``run:`` would start another Snakemake.
        command = ["-m", "snakemake", "-s", str(SNAKEFILE), "--force-use-threads", *arguments]
        with tempfile.NamedTemporaryFile() as output:
            status = self.wait(self.start(command, folder, Path(output.name)), timeout=900)
            return subprocess.CompletedProcess(command, status, Path(output.name).read_text(encoding="utf-8"))


def serve(modules: list[str]) -> None:
    """Answer the requests on standard input; returns in a forked process, after its program."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # where modules print something
    for module in modules:
        importlib.import_module(module)
    for line in sys.stdin:
        request, *rest = json.loads(line)
        if request == "wait":
            answer = wait(*rest)
        elif (answer := os.fork()) == 0:
            become(*rest)
            return
        print(json.dumps(answer), file=answers, flush=True)


def wait(process: int, timeout: float) -> int | None:
    """Return the exit status of a forked process, None where it had to be killed."""
    deadline = time.monotonic() + timeout
    while (ended := os.waitpid(process, os.WNOHANG))[0] == 0:
        if time.monotonic() > deadline:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return None
        time.sleep(0.01)
    return os.waitstatus_to_exitcode(ended[1])


def become(command: list[str], folder: str, output: str, environment: dict[str, str]) -> None:
    """Do what a Python started for this command would do, to its exit."""
    os.chdir(folder)
    os.environ.update(environment)
    nothing = os.open(os.devnull, os.O_RDONLY)
    written = os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for number, opened in enumerate((nothing, written, written)):
        os.dup2(opened, number)
    if command[0] == "-m":
        sys.path[0], sys.argv[1:] = folder, command[2:]
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0], sys.argv[:] = str(Path(command[0]).parent), command
        runpy.run_path(command[0], run_name="__main__")


if __name__ == "__main__":
    serve(sys.argv[1:])
