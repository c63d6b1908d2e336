"""mt-scaffold compare: see mt_scaffold.experiment.evaluation.compare."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import Published, load_experiment
from mt_scaffold.experiment.evaluation.compare import compare
from mt_scaffold.experiment.evaluation.comparison_tables import as_text
from mt_scaffold.experiment.evaluation.harness import tables
from mt_scaffold.experiment.evaluation.harness.compare import compare_tasks, holds_tasks
from mt_scaffold.experiment.evaluation.measures import Labelled
from mt_scaffold.experiment.tasks import layout_of, task_of

EXAMPLES = """\
mt-scaffold compare bpe.json scaffold.json --baseline bpe --output comparison
mt-scaffold compare bpe=model_1/scores.json scaffold=model_2/scores.json --baseline bpe
mt-scaffold compare bpe=model_1/tasks.json scaffold=model_2/tasks.json --baseline bpe
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = (
        "Compare translations by the scores of mt-scaffold score, or language models by those of mt-scaffold evaluate "
        "or lm-eval: one table, with tests over trainings and segments. Files of one system are its seeds and test "
        "sets. A GROUP before the name keeps comparisons apart: 'equal tokens:scaffold=scores.json'; each group needs "
        "its own baseline, under the same name."
    )
    parser.add_argument(
        "scores",
        nargs="+",
        metavar="[[GROUP:]NAME=]SCORES",
        help="files that mt-scaffold score, evaluate or lm-eval wrote, with the name of the system (default: theirs)",
    )
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
    parser.add_argument("--output", "-o", metavar="PREFIX", help="write PREFIX.txt, .md, .tex, .json and .csv as well")
    parser.add_argument("--samples", type=int, metavar="N", help="bootstrap resamples (default: 1000)")
    parser.add_argument("--title", default="", help="a line above the table")
    parser.add_argument(
        "--trainings",
        nargs="+",
        default=[],
        metavar="[GROUP:]SYSTEM=FILE",
        help="training.json of each system and seed, for the table of trainings",
    )
    parser.add_argument(
        "--reports",
        nargs="+",
        default=[],
        metavar="FILE",
        help="reports of other steps (data-report.json, logs/learn-*.json), whose warnings stand above the tables, too",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="take baselines, resamples and published scores from this experiment configuration",
    )


def run(options: argparse.Namespace) -> None:
    """Run the command and show the tables."""
    config = load_experiment(options.config) if options.config else None
    baseline = options.baseline or (config and config.baseline)
    if not baseline:
        raise UsageError("compare: give --baseline SYSTEM, or --config with the experiment's configuration")
    samples, own = 1000, {}
    published: Sequence[Published] = ()
    if config is not None:
        task, layout = task_of(config), layout_of(Path(options.config).parent, config)
        samples, published = task.samples(layout), task.published(layout)
        own = {name: system.baseline for name, system in config.systems.items() if system.baseline is not None}
    scores = [
        _labelled(text) if "=" in text and not Path(text).exists() else Labelled("", None, text)
        for text in options.scores
    ]
    samples = samples if options.samples is None else options.samples
    trainings = [_labelled(text) for text in options.trainings]
    baselines = own | dict(_pairs("--against", options.against))
    if holds_tasks(scores[0].path):
        tasks = compare_tasks(
            scores,
            baseline,
            options.output,
            samples,
            options.title,
            baselines=baselines,
            trainings=trainings,
            reports=options.reports,
        )
        print(tables.as_text(tasks), end="")
        return
    comparison = compare(
        scores,
        baseline,
        output=options.output,
        samples=samples,
        title=options.title,
        published=published,
        baselines=baselines,
        trainings=trainings,
        reports=options.reports,
    )
    print(as_text(comparison), end="")


def _labelled(text: str) -> Labelled:
    label, _, path = text.partition("=")
    group, _, name = label.rpartition(":")
    if not name or not path:
        raise UsageError(f"compare: {text}: write NAME=FILE or GROUP:NAME=FILE")
    return Labelled(group, name, path)


def _pairs(option: str, given: Sequence[str]) -> list[tuple[str, str]]:
    pairs = [(text.partition("=")[0], text.partition("=")[2]) for text in given]
    for text, (name, value) in zip(given, pairs, strict=True):
        if not name or not value:
            raise UsageError(f"{option} {text}: write NAME=VALUE, with the system before the equals sign")
    return pairs
