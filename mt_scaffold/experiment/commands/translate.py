"""mt-scaffold translate: see mt_scaffold.experiment.inference.translate."""

from __future__ import annotations

import argparse

from mt_scaffold.experiment.inference.export_ctranslate2 import QUANTIZATIONS
from mt_scaffold.experiment.inference.translate import ENGINES, translate
from mt_scaffold.experiment.runtime.fairseq import option_arguments

EXAMPLES = """\
mt-scaffold translate --data binarised --subset test --model averaged.pt --output translations -- --beam 4
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--data", "-d", required=True, metavar="FOLDER", help="what mt-scaffold binarise made")
    parser.add_argument("--subset", required=True, metavar="NAME", help="the test set in it to translate")
    parser.add_argument("--model", "-m", required=True, metavar="FILE", help="a checkpoint or an averaged model")
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="folder for the translations")
    parser.add_argument("--source-words", metavar="FILE", help="the source in words, copied beside the translations")
    parser.add_argument("--seed", type=int, default=1, help="random seed, for sampling (default: 1)")
    parser.add_argument(
        "--gpus", type=int, default=0, metavar="N", help="1: only on a GPU; 0: on one if there is one (default)"
    )
    parser.add_argument("--engine", choices=ENGINES, help="what translates (default: fairseq)")
    parser.add_argument("--quantization", choices=QUANTIZATIONS, help="type of CTranslate2's parameters")
    parser.add_argument(
        "--config", metavar="FILE", help="take engine, quantization and options from this experiment configuration"
    )
    parser.add_argument(
        "fairseq_options", nargs="*", metavar="-- OPTIONS", help="options of fairseq-generate, after --"
    )


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    arguments = list(options.fairseq_options)
    engine, quantization = options.engine or "fairseq", options.quantization
    if options.config:
        from mt_scaffold.experiment.configuration import load_config

        section = load_config(options.config).translate
        arguments = option_arguments(section.options) + arguments
        engine = options.engine or section.engine
        # That of the configuration belongs to its engine.
        quantization = quantization or (section.quantization if engine == section.engine else None)
    translate(
        options.data,
        options.subset,
        options.model,
        options.output,
        arguments,
        seed=options.seed,
        source_words=options.source_words,
        gpus=options.gpus,
        engine=engine,
        quantization=quantization,
    )
