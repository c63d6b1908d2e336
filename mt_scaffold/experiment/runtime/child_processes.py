"""How a process begins that works for another one; as a program, it becomes the command that follows.

    python child_processes.py PARENT COMMAND [ARGUMENT ...]

PARENT is the process id of the one that starts it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
# While a child is started.
BLOCKED = (signal.SIGUSR1, signal.SIGINT)


def begin_child() -> None:
    """Leave Ctrl-C to the parent, which ends its children, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_parent(signal.SIGKILL)


def child_command(command: Sequence[str]) -> list[str]:
    """Return the command of a child of this process that is ended with it, ignores SIGUSR1 and gets no Ctrl-C.

    It leads a process group, to which a terminal does not send its Ctrl-C. All of this holds for any program, also one
    that is not in Python: what a process has set before exec, it keeps. Start it with those of BLOCKED blocked
    (``signal.pthread_sigmask``), so that none reaches the child before that.
    """
    # -I -S: nothing but Python's own modules, which takes some milliseconds.
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), *command]


def _end_with_parent(number: signal.Signals) -> None:
    """Have the kernel send a signal to this process when its parent dies. macOS has no such thing."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def _become(parent: int, command: Sequence[str]) -> None:
    _end_with_parent(signal.SIGTERM)
    if os.getppid() != parent:  # it died before
        sys.exit("the process that starts this one has ended")
    os.setpgid(0, 0)
    # What is ignored stays ignored in all that the command starts.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    # A Ctrl-C of before is dropped.
    on_interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, BLOCKED)
    signal.signal(signal.SIGINT, on_interrupt)
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
