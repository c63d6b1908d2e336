"""mt-scaffold plan: see mt_scaffold.experiment.evaluation.plan."""

from __future__ import annotations

from typing import Annotated

from mt_scaffold.experiment.commands.arguments import Folder
from mt_scaffold.experiment.evaluation.metrics import KINDS
from mt_scaffold.experiment.evaluation.plan import as_text
from mt_scaffold.experiment.workflow.common_steps import plan
from mt_scaffold.options_from_signature import Option

EXAMPLES = """\
mt-scaffold plan experiments/multi30k_en_de --difference 0.5
mt-scaffold plan experiments/multi30k_en_de --metric reference_bits_per_byte --difference 0.005
"""
_TESTED = [name for name, kind in KINDS.items() if kind.tested]


def run(
    experiment: Folder,
    /,
    difference: Annotated[float, Option("D", "-d")],
    metric: Annotated[str | None, Option("NAME", choices=_TESTED)] = None,
) -> None:
    """Show the plans.

    Estimate, from the trainings of a finished experiment with two or more seeds per system, how many seeds and test
    segments would detect a true difference of a given size between two systems with a probability of 80 %.

    experiment: the folder of a finished experiment (experiments/NAME)
    difference: the difference to find, in the metric
    metric: the metric (default: BLEU, or bits per byte of language models)
    """
    print(as_text(plan(experiment, difference, metric)), end="")
