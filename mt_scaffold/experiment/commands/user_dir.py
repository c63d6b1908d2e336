"""mt-scaffold user-dir: see mt_scaffold.experiment.runtime.fairseq.user_dir."""

from __future__ import annotations

import argparse

EXAMPLES = """\
fairseq-generate binarised --user-dir "$(mt-scaffold user-dir)" --path averaged.pt
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no options, only the description."""
    parser.description = "Print the folder to give to fairseq as --user-dir, for its commands to load our checkpoints."


def run(options: argparse.Namespace) -> None:
    """Print the folder."""
    from mt_scaffold.experiment.runtime.fairseq import user_dir

    print(user_dir())
