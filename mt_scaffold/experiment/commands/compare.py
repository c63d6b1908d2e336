"""mt-scaffold compare: see mt_scaffold.experiment.evaluation.compare."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import Config, load_config
from mt_scaffold.experiment.evaluation.compare import compare
from mt_scaffold.experiment.evaluation.comparison_tables import as_text
from mt_scaffold.experiment.report.paper import published_scores

EXAMPLES = """\
mt-scaffold compare bpe.json scaffold.json --baseline bpe --output comparison
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("scores", nargs="+", metavar="SCORES", help="files that mt-scaffold score wrote")
    parser.add_argument(
        "--baseline",
        "-b",
        metavar="SYSTEM",
        help="the system to test the others against (default: that of the configuration)",
    )
    parser.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="SYSTEM=BASELINE",
        help="test this system against another baseline; repeatable",
    )
    parser.add_argument("--output", "-o", metavar="PREFIX", help="write PREFIX.txt, .md, .json and .csv as well")
    parser.add_argument("--samples", type=int, metavar="N", help="bootstrap resamples (default: 1000)")
    parser.add_argument("--title", default="", help="a line above the table")
    parser.add_argument(
        "--trainings",
        nargs="+",
        default=[],
        metavar="SYSTEM=FILE",
        help="training.json of each system and seed, for the table of trainings",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="take baselines, resamples and published scores from this experiment configuration",
    )


def run(options: argparse.Namespace) -> None:
    """Run the command and show the tables."""
    config = load_config(options.config) if options.config else None
    baseline = options.baseline or (config and config.baseline)
    if not baseline:
        raise UsageError("compare: give --baseline SYSTEM, or --config with the experiment's configuration")
    trainings: dict[str, list[str]] = {}
    for system, path in _pairs("--trainings", options.trainings):
        trainings.setdefault(system, []).append(path)
    samples = options.samples if options.samples is not None else config.score.bootstrap_samples if config else 1000
    comparison = compare(
        options.scores,
        baseline,
        output=options.output,
        samples=samples,
        title=options.title,
        published=[*config.compare_with, *published_scores(config)] if config else [],
        baselines=_own_baselines(config) | dict(_pairs("--against", options.against)),
        trainings=trainings,
    )
    print(as_text(comparison), end="")


def _own_baselines(config: Config | None) -> dict[str, str]:
    """Return the systems that the configuration tests against a baseline of their own."""
    own = {name: system.baseline for name, system in config.systems.items()} if config else {}
    return {name: baseline for name, baseline in own.items() if baseline is not None}


def _pairs(option: str, given: Sequence[str]) -> list[tuple[str, str]]:
    pairs = [(text.partition("=")[0], text.partition("=")[2]) for text in given]
    for text, (name, value) in zip(given, pairs, strict=True):
        if not name or not value:
            raise UsageError(f"{option} {text}: write NAME=VALUE, with the system before the equals sign")
    return pairs
