"""Start programs quickly: a process that has already imported their slow modules forks for each of them."""

import atexit
import contextlib
import gc
import importlib
import json
import logging
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from mt_scaffold.experiment.workflow import snakefile

SNAKEFILE = snakefile()


class ForkServer:
    """Starts Python programs, each in a forked process that has imported ``modules``.

    Commands that run ``forked_program.py`` as sitecustomize, with FORK_SERVER=``address``, are forked as well.
    """

    def __init__(self, *modules: str, address: Path | None = None, **environment: str) -> None:
        self._server = subprocess.Popen(
            [sys.executable, __file__, str(address or ""), *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        if address is not None:
            while not address.exists():
                assert self._server.poll() is None
                time.sleep(0.005)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._server:
            # Its input may not end, because remaining workers that a test has forked hold it open.
            self._server.terminate()

    def start(
        self, command: Sequence[str], folder: Path, output: Path, environment: Mapping[str, str] | None = None
    ) -> int:
        """Start ``-m MODULE`` or a file with arguments, printing to the file ``output``; return the process id."""
        return int(self._ask("start", list(command), str(folder), str(output), dict(environment or {})))

    def wait(self, process: int, timeout: float = 300) -> int:
        """Return its exit status; if it has none after ``timeout`` seconds, kill it and raise TimeoutExpired."""
        if (status := self._ask("wait", process, timeout)) is None:
            raise subprocess.TimeoutExpired(str(process), timeout)
        return int(status)

    def _ask(self, *request: Any) -> Any:
        assert self._server.stdin is not None and self._server.stdout is not None
        print(json.dumps(request), file=self._server.stdin, flush=True)
        return json.loads(self._server.stdout.readline())


def environment_without_forks() -> dict[str, str]:
    """Return the environment of programs that start trainings as users do, but with one thread, as the forked ones."""
    return {name: value for name, value in os.environ.items() if name != "FORK_SERVER"} | {"OMP_NUM_THREADS": "1"}


class Snakemake(ForkServer):
    """Runs ``python -m snakemake`` on ``SNAKEFILE``, whose import takes longer than a dry run."""

    def __init__(self) -> None:
        # Snakemake itself, and the imports of the Snakefile.
        super().__init__("snakemake.cli", "mt_scaffold.experiment.workflow.common_steps")

    def run(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it in ``folder``; ``stdout`` of the result is all output of it and its steps."""
        # A rule with ``run:`` would start another Snakemake.
        command = ["-m", "snakemake", "-s", str(SNAKEFILE), "--force-use-threads", *arguments]
        with tempfile.NamedTemporaryFile() as output:
            status = self.wait(self.start(command, folder, Path(output.name)), timeout=900)
            return subprocess.CompletedProcess(command, status, Path(output.name).read_text(encoding="utf-8"))


class Server:
    """The server process: forks, and reports the exit status of programs to those who wait for them."""

    def __init__(self, address: str, modules: list[str]) -> None:
        self._modules = modules
        self._answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # where modules print something
        self._listener = socket.socket(socket.AF_UNIX)
        if address:
            self._listener.bind(address)
            self._listener.listen()
        # Process → the connection of the program that it replaces.
        self._callers: dict[int, socket.socket] = {}
        self._ended: dict[int, int] = {}
        # The process that the client waits for, and until when.
        self._awaited: tuple[int, float] | None = None

    def serve(self) -> None:
        """Answer requests until there is no input."""
        heard = [sys.stdin, self._listener] if self._listener.getsockname() else [sys.stdin]
        running = 0
        while True:
            for each in select.select([*heard, *self._callers.values()], [], [], 0.01 if running else None)[0]:
                if each is self._listener:
                    caller = self._listener.accept()[0]
                    request, opened = received(caller)
                    if (process := self._fork()) == 0:
                        for each in (caller, self._listener, *self._callers.values()):
                            each.close()
                        become_called(opened, *request)
                    for file in opened:
                        os.close(file)
                    self._callers[process] = caller
                    running += 1
                elif each is sys.stdin:
                    if not (line := sys.stdin.readline()):
                        return
                    asked, *rest = json.loads(line)
                    if asked == "wait":
                        self._awaited = (rest[0], time.monotonic() + rest[1])
                    elif (process := self._fork()) == 0:
                        become_started(*rest)
                    else:
                        running += 1
                        print(process, file=self._answers, flush=True)
                else:
                    # A waiting program sends nothing, so it has ended; its fork ends with it.
                    for process in [process for process, caller in self._callers.items() if caller is each]:
                        self._callers.pop(process).close()
                        os.kill(process, signal.SIGKILL)
            while running and (ended := os.waitpid(-1, os.WNOHANG))[0]:
                running -= 1
                self._tell(ended[0], os.waitstatus_to_exitcode(ended[1]))
            self._answer()

    def _fork(self) -> int:
        if self._modules:
            for module in self._modules:
                importlib.import_module(module)
            self._modules = []
            # Otherwise each fork traverses all imported modules at its end, which takes a second and copies them.
            gc.collect()
            gc.freeze()
        return os.fork()

    def _tell(self, process: int, status: int) -> None:
        if (caller := self._callers.pop(process, None)) is None:
            self._ended[process] = status
            return
        with caller, contextlib.suppress(BrokenPipeError):
            caller.sendall(f"{status}\n".encode())

    def _answer(self) -> None:
        if self._awaited is None:
            return
        process, deadline = self._awaited
        if process in self._ended or time.monotonic() > deadline:
            if (status := self._ended.pop(process, None)) is None:
                os.kill(process, signal.SIGKILL)
            print(json.dumps(status), file=self._answers, flush=True)
            self._awaited = None


def received(caller: socket.socket) -> tuple[list[Any], list[int]]:
    """Return the request of a ``forked_program.py``, and its open files."""
    length, opened, _, _ = socket.recv_fds(caller, 4, 3)
    with caller.makefile("rb") as stream:
        return json.loads(stream.read(int.from_bytes(length, "big"))), opened


def become_called(
    opened: list[int], command: list[str], folder: str, environment: dict[str, str], ignored: list[int]
) -> NoReturn:
    """Become the program of a ``forked_program.py``."""
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    os.environ.clear()
    become(command, folder, opened, environment)


def become_started(command: list[str], folder: str, output: str, environment: dict[str, str]) -> NoReturn:
    """Become a program of ``ForkServer.start``."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    written = os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    become(command, folder, [nothing, written, written], environment)


def become(command: list[str], folder: str, opened: Sequence[int], environment: dict[str, str]) -> NoReturn:
    """Do what a new Python would do for this command, up to its exit."""
    os.chdir(folder)
    os.environ.update(environment)
    for number, file in enumerate(opened):
        os.dup2(file, number)
    # An import may have configured logging, which a program configures before its imports.
    logging.root.handlers.clear()
    if command[0] == "-P":
        del sys.path[0], command[0]
    elif command[0] == "-m":
        sys.path[0] = folder
    status = status_of(command)
    # Python's own exit, without the destruction of the imported modules, which takes half a second.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(status)


def status_of(command: list[str]) -> int:
    """Run the program and return its exit status."""
    try:
        if command[0] == "-m":
            sys.argv[1:] = command[2:]
            runpy.run_module(command[1], run_name="__main__", alter_sys=True)
        else:
            sys.path[0], sys.argv[:] = str(Path(command[0]).parent), command
            runpy.run_path(command[0], run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    Server(sys.argv[1], sys.argv[2:]).serve()
