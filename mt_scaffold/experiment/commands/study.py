"""mt-scaffold study: see mt_scaffold.experiment.study."""

from __future__ import annotations

import argparse

EXAMPLES = """\
mt-scaffold study configs/study_intrinsic.yaml --texts corpora --output experiments/study_intrinsic --jobs 2
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "Run it again after an interruption: what is measured already is not repeated, unless a text or a setting has "
        "changed. After an update of mt-scaffold or SentencePiece, give it a new folder."
    )
    parser.add_argument("config", metavar="CONFIG", help="the YAML file of the study")
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="page, tables, figures and cells")
    parser.add_argument(
        "--texts", default=".", metavar="FOLDER", help="the folder of the files that CONFIG names (default: this one)"
    )
    parser.add_argument("--jobs", "-j", type=int, default=1, metavar="N", help="processes, -1: all cores (default: 1)")


def run(options: argparse.Namespace) -> None:
    """Run the command and print the path of the page."""
    from mt_scaffold.experiment.study import study

    print(study(options.config, options.output, options.texts, options.jobs))
