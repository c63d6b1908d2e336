"""Imported by Python at startup as sitecustomize: with FORK_SERVER set, some programs run in forks of that server.

These are the programs of fairseq and the commands that import it, which the server has done already. This process waits
and ends with the program's status; if it ends earlier, so does the program. The program is not in the process group,
session or children of the process that started it: tests of these use ``environment_without_forks()``.
"""

import os
import sys

# The start of their command lines, after Python's own options.
PROGRAMS = (
    "-m fairseq_cli.",
    "-m mt_scaffold experiment ",
    "-m mt_scaffold run ",
    "-m mt_scaffold check ",
    "-m mt_scaffold.experiment.runtime.fairseq_options",
)


def run_forked(path: str, command: list[str]) -> int:
    """Have the server run ``command`` in this process's environment; return its status, negative for a signal."""
    # Imported here, because every program that starts imports this module.
    import json
    import signal
    import socket

    ignored = [number for number in (signal.SIGINT, signal.SIGUSR1) if signal.getsignal(number) == signal.SIG_IGN]
    request = json.dumps([command, os.getcwd(), dict(os.environ), ignored]).encode()
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        socket.send_fds(server, [len(request).to_bytes(4, "big")], [0, 1, 2])
        server.sendall(request)
        return int(server.makefile().readline())


if os.environ.get("FORK_SERVER") and " ".join(sys.orig_argv[1:]).removeprefix("-P ").startswith(PROGRAMS):
    status = 1
    try:
        status = run_forked(os.environ["FORK_SERVER"], sys.orig_argv[1:])
    except BaseException as error:  # Python would ignore it in sitecustomize
        print("The fork server of the tests:", repr(error), file=sys.stderr)
    if status < 0:
        import signal

        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)
