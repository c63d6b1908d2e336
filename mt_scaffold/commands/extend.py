"""``mt-scaffold extend``: codes → codes with more tokens, from another text."""

from __future__ import annotations

import argparse
import sys

from mt_scaffold.codes import Codes
from mt_scaffold.commands.arguments import add_documents, add_num_workers, given_documents
from mt_scaffold.corpus.files import output_or_standard
from mt_scaffold.errors import UsageError
from mt_scaffold.methods.extending import ALGORITHMS, extend
from mt_scaffold.methods.picky import Picky
from mt_scaffold.segment.id_maps import write_surgery

EXAMPLES = """\
mt-scaffold extend cl100k.codes --symbols 2000 --input train.de --output longer.codes --map map.json
"""


def add_map(parser: argparse.ArgumentParser) -> None:
    """Add ``--map``."""
    parser.add_argument(
        "--map", metavar="PATH", help="write which tokens are gone and which are new, for a model's embeddings"
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("codes", metavar="CODES", help="codes file, imported ones too")
    parser.add_argument(
        "--symbols", "-s", type=int, default=1000, metavar="N", help="new tokens (default: %(default)s)"
    )
    parser.add_argument(
        "--algorithm",
        choices=ALGORITHMS,
        default=ALGORITHMS[0],
        help="how learning continues; scaffold marks only new tokens, picky (for PickyBPE's codes) removes only new "
        "ones (default: %(default)s)",
    )
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="T",
        help="with picky: remove a token when one merge takes this share of its occurrences "
        f"(default: {Picky.threshold})",
    )
    parser.add_argument(
        "--min-frequency",
        type=int,
        default=2,
        metavar="FREQ",
        help="stop when no pair has a frequency >= FREQ (default: %(default)s)",
    )
    add_documents(parser, "the text to learn from")
    parser.add_argument("--output", "-o", metavar="PATH", help="codes file (default: standard output)")
    add_map(parser)
    add_num_workers(parser)


def run(options: argparse.Namespace) -> None:
    if options.threshold is not None and options.algorithm != "picky":
        raise UsageError("--threshold is an option of --algorithm picky; omit it, or choose picky")
    given = Codes.read(options.codes)
    result = extend(
        options.codes,
        outfile=output_or_standard(options.output),
        num_symbols=options.symbols,
        algorithm=options.algorithm,
        min_frequency=options.min_frequency,
        threshold=Picky.threshold if options.threshold is None else options.threshold,
        num_workers=options.num_workers,
        documents=given_documents(options),
    )
    write_surgery(given, result.codes, options.output, options.map)
    merges = len(result.codes.merges)
    print(f"{merges - len(given.merges):,} merges learned, {merges:,} in all", file=sys.stderr)
