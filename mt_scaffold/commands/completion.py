"""``mt-scaffold completion``: a script that makes a shell complete the command line."""

from __future__ import annotations

import argparse
import sys
from typing import Annotated

from mt_scaffold.options_from_signature import Option

# As shtab names them; others that it supports are not tested here.
SHELLS = ("bash", "zsh", "fish")
# The metavars for which a shell completes names of files and of folders.
_FILES = {
    *("PATH", "FILE", "CHECKPOINT", "CODES", "CONFIG", "MAP", "MODEL", "PREFIX"),
    *("BPE.CODES", "SCAFFOLD.CODES", "NAME.BIN"),
}
_FOLDERS = {"FOLDER", "DIR", "EXPERIMENT/SYSTEM"}


def run(shell: Annotated[str, Option(choices=SHELLS)], /) -> str:
    """Return a script for the shell.

    Print a script that makes a shell complete these commands and their options. The package shtab (pip install shtab)
    makes the script, once; the script itself needs nothing.

    shell: the shell to write it for
    """
    import shtab

    from mt_scaffold.cli import COMMANDS, find_command, make_parser

    available, missing = [], set()
    for name in COMMANDS:
        try:
            find_command(name)
            available.append(name)
        except ModuleNotFoundError as error:
            missing.add(error.name)
    if missing:
        left_out = ", ".join(name for name in COMMANDS if name not in available)
        needed = ", ".join(sorted(str(name) for name in missing))
        print(f"mt-scaffold: without options: {left_out} (not installed: {needed})", file=sys.stderr)
    parser = make_parser(available)
    _mark_paths(parser, shtab.FILE, shtab.DIRECTORY)
    return str(shtab.complete(parser, shell))


def _mark_paths(parser: argparse.ArgumentParser, file: object, folder: object) -> None:
    """Tell shtab which arguments are files or folders, through the attribute that it reads."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                _mark_paths(subparser, file, folder)
        elif isinstance(action.metavar, str) and action.metavar.upper() in _FILES | _FOLDERS:
            action.complete = folder if action.metavar in _FOLDERS else file  # type: ignore[attr-defined]
