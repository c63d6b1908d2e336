"""mt-scaffold user-dir: see mt_scaffold.experiment.runtime.fairseq.user_dir."""

from __future__ import annotations

EXAMPLES = """\
fairseq-generate binarised --user-dir "$(mt-scaffold user-dir)" --path averaged.pt
"""


def run() -> None:
    """Print the folder.

    Print the folder for fairseq's --user-dir, with which its commands can load our checkpoints.
    """
    from mt_scaffold.experiment.runtime.fairseq import user_dir

    print(user_dir())
