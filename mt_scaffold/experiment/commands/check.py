"""mt-scaffold check: see mt_scaffold.experiment.workflow.checking."""

from __future__ import annotations

import argparse

from mt_scaffold.experiment.commands.arguments import add_settings, settings
from mt_scaffold.experiment.workflow.checking import check_experiment

EXAMPLES = """\
mt-scaffold check configs/demo.yaml
mt-scaffold check mine.yaml --set train.options.encoder-layers=12
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = (
        "Check an experiment without running anything: its configuration and files, the options of fairseq, the "
        "models, and the disk and time that it needs. mt-scaffold run checks first, too."
    )
    add_settings(parser)


def run(options: argparse.Namespace) -> None:
    """Run the check."""
    print(check_experiment(options.config, settings(options)).as_text())
