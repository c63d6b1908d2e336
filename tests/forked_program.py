"""What Python runs at its start as sitecustomize: with FORK_SERVER set, some programs run in forks of that server.

They are those of fairseq and the steps of an experiment, which import PyTorch; the server has imported it. This process
waits: it ends with the program's status, and the program with it. But the program is in no process group, session or
list of children of who starts it: tests of those give ``environment_without_forks()``.
"""

import json
import os
import signal
import socket
import sys


def is_forked(arguments: list[str]) -> bool:
    """Whether ``arguments`` of Python run a program of fairseq's, as ``-m fairseq_cli.train`` does, or a step."""
    module = arguments[1:] if arguments[:1] == ["-P"] else arguments
    return module[:1] == ["-m"] and (
        "".join(module[1:2]).startswith("fairseq_cli.") or module[1:3] == ["mt_scaffold", "experiment"]
    )


def run_forked(path: str, command: list[str]) -> int:
    """Have the server run ``command`` with what this process has; returns its exit status, negative for a signal."""
    ignored = [number for number in (signal.SIGINT, signal.SIGUSR1) if signal.getsignal(number) == signal.SIG_IGN]
    request = json.dumps([command, os.getcwd(), dict(os.environ), ignored]).encode()
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        socket.send_fds(server, [len(request).to_bytes(4, "big")], [0, 1, 2])
        server.sendall(request)
        return int(server.makefile().readline())


if os.environ.get("FORK_SERVER") and is_forked(sys.orig_argv[1:]):
    status = 1
    try:
        status = run_forked(os.environ["FORK_SERVER"], sys.orig_argv[1:])
    except BaseException as error:  # Python would ignore it
        print("The fork server of the tests:", repr(error), file=sys.stderr)
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)
