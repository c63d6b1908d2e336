"""mt-scaffold experiment: the steps of the workflow; see mt_scaffold.experiment.workflow.steps."""

from __future__ import annotations

import argparse
import inspect
import typing
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration.layout import CONFIG, Layout, Run
from mt_scaffold.experiment.runtime.schema import nearest
from mt_scaffold.experiment.tasks import read_layout
from mt_scaffold.experiment.tasks.codes import made_codes
from mt_scaffold.experiment.tasks.task import Step
from mt_scaffold.experiment.workflow.steps import STEPS, step_of

EXAMPLES = """\
mt-scaffold experiment average --config experiments/demo/config.yaml --system bpe --seed 1
"""
# The options of the steps: metavar and meaning.
_OPTIONS = {
    "cache": ("DIR", "the download cache"),
    "checkpoint": ("NAME", "one of the last checkpoints, by itself: last-1 is the newest"),
    "chunk": ("K-of-N", "the K-th of N parts of the text"),
    "codes": ("NAME", "the name of codes, without the suffix of their file"),
    "data": ("NAME", "the name of data folders and dictionaries"),
    "gpus": ("N", "GPUs (of each node; 0: all for a training, else one if there is one)"),
    "language": ("CODE", "one of the languages"),
    "launcher": ("NAME", "what starts a process per GPU: fairseq, torchrun or srun"),
    "nodes": ("N", "nodes to train on"),
    "num-workers": ("N", "threads or processes"),
    "part": ("PART", "train, valid or a test set"),
    "segmentation": ("NAME", "the name of a segmentation"),
    "shard": ("K-of-N", "the K-th of N shards of the training documents"),
    "systems": ("NAME,...", "the systems to show (default: all)"),
    "test-set": ("NAME", "one of the test sets"),
}
# The names that an experiment has of each kind.
_NAMES: dict[str, Callable[[Layout[Any]], Iterable[str]]] = {
    "codes": lambda layout: made_codes(layout.config),
    "data": lambda layout: [
        name for each in layout.config.systems for name in (layout.data_of(each), layout.test_data_of(each))
    ],
    "segmentation": lambda layout: [layout.segmentation_of(system) for system in layout.config.systems],
    "part": lambda layout: layout.parts,
    "test-set": lambda layout: layout.config.test_sets,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the steps; the options of each are the arguments of its function."""
    parser.description = (
        "Run one step of an experiment, as the workflow does: it reads the configuration in the experiment's folder, "
        "and finds its input and output there. To run a whole experiment, see mt-scaffold run."
    )
    steps = parser.add_subparsers(dest="step", metavar="STEP", required=True)
    for name, step in STEPS.items():
        summary = (inspect.getdoc(step) or "").partition("\n")[0]
        subparser = steps.add_parser(name, help=summary[0].lower() + summary[1:].rstrip("."), description=summary)
        subparser.add_argument(
            "--config", required=True, metavar="FILE", help=f"the {CONFIG} in the folder of the experiment"
        )
        for option, kind, default in _options(step):
            _add(subparser, option, kind, default)


def _options(step: Step) -> Iterator[tuple[str, type, object]]:
    """Yield the options of a step: name, type and default, for all arguments of its function but the layout."""
    types = typing.get_type_hints(step)
    for parameter in list(inspect.signature(step).parameters.values())[1:]:
        yield parameter.name.removesuffix("_name").replace("_", "-"), types[parameter.name], parameter.default


def _add(parser: argparse.ArgumentParser, option: str, kind: type, default: object) -> None:
    if kind is Run:
        parser.add_argument("--system", required=True, metavar="NAME", help="the system of the run")
        parser.add_argument("--seed", required=True, type=int, help="the random seed of the run")
        parser.add_argument(
            "--comparison", default="", metavar="NAME", help="the comparison of the run, of language models"
        )
    elif kind is bool:
        parser.add_argument(f"--{option}", action="store_true", help="of the systems that resample")
    else:
        metavar, meaning = _OPTIONS[option]
        required = default is inspect.Parameter.empty
        parser.add_argument(
            f"--{option}",
            type=kind,
            required=required,
            default=None if required else default,
            metavar=metavar,
            help=meaning,
        )


def run(options: argparse.Namespace) -> None:
    """Run the step."""
    config = Path(options.config)
    if config.name != CONFIG:
        raise UsageError(f"{config}: give the {CONFIG} in the folder of an experiment, which the workflow writes")
    layout = read_layout(config.parent)
    step = step_of(options.step, layout)
    arguments: dict[str, Any] = {}
    for parameter, (option, kind, _) in zip(list(inspect.signature(step).parameters)[1:], _options(step), strict=True):
        if kind is Run:
            arguments[parameter] = _run(options, layout.runs)
        else:
            arguments[parameter] = getattr(options, option.replace("-", "_"))
            if option in _NAMES and arguments[parameter]:
                _check(options.config, option, arguments[parameter], _NAMES[option](layout))
    step(layout, **arguments)


def _run(options: argparse.Namespace, runs: list[Run]) -> Run:
    chosen = Run(options.system, options.seed, options.comparison)
    if chosen not in runs:
        known = ", ".join(each.name for each in runs)
        raise UsageError(f"{options.config}: has no run {chosen.name}; there are {known}")
    return chosen


def _check(config: str, kind: str, name: str, known: Iterable[str]) -> None:
    """Raise UsageError where an experiment has nothing of that name."""
    found = dict.fromkeys(known)
    if name not in found:
        verb = "are" if kind == "codes" else "is"
        raise UsageError(f"{config}: no {kind.replace('-', ' ')} {verb} called {name}{nearest(name, found)}")
