"""mt-scaffold evaluate: see mt_scaffold.experiment.evaluation.bits_per_byte."""

from __future__ import annotations

import argparse

from mt_scaffold.corpus.documents import DOCUMENT_FORMATS
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.evaluation.bits_per_byte import evaluate, evaluate_folder

EXAMPLES = """\
mt-scaffold evaluate --checkpoint averaged.pt --data binarised --output scores.json
mt-scaffold evaluate --checkpoint averaged.pt --data binarised --counts words.counts --losses losses.json -o scores.json
mt-scaffold evaluate --model pythia-410m --documents test.jsonl --positions 1024 --output scores.json
"""

# What goes with one kind of model only.
_OF_CHECKPOINT = ("data", "split", "counts", "losses")
_OF_FOLDER = ("documents", "format", "field", "positions", "trust_remote_code")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = (
        "Score a language model in bits per byte: -log2 p of all tokens, the end of each document included, divided by "
        "the bytes of the raw documents. Each document is scored by itself, from </s>; one that is longer than the "
        "model's positions is read in windows that overlap (--context-window). The perplexity per token is not "
        "comparable between vocabularies."
    )
    parser.add_argument("--checkpoint", metavar="FILE", help="a checkpoint of the language model")
    parser.add_argument("--data", "-d", metavar="FOLDER", help="with --checkpoint: what binarise-documents made")
    parser.add_argument("--split", metavar="NAME", help="with --data: train, valid or test (default: test)")
    parser.add_argument("--losses", metavar="FILE", help="how the loss divides by frequency of word and token, as JSON")
    parser.add_argument("--counts", metavar="FILE", help="with --losses: the counted words of the training text")
    parser.add_argument("--model", metavar="FOLDER", help="or a causal model of transformers, with its tokenizer")
    parser.add_argument("--documents", nargs="+", metavar="FILE", help="with --model: the raw documents to score it on")
    parser.add_argument("--format", choices=DOCUMENT_FORMATS, help="of --documents (default: by the file's name)")
    parser.add_argument("--field", metavar="NAME", help="of JSONL and Parquet: where the text is (default: text)")
    parser.add_argument(
        "--positions", type=int, metavar="N", help="with --model: read at most N tokens at once (default: all it can)"
    )
    parser.add_argument(
        "--trust-remote-code", action="store_true", help="with --model: let it run the Python files in its folder"
    )
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
    names = ("context_window", "max_tokens", "gpus", "system", "test_set", "seed", "synthetic")
    common = {name: getattr(options, name) for name in names}
    if (options.model is None) == (options.checkpoint is None):
        raise UsageError("evaluate: give either --checkpoint and --data, or --model and --documents")
    given, other = ("checkpoint", _OF_FOLDER) if options.model is None else ("model", _OF_CHECKPOINT)
    for name in other:
        if getattr(options, name):
            raise UsageError(f"evaluate: --{name.replace('_', '-')} does not go with --{given}; leave it out")
    if options.model is None:
        if options.data is None:
            raise UsageError("evaluate: with --checkpoint, give --data")
        own = {name: getattr(options, name) for name in ("counts", "losses")}
        scores = evaluate(options.checkpoint, options.data, options.output, options.split or "test", **own, **common)
    else:
        if not options.documents:
            raise UsageError("evaluate: with --model, give --documents")
        own = {name: getattr(options, name) for name in ("format", "field", "positions", "trust_remote_code")}
        scores = evaluate_folder(options.model, options.documents, options.output, **own, **common)
    if scores.synthetic:
        print("synthetic data")
    print(f"bits per byte: {scores.bits_per_byte:.4f}  {scores.signature}")
    counts = f"{scores.bytes:,} bytes, {scores.tokens:,} tokens with each </s>"
    print(f"bytes per token: {scores.bytes_per_token:.4f}  ({counts})")
    print(f"perplexity per token: {scores.perplexity_per_token:.2f}  (not comparable between vocabularies)")
