"""mt-scaffold translate-text: see mt_scaffold.experiment.inference.translate_text."""

from __future__ import annotations

from typing import Annotated

from mt_scaffold.experiment.commands.arguments import Name, OutputFile
from mt_scaffold.experiment.inference.translate_text import translate_text
from mt_scaffold.options_from_signature import Option

EXAMPLES = """\
mt-scaffold translate-text experiments/demo/scaffold < text > translation
mt-scaffold translate-text experiments/demo/scaffold --seed 2 --input text.gz --output translation
"""


def run(
    system: Annotated[str, Option("EXPERIMENT/SYSTEM")],
    /,
    input: Annotated[str | None, Option("FILE", "-i")] = None,
    output: OutputFile | None = None,
    seed: Annotated[int | None, Option("S")] = None,
    test_set: Name | None = None,
    gpus: int = 0,
) -> None:
    """Translate text.

    Translate raw text, one sentence per line, with a trained system of an experiment. Line i of the output translates
    line i of the input; empty lines stay empty.

    system: the folder of a system, in that of its experiment
    input: raw text, plain, .gz or .zst (default: standard input)
    output: output file (default: standard output)
    seed: the seed of the training (default: the experiment's first)
    test_set: tokenise like this test set of the experiment, if it has its own settings
    gpus: 1: require a GPU; 0: use one if there is one (default)
    """
    translate_text(system, input, output, seed=seed, test_set=test_set, gpus=gpus)
