"""mt-scaffold translate: see mt_scaffold.experiment.inference.translate."""

from __future__ import annotations

from typing import Annotated

from mt_scaffold.experiment.commands.arguments import File, Name, OutputFolder
from mt_scaffold.experiment.inference.export_ctranslate2 import QUANTIZATIONS
from mt_scaffold.experiment.inference.translate import ENGINES, translate
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
    engine: Annotated[str | None, Option(choices=ENGINES)] = None,
    quantization: Annotated[str | None, Option(choices=QUANTIZATIONS)] = None,
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
    engine: the program that translates (default: fairseq)
    quantization: type of CTranslate2's parameters
    config: take engine, quantization and options from this experiment configuration
    """
    arguments = list(fairseq_options)
    if config:
        from mt_scaffold.experiment.configuration import load_config

        section = load_config(config).translate
        arguments = option_arguments(section.options) + arguments
        engine = engine or section.engine
        # The configured quantization applies only to the configured engine.
        quantization = quantization or (section.quantization if engine == section.engine else None)
    translate(
        data,
        subset,
        model,
        output,
        arguments,
        seed=seed,
        source_words=source_words,
        gpus=gpus,
        engine=engine or "fairseq",
        quantization=quantization,
    )
