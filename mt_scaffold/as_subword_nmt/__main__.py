"""``python -m mt_scaffold.as_subword_nmt PROGRAM ARGUMENTS``: run a Python program on ``mt_scaffold.subword_nmt``.

PROGRAM: the path of a script, the name of an installed command, or ``-m MODULE``.
"""

from __future__ import annotations

import os
import runpy
import shutil
import sys


def main() -> None:
    """Run the program that the arguments of this process name, as Python itself would."""
    program = sys.argv[1:]
    if program and program[0] in ("-h", "--help"):
        print(__doc__)
        return
    if not program or program == ["-m"]:
        sys.exit(__doc__)
    if program[0] == "-m":
        sys.argv = program[1:]
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
        return
    script = program[0] if os.path.isfile(program[0]) else shutil.which(program[0])
    if script is None:
        sys.exit(f"mt_scaffold.as_subword_nmt: no program {program[0]}; give the path of a script or a command's name")
    sys.argv = [script, *program[1:]]
    if not sys.flags.safe_path:
        # The entry after this package's own folder is the working directory, where -m looks.
        sys.path[1] = os.path.dirname(os.path.realpath(script))
    runpy.run_path(script, run_name="__main__")


main()
