"""mt-scaffold translate-text: see mt_scaffold.experiment.packing.packed_model."""

from __future__ import annotations

import contextlib
from typing import Annotated

from mt_scaffold.corpus.files import open_input, open_output, refuse_overwriting, standard_input, standard_output
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.commands.arguments import Name, OutputFile
from mt_scaffold.experiment.packing.packed_model import BLOCK_LINES, PackedModel, translate_text
from mt_scaffold.options import worker_count
from mt_scaffold.options_from_signature import Option
from mt_scaffold.progress import progress_line

EXAMPLES = """\
mt-scaffold translate-text --model demo-scaffold < text > translation
mt-scaffold translate-text --model demo-scaffold --input text.gz --n-best 4 --output best
mt-scaffold translate-text --model demo-scaffold --block 1 --beam 1
"""
_BLOCK = f"lines to read before translating them (default: {BLOCK_LINES:,}; on a terminal 1)"


def run(
    *,
    model: Annotated[str, Option("FOLDER", "-m")],
    input: Annotated[str | None, Option("FILE", "-i")] = None,
    output: OutputFile | None = None,
    beam: int | None = None,
    lenpen: Annotated[float | None, Option("P")] = None,
    batch_tokens: int | None = None,
    n_best: int | None = None,
    scores: bool = False,
    block: Annotated[int | None, Option(help=_BLOCK)] = None,
    device: Name | None = None,
    num_workers: int | None = None,
    test_set: Name | None = None,
) -> None:
    """Translate text.

    Translate raw text, one sentence per line, with a model that mt-scaffold pack has packed. Line i of the output
    translates line i of the input; empty lines stay empty.

    model: the folder that mt-scaffold pack made
    input: raw text, plain, .gz or .zst (default: standard input)
    output: output file (default: standard output)
    beam: size of the beam (default: the experiment's)
    lenpen: length penalty (default: the experiment's)
    batch_tokens: subwords of the source to translate at once, padding included; fewer take less memory (default: the
        experiment's)
    n_best: write N translations of each line, as LINE ||| TRANSLATION ||| SCORE; lines count from 0
    scores: write a score and a tab before each translation
    device: cpu, cuda or cuda:N (default: a GPU if there is one)
    num_workers: processes on a CPU, -1 for all cores; the output is the same for any number (default:
        MT_SCAFFOLD_NUM_WORKERS, or else the cores that this process can use, at most 16)
    test_set: tokenise like this test set of the experiment, if it has its own settings
    """
    if scores and n_best is not None:
        raise UsageError("--scores: --n-best writes the scores anyway; give one of the two")
    refuse_overwriting([output], [input])
    with contextlib.ExitStack() as stack:
        source = standard_input() if input is None else stack.enter_context(open_input(input))
        dialogue = input is None and source.isatty()
        block_lines = (1 if dialogue else BLOCK_LINES) if block is None else block
        packed = stack.enter_context(
            PackedModel(
                model,
                device=device,
                beam=beam,
                lenpen=lenpen,
                batch_tokens=batch_tokens,
                num_workers=worker_count(num_workers),
                test_set=test_set,
            )
        )
        target = standard_output() if output is None else stack.enter_context(open_output(output))
        show = None if dialogue else stack.enter_context(progress_line("translating", "sentences"))
        translate_text(
            packed,
            source,
            target,
            n_best=n_best,
            scores=scores,
            block_lines=block_lines,
            name=input or "standard input",
            show=show,
        )
