"""mt-scaffold translate-text: see mt_scaffold.experiment.packing.packed_model."""

from __future__ import annotations

import argparse
import contextlib

from mt_scaffold.corpus.files import open_input, open_output, refuse_overwriting, standard_input, standard_output
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.packing.packed_model import BLOCK_LINES, PackedModel, translate_text
from mt_scaffold.options import worker_count
from mt_scaffold.progress import progress_line

EXAMPLES = """\
mt-scaffold translate-text --model demo-scaffold < text > translation
mt-scaffold translate-text --model demo-scaffold --input text.gz --n-best 4 --output best
mt-scaffold translate-text --model demo-scaffold --block 1 --beam 1
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = (
        "Translate raw text, one sentence per line, with a model that mt-scaffold pack has packed. Line i of the "
        "output translates line i of the input; empty lines stay empty."
    )
    parser.add_argument("--model", "-m", required=True, metavar="FOLDER", help="what mt-scaffold pack made")
    parser.add_argument("--input", "-i", metavar="FILE", help="raw text, .gz and .zst too (default: standard input)")
    parser.add_argument("--output", "-o", metavar="FILE", help="where to write (default: standard output)")
    parser.add_argument("--beam", type=int, metavar="N", help="size of the beam (default: the experiment's)")
    parser.add_argument("--lenpen", type=float, metavar="P", help="length penalty (default: the experiment's)")
    parser.add_argument(
        "--batch-tokens",
        type=int,
        metavar="N",
        help="subwords of the source to translate at once, padding included; fewer take less memory (default: the "
        "experiment's)",
    )
    parser.add_argument(
        "--n-best",
        type=int,
        metavar="N",
        help="write N translations of each line, as LINE ||| TRANSLATION ||| SCORE; lines count from 0",
    )
    parser.add_argument("--scores", action="store_true", help="write a score and a tab before each translation")
    parser.add_argument(
        "--block",
        type=int,
        metavar="N",
        help=f"lines to read before any is translated (default: {BLOCK_LINES:,}; on a terminal 1)",
    )
    parser.add_argument("--device", metavar="NAME", help="cpu, cuda or cuda:N (default: a GPU if there is one)")
    parser.add_argument(
        "--num-workers",
        type=int,
        metavar="N",
        help="processes on a CPU, -1 for all cores; the output is the same for any number (default: "
        "MT_SCAFFOLD_NUM_WORKERS, or else the cores that this process can use, at most 16)",
    )
    parser.add_argument(
        "--test-set", metavar="NAME", help="tokenise as this test set of the experiment, where it has its own settings"
    )


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    if options.scores and options.n_best is not None:
        raise UsageError("--scores: --n-best writes the scores anyway; give one of the two")
    refuse_overwriting([options.output], [options.input])
    with contextlib.ExitStack() as stack:
        source = standard_input() if options.input is None else stack.enter_context(open_input(options.input))
        dialogue = options.input is None and source.isatty()
        block = (1 if dialogue else BLOCK_LINES) if options.block is None else options.block
        model = stack.enter_context(
            PackedModel(
                options.model,
                device=options.device,
                beam=options.beam,
                lenpen=options.lenpen,
                batch_tokens=options.batch_tokens,
                num_workers=worker_count(options.num_workers),
                test_set=options.test_set,
            )
        )
        target = standard_output() if options.output is None else stack.enter_context(open_output(options.output))
        show = None if dialogue else stack.enter_context(progress_line("translating", "sentences"))
        translate_text(
            model,
            source,
            target,
            n_best=options.n_best,
            scores=options.scores,
            block_lines=block,
            name=options.input or "standard input",
            show=show,
        )
