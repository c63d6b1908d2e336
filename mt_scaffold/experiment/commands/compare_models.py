"""mt-scaffold compare-models: see mt_scaffold.experiment.evaluation.compare_models."""

from __future__ import annotations

import argparse

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.evaluation.compare_models import Labelled, compare_models
from mt_scaffold.experiment.evaluation.model_comparison import as_text

EXAMPLES = """\
mt-scaffold compare-models bpe=bpe.json scaffold=scaffold.json --baseline bpe --output comparison
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = (
        "Compare language models in bits per byte, with tests over documents and seeds. Files of one NAME are its "
        "seeds and test sets. A GROUP before the name keeps comparisons apart: 'equal tokens:scaffold=scores.json'; "
        "each group needs its own baseline, under the same name."
    )
    parser.add_argument("scores", nargs="+", metavar="[GROUP:]NAME=FILE", help="what mt-scaffold evaluate wrote")
    parser.add_argument("--baseline", "-b", required=True, metavar="NAME", help="the system to test the others against")
    parser.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="NAME=BASELINE",
        help="test this system against another baseline; repeatable",
    )
    parser.add_argument("--output", "-o", metavar="PREFIX", help="write PREFIX.txt, .md, .json and .csv as well")
    parser.add_argument("--samples", type=int, default=1000, metavar="N", help="resamples (default: 1000)")
    parser.add_argument("--title", default="", help="a line above the table")
    parser.add_argument(
        "--trainings",
        nargs="+",
        default=[],
        metavar="[GROUP:]NAME=FILE",
        help="training.json of each system and seed, for the table of trainings",
    )


def run(options: argparse.Namespace) -> None:
    """Run the command and show the tables."""
    baselines = {}
    for text in options.against:
        name, _, other = text.partition("=")
        if not name or not other:
            raise UsageError(f"--against {text}: write NAME=BASELINE")
        baselines[name] = other
    comparison = compare_models(
        [_labelled(text) for text in options.scores],
        options.baseline,
        options.output,
        baselines=baselines,
        samples=options.samples,
        title=options.title,
        trainings=[_labelled(text) for text in options.trainings],
    )
    print(as_text(comparison), end="")


def _labelled(text: str) -> Labelled:
    label, _, path = text.partition("=")
    group, _, name = label.rpartition(":")
    if not name or not path:
        raise UsageError(f"compare-models: {text}: write NAME=FILE or GROUP:NAME=FILE")
    return Labelled(group, name, path)
