"""mt-scaffold score: see mt_scaffold.experiment.evaluation.score."""

from __future__ import annotations

import argparse
from typing import get_args

from mt_scaffold.experiment.configuration import BleuTokeniser, load_config
from mt_scaffold.experiment.evaluation.metrics import METRICS
from mt_scaffold.experiment.evaluation.score import score
from mt_scaffold.tables import decimal

EXAMPLES = """\
mt-scaffold score --hypothesis translations/test.de --reference raw/test.de --output scores.json
mt-scaffold score --hypothesis test.de --reference raw/test.de --metrics bleu chrf ter --output scores.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    named = [name for name, kind in METRICS.items() if kind.named]
    parser.add_argument("--hypothesis", required=True, metavar="FILE", help="translations, detokenised")
    parser.add_argument(
        "--reference", required=True, nargs="+", metavar="FILE", help="the untouched reference, or several"
    )
    parser.add_argument("--hypothesis-words", metavar="FILE", help="translations in words, for tokenised BLEU")
    parser.add_argument(
        "--reference-words", nargs="+", metavar="FILE", help="each reference in words, for tokenised BLEU"
    )
    parser.add_argument("--source", metavar="FILE", help="the raw source text, which COMET reads")
    parser.add_argument("--output", "-o", required=True, metavar="FILE", help="the scores, as JSON")
    parser.add_argument(
        "--language",
        metavar="CODE",
        help="the target language, for the tokeniser of bleu, and for tokenised_bleu_split and tokenised_bleu_lc "
        "(default: what the reference's name ends in, as in test.de)",
    )
    parser.add_argument(
        "--bleu-tokeniser",
        metavar="NAME",
        choices=get_args(BleuTokeniser),
        help=f"sacreBLEU's tokeniser for bleu: {', '.join(get_args(BleuTokeniser))} (default: the one that sacreBLEU "
        "chooses for the language: zh, ja-mecab or ko-mecab, and 13a for all others)",
    )
    parser.add_argument(
        "--metrics",
        nargs="+",
        metavar="NAME",
        choices=named,
        help=f"what to compute, from: {', '.join(named)} "
        "(default: bleu, chrf, chrf++, and tokenised_bleu and tokenised_bleu_split where words or language are given)",
    )
    parser.add_argument(
        "--losses",
        metavar="FILE",
        help="also compute the bits per byte of the reference, from what the step losses of an experiment wrote",
    )
    parser.add_argument(
        "--comet",
        metavar="MODEL",
        help="also compute COMET with this checkpoint (file or folder), which must be one that you trust: loading it "
        "can run code",
    )
    parser.add_argument(
        "--system", metavar="NAME", help="the system, for compare (default: the hypothesis file's name)"
    )
    parser.add_argument("--test-set", metavar="NAME", help="the test set (default: the reference file's name)")
    parser.add_argument("--seed", type=int, default=1, help="the training's random seed (default: 1)")
    parser.add_argument(
        "--checkpoint", metavar="NAME", help="the translation is by this single checkpoint, not by the final model"
    )
    parser.add_argument("--synthetic", action="store_true", help="label the scores as those of synthetic data")
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="take target language, tokeniser, metrics and COMET from this experiment configuration, and write it into "
        "the result",
    )


def run(options: argparse.Namespace) -> None:
    """Run the command and show the scores."""
    scores = score(
        options.hypothesis,
        options.reference,
        options.output,
        hypothesis_words=options.hypothesis_words,
        reference_words=options.reference_words,
        language=options.language,
        bleu_tokeniser=options.bleu_tokeniser,
        metrics=options.metrics,
        source=options.source,
        comet=options.comet,
        losses=options.losses,
        system=options.system,
        test_set=options.test_set,
        seed=options.seed,
        checkpoint=options.checkpoint,
        synthetic=options.synthetic,
        config=load_config(options.config) if options.config else None,
    )
    if scores.synthetic:
        print("synthetic data")
    for name, metric in scores.metrics.items():
        remark = "" if metric.comparable else "  (not comparable with scores from elsewhere)"
        kind = METRICS[name]
        value = decimal(metric.score, kind.digits)
        print(f"{kind.heading.removesuffix(' *')}: {value}  {metric.signature}{remark}")
