"""mt-scaffold sample: see mt_scaffold.experiment.inference.sample."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from mt_scaffold.corpus.files import write_text
from mt_scaffold.corpus.text import read_lines
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.inference.sample import Sampling, format_samples, sample

EXAMPLES = """\
mt-scaffold sample --checkpoint averaged.pt --data binarised --prompt "Once upon a time" --temperature 0.8
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = (
        "Have a language model write text: from the start of a document, or after each prompt. The output shows each "
        "prompt with what the model wrote; several are set apart by lines such as --- prompt 1, sample 2. The same "
        "seed writes the same text on the same machine."
    )
    parser.add_argument("--checkpoint", required=True, metavar="FILE", help="a checkpoint of the language model")
    parser.add_argument("--data", "-d", required=True, metavar="FOLDER", help="what binarise-documents made")
    parser.add_argument(
        "--codes", "-c", metavar="FILE", help="the codes it was made with (default: those in the folder)"
    )
    prompts = parser.add_mutually_exclusive_group()
    prompts.add_argument("--prompt", metavar="TEXT", help="what to continue (default: start a document)")
    prompts.add_argument("--prompts", metavar="FILE", help="a prompt per line")
    parser.add_argument("--length", type=int, default=100, metavar="N", help="tokens at most (default: 100)")
    parser.add_argument("--number", type=int, default=1, metavar="N", help="samples of each prompt (default: 1)")
    parser.add_argument(
        "--temperature",
        type=float,
        default=1.0,
        metavar="T",
        help="divides the logits; 0: always the likeliest token (default: 1)",
    )
    parser.add_argument("--top-k", type=int, default=0, metavar="K", help="draw from the K likeliest tokens (0: all)")
    parser.add_argument(
        "--top-p", type=float, default=1.0, metavar="P", help="draw from the likeliest whose probabilities sum to P"
    )
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    parser.add_argument(
        "--gpus", type=int, default=0, metavar="N", help="1: insist on a GPU (default: one if there is)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object per sample instead")
    parser.add_argument("--output", "-o", metavar="FILE", help="where to write (default: standard output)")


def run(options: argparse.Namespace) -> None:
    """Run the command and show the samples."""
    prompts = read_lines(options.prompts) if options.prompts else [options.prompt or ""]
    if not prompts:
        raise UsageError(f"--prompts {options.prompts}: no prompt in it; give one per line")
    samples = sample(
        options.checkpoint,
        options.data,
        prompts,
        codes=options.codes,
        length=options.length,
        number=options.number,
        sampling=Sampling(options.temperature, options.top_k, options.top_p),
        seed=options.seed,
        gpus=options.gpus,
    )
    text = format_samples(samples, options.number)
    if options.json:
        text = "".join(f"{json.dumps(asdict(each), ensure_ascii=False)}\n" for each in samples)
    if options.output:
        write_text(options.output, text)
    else:
        print(text, end="")
