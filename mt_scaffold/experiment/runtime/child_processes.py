"""The start of child processes; as a program, this file becomes the command that follows.

    python child_processes.py PARENT COMMAND [ARGUMENT ...]

PARENT is the process id of the parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
# The signals to block while a child is started.
BLOCKED = (signal.SIGUSR1, signal.SIGINT)


def child_command(command: Sequence[str]) -> list[str]:
    """Return a command that runs ``command`` as a child that ends with this process and ignores SIGUSR1 and Ctrl-C.

    The child leads its own process group, to which a terminal sends no Ctrl-C. This works for any program, in Python or
    not, because these settings survive exec. Start it with the signals in BLOCKED blocked
    (``signal.pthread_sigmask``), so that none arrives before they are in effect.
    """
    # -I -S: without site-packages Python starts in milliseconds.
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), *command]


def _become(parent: int, command: Sequence[str]) -> None:
    # Have the kernel end this process when its parent dies; macOS does not support this.
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it died before the call above
        sys.exit("the parent process has ended")
    os.setpgid(0, 0)
    # An ignored signal stays ignored in the command and its children.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    # Unblock while SIGINT is ignored, to discard a pending Ctrl-C.
    on_interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, BLOCKED)
    signal.signal(signal.SIGINT, on_interrupt)
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
