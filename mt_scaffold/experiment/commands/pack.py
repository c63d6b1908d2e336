"""mt-scaffold pack: see mt_scaffold.experiment.packing.pack."""

from __future__ import annotations

import argparse
from pathlib import Path

from mt_scaffold.experiment.evaluation.metrics import METRICS
from mt_scaffold.experiment.packing.pack import OTHER_ENGINE, pack, packed_folder
from mt_scaffold.experiment.packing.packed_model import CARD, NEW_CARD
from mt_scaffold.tables import decimal

EXAMPLES = """\
mt-scaffold pack experiments/demo/scaffold
mt-scaffold translate-text --model demo-scaffold < text > translation
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = (
        "Pack a trained translation system into one folder: weights (safetensors), codes, dictionaries, settings, "
        "scores and a model card. mt-scaffold translate-text translates raw text with it, on any machine."
    )
    parser.add_argument("system", metavar="EXPERIMENT/SYSTEM", help="the folder of a system, in that of its experiment")
    parser.add_argument("--seed", type=int, metavar="S", help="of the training (default: the experiment's first)")
    parser.add_argument("--output", "-o", metavar="FOLDER", help="the folder to make (default: EXPERIMENT-SYSTEM)")


def run(options: argparse.Namespace) -> None:
    """Run the command and show what was packed."""
    output = Path(options.output or packed_folder(options.system, options.seed))
    manifest = pack(options.system, output, options.seed)
    origin = manifest.origin
    print(
        f"{output}: {origin.experiment}, {origin.system}, seed {origin.seed}, {manifest.source} to "
        f"{manifest.target}{', synthetic data' if origin.synthetic else ''}"
    )
    if (output / NEW_CARD).exists():
        print(f"{output / CARD}: edited, and kept; the card of this model is {output / NEW_CARD}")
    for name, test_set in manifest.test_sets.items():
        figures = [f"{METRICS[metric].heading} {decimal(found.score)}" for metric, found in test_set.scores.items()]
        print(f"{name}: {', '.join(figures)}")
    if manifest.test_sets and origin.engine != "fairseq":
        print(OTHER_ENGINE)
    if not manifest.test_sets:
        print("no scores: no test set of the experiment has been scored yet")
