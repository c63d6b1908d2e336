"""mt-scaffold get-documents: see mt_scaffold.experiment.data.documents."""

from __future__ import annotations

import argparse

from mt_scaffold.experiment.configuration.language_model_layout import read_layout
from mt_scaffold.experiment.data.documents import get_documents
from mt_scaffold.experiment.runtime.results import write_result

EXAMPLES = """\
mt-scaffold get-documents experiments/lm_demo
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = "The parts that are files of their own are read where they are, and not written again."
    parser.add_argument(
        "experiment", metavar="FOLDER", help="the folder of an experiment with language models (experiments/NAME)"
    )


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    layout = read_layout(options.experiment)
    folder = layout.documents("train").parent
    report = get_documents(layout.config.data, folder, layout.written_parts)
    write_result(layout.documents_report, report)
