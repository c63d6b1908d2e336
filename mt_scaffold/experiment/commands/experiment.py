"""mt-scaffold experiment: the steps of the workflow; see mt_scaffold.experiment.workflow.common_steps."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mt_scaffold import options_from_signature
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration.layout import CONFIG, Layout
from mt_scaffold.experiment.runtime.schema import nearest
from mt_scaffold.experiment.tasks import read_layout
from mt_scaffold.experiment.tasks.codes import made_codes
from mt_scaffold.experiment.workflow.common_steps import STEPS, step_of

# By the argument of a step: its term in errors, and the names that an experiment has for it.
_NAMES: dict[str, tuple[str, Callable[[Layout[Any]], Iterable[str]]]] = {
    "codes_name": ("codes are", lambda layout: made_codes(layout.config)),
    "data": ("data is", lambda layout: map(layout.data_of, layout.config.systems)),
    "segmentation": ("segmentation is", lambda layout: map(layout.segmentation_of, layout.config.systems)),
    "part": ("part is", lambda layout: layout.parts),
    "test_set": ("test set is", lambda layout: layout.config.test_sets),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the steps; the options of each are the arguments of its function."""
    parser.description = (
        "Run one step of an experiment, as the workflow does: it reads the configuration in the experiment's folder, "
        "and finds its input and output there. To run a whole experiment, see mt-scaffold run."
    )
    steps = parser.add_subparsers(dest="step", metavar="STEP", required=True)
    for name, step in STEPS.items():
        summary = options_from_signature.summary(step)
        subparser = steps.add_parser(name, help=summary[0].lower() + summary[1:].rstrip("."), description=summary)
        subparser.add_argument(
            "--config", required=True, metavar="FILE", help=f"the {CONFIG} in the folder of the experiment"
        )
        options_from_signature.add_arguments(subparser, step, leading=1)


def run(options: argparse.Namespace) -> None:
    """Run the step."""
    config = Path(options.config)
    if config.name != CONFIG:
        raise UsageError(f"{config}: give the {CONFIG} in the folder of an experiment, which the workflow writes")
    layout = read_layout(config.parent)
    step = step_of(options.step, layout)
    bound = options_from_signature.bind(step, options, layout)
    if "run" in bound.arguments and bound.arguments["run"] not in layout.runs:
        known = ", ".join(each.name for each in layout.runs)
        raise UsageError(f"{config}: has no run {bound.arguments['run'].name}; there are {known}")
    for argument, (verb, names) in _NAMES.items():
        if name := bound.arguments.get(argument):
            found = dict.fromkeys(names(layout))
            if name not in found:
                raise UsageError(f"{config}: no {verb} called {name}{nearest(name, found)}")
    step(*bound.args, **bound.kwargs)
