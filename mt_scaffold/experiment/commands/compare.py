"""mt-scaffold compare: see mt_scaffold.experiment.evaluation.compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import Over, Primary, Published, load_experiment
from mt_scaffold.experiment.evaluation.compare import compare
from mt_scaffold.experiment.evaluation.comparison_files import as_text
from mt_scaffold.experiment.evaluation.measures import Labelled
from mt_scaffold.experiment.tasks import layout_of, task_of
from mt_scaffold.options_from_signature import File, Name, Option


def compare_scores(
    scores: Annotated[Sequence[str], Option("[[GROUP:]NAME=]SCORES")],
    /,
    baseline: Annotated[str | None, Option("SYSTEM", "-b")] = None,
    against: Annotated[Sequence[str], Option("SYSTEM=BASELINE", repeated=True)] = (),
    output: Annotated[str | None, Option("PREFIX", "-o")] = None,
    samples: int | None = None,
    title: str = "",
    trainings: Annotated[Sequence[str], Option("[GROUP:]SYSTEM=FILE")] = (),
    reports: Sequence[File] = (),
    config: File | None = None,
    allow_equal: bool = False,
    primary: Name | None = None,
    over: Sequence[Name] = (),
) -> str:
    """Compare scores, and return the tables as text.

    Compare translations by the scores of mt-scaffold score, or language models by those of mt-scaffold evaluate or
    lm-eval (vocabularies: compare-vocab): one table, with tests over trainings and segments. Files of one system are
    its seeds and test sets. A GROUP before the name keeps comparisons apart: 'equal tokens:scaffold=scores.json'; each
    group needs its own baseline, under the same name. Several systems and seeds of experiments: give
    experiments/*/*/seed-*/scores/test.json.

    scores: files that mt-scaffold score, evaluate or lm-eval wrote, with the name of the system (default: theirs)
    baseline: the system to test the others against (default: that of the configuration)
    against: test this system against another baseline; repeatable
    output: write PREFIX.txt, .md, .tex (the table of a paper), -all.tex, .json and .csv as well
    samples: bootstrap resamples (default: 1000)
    title: the heading of the table
    trainings: training.json of each system and seed, for the table of trainings
    reports: reports of other steps (data-report.json, logs/learn-*.json), whose warnings are also shown below the first
        table; with data-report.json, test sets are also scored without sentences that are nearly in the training text
    config: take baselines, resamples and published scores from this experiment configuration
    primary: the metric of the primary measure, which has the first table and a correction to itself (default: the
        configuration's, or the first that all scores have)
    over: what it is compared on: each test set (default), the mean over all of them, or the mean over those named
    allow_equal: accept outputs that are equal in two systems or seeds, as on a short test set
    """
    experiment = load_experiment(config) if config else None
    if baseline is None and experiment is not None:
        baseline = experiment.baseline
    if not baseline:
        raise UsageError("compare: give --baseline SYSTEM, or --config with the experiment's configuration")
    resamples, own = 1000, {}
    published: Sequence[Published] = ()
    measure = Primary()
    if experiment is not None:
        task, layout = task_of(experiment), layout_of(Path(config or "").parent, experiment)
        resamples, published = task.samples(layout), task.published(layout)
        own = {name: system.baseline for name, system in experiment.systems.items() if system.baseline is not None}
        measure = task.primary(layout)
    measure = replace(measure, metric=primary or measure.metric, over=Over(over) if over else measure.over)
    files = [
        _labelled(text) if "=" in text and not Path(text).exists() else Labelled("", None, text) for text in scores
    ]
    comparison = compare(
        files,
        baseline,
        output=output,
        samples=resamples if samples is None else samples,
        title=title,
        published=published,
        baselines=dict(_pairs("--against", against)),
        usual=own,
        trainings=[_labelled(text) for text in trainings],
        reports=reports,
        allow_equal=allow_equal,
        primary=measure,
    )
    return as_text(comparison)


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
