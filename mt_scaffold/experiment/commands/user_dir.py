"""mt-scaffold user-dir: see mt_scaffold.experiment.runtime.fairseq.user_dir."""

from __future__ import annotations

EXAMPLES = """\
fairseq-generate binarised --user-dir "$(mt-scaffold user-dir)" --path averaged.pt
"""


def run() -> None:
    """Print the folder.

    Print the folder to give to fairseq as --user-dir, for its commands to load our checkpoints.
    """
    from mt_scaffold.experiment.runtime.fairseq import user_dir

    print(user_dir())
