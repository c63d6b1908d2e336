"""mt-scaffold plan: see mt_scaffold.experiment.evaluation.plan."""

from __future__ import annotations

import argparse

from mt_scaffold.experiment.evaluation.metrics import KINDS
from mt_scaffold.experiment.evaluation.plan import as_text
from mt_scaffold.experiment.workflow.steps import plan

EXAMPLES = """\
mt-scaffold plan experiments/multi30k_en_de --difference 0.5
mt-scaffold plan experiments/multi30k_en_de --metric reference_bits_per_byte --difference 0.005
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = (
        "From the trainings of a finished experiment, two seeds or more of each system: how many seeds and test "
        "segments would find a true difference of a given size between two systems, with probability 80 %%."
    )
    parser.add_argument("experiment", metavar="FOLDER", help="the folder of a finished experiment (experiments/NAME)")
    parser.add_argument(
        "--difference", "-d", type=float, required=True, metavar="D", help="the difference to find, in the metric"
    )
    parser.add_argument(
        "--metric",
        metavar="NAME",
        choices=[name for name, kind in KINDS.items() if kind.tested],
        help="the metric (default: BLEU, or bits per byte of language models)",
    )


def run(options: argparse.Namespace) -> None:
    """Run the command and show the plans."""
    print(as_text(plan(options.experiment, options.difference, options.metric)), end="")
