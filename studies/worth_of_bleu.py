"""Convert a difference in BLEU into chrF and bits per byte of the reference, with the seeds that each would need.

python -m studies.worth_of_bleu EXPERIMENT --epochs 8 12 16 20 [--checkpoints FOLDER] [--difference 0.5]

Each scored model averages as many epochs as the experiment does, up to one of --epochs: with a learning-rate schedule
that does not depend on the end, it is the model of the same training stopped there. Train with
--set train.options.keep-last-epochs=20, or name a folder that has SYSTEM/seed-N/checkpointE.pt. The difference is
converted by the slope of a metric over BLEU, by least squares with a constant for each training. The spread is over the
seeds of the experiment, pooled over its systems; the seeds are those of mt-scaffold plan.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy
from numpy.typing import NDArray

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration.layout import Run
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.evaluation.losses.references import reference_losses
from mt_scaffold.experiment.evaluation.metrics import KINDS
from mt_scaffold.experiment.evaluation.score import Scores, Scoring, Texts, score
from mt_scaffold.experiment.inference.translate import translate
from mt_scaffold.experiment.runtime.fairseq import option_arguments
from mt_scaffold.experiment.runtime.results import read_result
from mt_scaffold.experiment.training.average import average
from mt_scaffold.experiment.workflow.common_steps import plan
from mt_scaffold.tables import format_table
from studies import exit_status

METRICS = ("bleu", "chrf", "reference_bits_per_byte")


def scores_at(layout: TranslationLayout, run: Run, epoch: int, checkpoints: Path, test: str) -> list[float]:
    """Return the metrics of a training stopped after ``epoch``; its files are kept next to the checkpoints."""
    folder = checkpoints / f"epoch-{epoch}"
    model, output = folder / "averaged.pt", folder / f"{test}.json"
    if not output.exists():
        folder.mkdir(exist_ok=True)
        last = layout.config.average.last
        average([checkpoints / f"checkpoint{each}.pt" for each in range(epoch - last + 1, epoch + 1)], model)
        data, words, raw = layout.binarised_test_of(run.system, test), layout.words, layout.raw(test, layout.target)
        translate(data, test, model, folder, option_arguments(layout.config.translate.options), int(run.seed))
        losses = folder / f"{test}.losses.json"
        reference_losses(
            model, data, test, words(test, layout.target), raw, words("train", layout.target), losses,
            system=run.system, seed=int(run.seed),
        )  # fmt: skip
        score(
            Texts(folder / f"{test}.{layout.target}", [raw], losses=losses),
            output,
            Scoring(bleu_tokeniser=layout.config.bleu_tokeniser, metrics=["bleu", "chrf"]),
        )
    metrics = read_result(Scores, output).metrics
    return [metrics[name].score for name in METRICS]


def slopes(scores: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """Return the slope of each metric over the first one. scores: trainings × epochs × metrics."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    first = centred[:, :, :1]
    each: NDArray[numpy.float64] = (first * centred).sum(axis=(0, 1)) / (first**2).sum(axis=(0, 1))
    return each


def spreads(layout: TranslationLayout, test: str) -> list[float]:
    """Return the standard deviation of each metric over the seeds, pooled over the scored systems.

    Raises MTScaffoldError if no system has two scored seeds.
    """
    variances, freedoms = [], []
    for system in layout.config.systems:
        files = [layout.scores(run, test) for run in layout.of_systems([system]).runs]
        metrics = [read_result(Scores, file).metrics for file in files if file.exists()]
        if len(metrics) > 1:
            values = [[each[name].score for name in METRICS] for each in metrics]
            variances.append(numpy.var(values, axis=0, ddof=1))
            freedoms.append(len(values) - 1)
    if not variances:
        raise MTScaffoldError(f"{layout.folder}: no system has scores of two seeds on {test}; train more seeds")
    return [float(each) for each in numpy.sqrt(numpy.average(variances, axis=0, weights=freedoms))]


def main() -> None:
    """Print the scores after each epoch, and the converted difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", type=Path, metavar="EXPERIMENT")
    parser.add_argument("--epochs", type=int, nargs="+", required=True, metavar="E")
    parser.add_argument("--checkpoints", type=Path, metavar="FOLDER", help="default: the experiment's own")
    parser.add_argument("--test-set", metavar="NAME", help="default: the first")
    parser.add_argument("--difference", type=float, default=0.5, metavar="D", help="in BLEU (0.5)")
    options = parser.parse_args()
    if len(options.epochs) < 2:
        parser.error("--epochs: give two or more, between which the metrics change")
    layout = TranslationLayout.read(options.experiment)
    test = options.test_set or layout.config.test_sets[0]
    first = min(options.epochs) - layout.config.average.last + 1
    found, rows = [], [["training", "epochs", *(KINDS[name].label for name in METRICS)]]
    for run in layout.runs:
        folder = layout.checkpoints(run)
        if options.checkpoints is not None:
            folder = options.checkpoints / run.system / f"seed-{run.seed}"
        if not (folder / f"checkpoint{first}.pt").exists():
            continue
        found.append([scores_at(layout, run, epoch, folder, test) for epoch in options.epochs])
        for epoch, values in zip(options.epochs, found[-1], strict=True):
            shown = [f"{value:.{KINDS[name].digits}f}" for name, value in zip(METRICS, values, strict=True)]
            rows.append([f"{run.system}, seed {run.seed}", str(epoch), *shown])
    if not found:
        raise MTScaffoldError(f"{options.experiment}: no training has the checkpoints of epoch {first}; keep them all")
    print(f"{test}\n\n{format_table(rows)}")
    worth = options.difference * slopes(numpy.array(found))
    spread = spreads(layout, test)
    rows = [
        ["metric", f"{options.difference:g} BLEU is worth", "spread over seeds", "spread / worth", "seeds to find it"]
    ]
    for name, value, deviation in zip(METRICS, worth, spread, strict=True):
        plans = [each for each in plan(options.experiment, abs(float(value)), name) if each.test_set == test]
        seeds = [str(each.by_seeds.trainings) if each.by_seeds else "more than 1,000" for each in plans]
        digits = KINDS[name].digits
        cells = [f"{value:+.{digits}f}", f"{deviation:.{digits}f}", f"{deviation / abs(value):.2f}", ", ".join(seeds)]
        rows.append([KINDS[name].label, *cells])
    print(format_table(rows), end="")


if __name__ == "__main__":
    sys.exit(exit_status("studies.worth_of_bleu", main))
