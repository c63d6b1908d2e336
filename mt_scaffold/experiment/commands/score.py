"""mt-scaffold score: see mt_scaffold.experiment.evaluation.score."""

from __future__ import annotations

from mt_scaffold.experiment.commands.arguments import File, OutputFile
from mt_scaffold.experiment.configuration import load_config
from mt_scaffold.experiment.evaluation.metrics import METRICS
from mt_scaffold.experiment.evaluation.score import Origin, Scoring, Texts, score
from mt_scaffold.tables import decimal

EXAMPLES = """\
mt-scaffold score --hypothesis translations/test.de --reference raw/test.de --output scores.json
mt-scaffold score --hypothesis test.de --reference raw/test.de --metrics bleu chrf ter --output scores.json
"""


def run(texts: Texts, output: OutputFile, settings: Scoring, origin: Origin, config: File | None = None) -> None:
    """Score a translation, and show the scores.

    output: the scores, as JSON
    config: take target language, tokeniser, metrics and COMET from this experiment configuration, and write it into the
        result
    """
    scores = score(texts, output, settings, origin, load_config(config) if config else None)
    if scores.synthetic:
        print("synthetic data")
    for name, metric in scores.metrics.items():
        remark = "" if metric.comparable else "  (not comparable with scores from elsewhere)"
        kind = METRICS[name]
        value = decimal(metric.score, kind.digits)
        print(f"{kind.heading.removesuffix(' *')}: {value}  {metric.signature}{remark}")
