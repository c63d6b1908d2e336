"""mt-scaffold pack: see mt_scaffold.experiment.packing.pack."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mt_scaffold.experiment.commands.arguments import OutputFolder
from mt_scaffold.experiment.evaluation.metrics import METRICS
from mt_scaffold.experiment.packing.pack import OTHER_ENGINE, pack, packed_folder
from mt_scaffold.experiment.packing.packed_model import CARD, NEW_CARD
from mt_scaffold.options_from_signature import Option
from mt_scaffold.tables import decimal

EXAMPLES = """\
mt-scaffold pack experiments/demo/scaffold
mt-scaffold translate-text --model demo-scaffold < text > translation
"""


def run(
    system: Annotated[str, Option("EXPERIMENT/SYSTEM")],
    /,
    seed: Annotated[int | None, Option("S")] = None,
    output: OutputFolder | None = None,
) -> None:
    """Pack a system, and show its origin and scores.

    Pack a trained translation system into one folder: weights (safetensors), codes, dictionaries, settings, scores and
    a model card. mt-scaffold translate-text translates raw text with it, on any machine.

    system: the folder of a system, in that of its experiment
    seed: the seed of the training (default: the experiment's first)
    output: the folder to make (default: EXPERIMENT-SYSTEM)
    """
    folder = Path(output or packed_folder(system, seed))
    manifest = pack(system, folder, seed)
    origin = manifest.origin
    print(
        f"{folder}: {origin.experiment}, {origin.system}, seed {origin.seed}, {manifest.source} to "
        f"{manifest.target}{', synthetic data' if origin.synthetic else ''}"
    )
    if (folder / NEW_CARD).exists():
        print(f"{folder / CARD}: edited, and kept; the card of this model is {folder / NEW_CARD}")
    for name, test_set in manifest.test_sets.items():
        figures = [f"{METRICS[metric].heading} {decimal(found.score)}" for metric, found in test_set.scores.items()]
        print(f"{name}: {', '.join(figures)}")
    if manifest.test_sets and origin.engine != "fairseq":
        print(OTHER_ENGINE)
    if not manifest.test_sets:
        print("no scores: no test set of the experiment has been scored yet")
