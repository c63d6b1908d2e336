"""mt-scaffold translate: see mt_scaffold.experiment.inference.translate."""

from __future__ import annotations

from typing import Annotated

from mt_scaffold.experiment.commands.arguments import File, Name, OutputFolder
from mt_scaffold.experiment.inference.translate import translate
from mt_scaffold.experiment.runtime.fairseq import option_arguments
from mt_scaffold.options_from_signature import Option

EXAMPLES = """\
mt-scaffold translate --data binarised --subset test --model averaged.pt --output translations -- --beam 4
"""


def run(
    *fairseq_options: Annotated[str, Option("-- OPTIONS")],
    data: Annotated[str, Option("FOLDER", "-d")],
    subset: Name,
    model: Annotated[str, Option("FILE", "-m")],
    output: OutputFolder,
    source_words: File | None = None,
    seed: int = 1,
    gpus: int = 0,
    config: File | None = None,
) -> None:
    """Translate a test set.

    fairseq_options: options of fairseq-generate, after --
    data: the data folder that mt-scaffold binarise made
    subset: the test set in it to translate
    model: a checkpoint or an averaged model
    output: folder for the translations
    source_words: the words of the source, to copy next to the translations
    seed: random seed, for sampling
    gpus: 1: require a GPU; 0: use one if there is one (default)
    config: take the options from this experiment configuration
    """
    arguments = list(fairseq_options)
    if config:
        from mt_scaffold.experiment.configuration import load_config

        arguments = option_arguments(load_config(config).translate.options) + arguments
    translate(data, subset, model, output, arguments, seed=seed, source_words=source_words, gpus=gpus)
