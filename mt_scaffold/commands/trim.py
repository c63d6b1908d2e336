"""``mt-scaffold trim``: codes → codes with more scaffold tokens."""

from __future__ import annotations

import argparse
import sys
from typing import Literal

from mt_scaffold.codes import Codes
from mt_scaffold.commands.arguments import add_documents, add_num_workers, given_documents
from mt_scaffold.commands.extend import add_map
from mt_scaffold.corpus.files import output_or_standard
from mt_scaffold.errors import UsageError
from mt_scaffold.methods.trimming import SAME, trim
from mt_scaffold.segment.id_maps import IdMap, write_surgery

_MIN_FREQUENCY = 2

EXAMPLES = """\
mt-scaffold trim bpe.codes --below 100 --input train.de --output trimmed.codes
mt-scaffold trim bpe.codes --below 20 --refill same --input train.de train.en --output refilled.codes
mt-scaffold trim bpe.codes --tokens unwanted.txt --output marked.codes
mt-scaffold trim cl100k.codes --below 10 --input train.de --output smaller.codes --map map.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("codes", metavar="CODES", help="codes file, of subword-nmt too")
    parser.add_argument(
        "--below",
        type=_frequency,
        metavar="FREQ",
        help="mark tokens rarer than FREQ in the text as CODES segment it; below 1, FREQ is a share of the last "
        "merge's frequency",
    )
    parser.add_argument(
        "--ratio",
        type=float,
        metavar="R",
        help="mark tokens that occur on their own in less than this share of their occurrences, on their own and "
        "inside longer tokens",
    )
    parser.add_argument(
        "--entropy",
        type=float,
        metavar="BITS",
        help="with --ratio, mark only tokens next to which the text is predictable: the entropy of the symbol on their "
        "left and of that on their right is at most BITS",
    )
    parser.add_argument("--tokens", metavar="PATH", help="mark these tokens, one per line as in CODES; needs no text")
    parser.add_argument(
        "--refill",
        type=_number_or_same,
        metavar="N",
        help=f"continue learning BPE merges from the text up to N normal tokens; {SAME}: as many as CODES have",
    )
    parser.add_argument(
        "--min-frequency",
        type=int,
        metavar="FREQ",
        help="with --refill, stop when no pair has a frequency >= FREQ, nor >= that of --below "
        f"(default: {_MIN_FREQUENCY})",
    )
    add_documents(parser, "the text")
    parser.add_argument("--counts", nargs="+", metavar="PATH", help="count files (count-words; globs too) as the text")
    parser.add_argument("--output", "-o", metavar="PATH", help="codes file (default: standard output)")
    add_map(parser)
    add_num_workers(parser)


def _frequency(value: str) -> float:
    try:
        return int(value) if value.lstrip("-").isdecimal() else float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"give a frequency, or a share such as 0.5, not '{value}'") from None


def _number_or_same(value: str) -> int | Literal["same"]:
    if value == SAME:
        return "same"
    try:
        return int(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"give a number, or '{SAME}', not '{value}'") from None


def run(options: argparse.Namespace) -> None:
    text = options.input or options.format or options.field
    if options.counts and text:
        raise UsageError("--counts takes the place of --input, --format and --field; omit those")
    if options.min_frequency is not None and options.refill is None:
        raise UsageError("--min-frequency is that of the merges that --refill learns; omit it, or give --refill")
    by_text = any(rule is not None for rule in (options.below, options.ratio, options.refill))
    given = Codes.read(options.codes)
    result = trim(
        options.codes,
        outfile=output_or_standard(options.output),
        below=options.below,
        ratio=options.ratio,
        entropy=options.entropy,
        tokens=options.tokens,
        refill=options.refill,
        min_frequency=_MIN_FREQUENCY if options.min_frequency is None else options.min_frequency,
        num_workers=options.num_workers,
        documents=given_documents(options) if (by_text or text) and not options.counts else None,
        counts=options.counts,
    )
    moved = write_surgery(given, result.codes, options.output, options.map)
    scaffold, normal = len(result.codes.scaffold), len(result.codes.normal)
    print(
        f"{result.marked:,} tokens newly scaffold, {scaffold:,} in all; {result.learned:,} merges learned; {normal:,} "
        "normal tokens" + (f"; {moved.old:,} ids, now {moved.new:,}" if isinstance(moved, IdMap) else ""),
        file=sys.stderr,
    )
