"""The command of subword-nmt, which learns original BPE unless told otherwise."""

from __future__ import annotations

import sys

from mt_scaffold.cli import main as run


def main(*command: str) -> None:
    """Run ``mt-scaffold`` with the arguments of this process, learning original BPE; exit if that fails.

    command: arguments before them, for ``python -m subword_nmt.learn_bpe`` and the other modules.
    """
    arguments = [*command, *sys.argv[1:]]
    if arguments and arguments[0].startswith("learn-"):
        arguments[1:1] = ["--algorithm", "bpe"]
    if status := run(arguments):
        sys.exit(status)
