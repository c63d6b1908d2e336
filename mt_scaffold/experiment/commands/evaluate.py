"""mt-scaffold evaluate: see mt_scaffold.experiment.evaluation.bits_per_byte."""

from __future__ import annotations

import argparse

from mt_scaffold.experiment.evaluation.bits_per_byte import evaluate

EXAMPLES = """\
mt-scaffold evaluate --checkpoint averaged.pt --data binarised --output scores.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = (
        "Score a language model in bits per byte: -log2 p of all tokens, the end of each document included, divided by "
        "the bytes of the raw documents. Each document is scored by itself, from </s>; one that is longer than the "
        "model's positions is read in windows that overlap (--context-window). The perplexity per token is not "
        "comparable between vocabularies."
    )
    parser.add_argument("--checkpoint", required=True, metavar="FILE", help="a checkpoint of the language model")
    parser.add_argument("--data", "-d", required=True, metavar="FOLDER", help="what binarise-documents made")
    parser.add_argument("--split", default="test", metavar="NAME", help="train, valid or test (default: test)")
    parser.add_argument("--output", "-o", required=True, metavar="FILE", help="the scores, as JSON")
    parser.add_argument(
        "--context-window",
        type=int,
        metavar="N",
        help="tokens by which the windows of a long document overlap: each token is predicted with at least N tokens "
        "before it, where the document has them (default: half of the model's positions; 0: no overlap)",
    )
    parser.add_argument(
        "--max-tokens", type=int, default=4096, metavar="N", help="tokens of a batch (default: %(default)s)"
    )
    parser.add_argument(
        "--gpus", type=int, default=0, metavar="N", help="1: insist on a GPU (default: one if there is)"
    )
    parser.add_argument("--system", metavar="NAME", help="the system (default: the folder of the training)")
    parser.add_argument("--test-set", metavar="NAME", help="the test set (default: the data folder's name)")
    parser.add_argument("--seed", type=int, default=1, help="the training's random seed (default: 1)")
    parser.add_argument("--synthetic", action="store_true", help="label the scores as those of synthetic data")


def run(options: argparse.Namespace) -> None:
    """Run the command and show the scores."""
    scores = evaluate(
        options.checkpoint,
        options.data,
        options.output,
        options.split,
        context_window=options.context_window,
        max_tokens=options.max_tokens,
        gpus=options.gpus,
        system=options.system,
        test_set=options.test_set,
        seed=options.seed,
        synthetic=options.synthetic,
    )
    if scores.synthetic:
        print("synthetic data")
    print(f"bits per byte: {scores.bits_per_byte:.4f}  {scores.signature}")
    counts = f"{scores.bytes:,} bytes, {scores.tokens:,} tokens with each </s>"
    print(f"bytes per token: {scores.bytes_per_token:.4f}  ({counts})")
    print(f"perplexity per token: {scores.perplexity_per_token:.2f}  (not comparable between vocabularies)")
