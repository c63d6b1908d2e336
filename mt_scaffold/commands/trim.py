"""``mt-scaffold trim``: codes → codes with more scaffold tokens."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Annotated, Literal

from mt_scaffold.codes import Codes
from mt_scaffold.commands.option_types import MapFile, NewCodes, Text, Threads
from mt_scaffold.corpus.files import output_or_standard
from mt_scaffold.errors import UsageError
from mt_scaffold.methods.trimming import SAME, trim
from mt_scaffold.options_from_signature import Option
from mt_scaffold.segment.id_maps import IdMap, write_surgery

_MIN_FREQUENCY = 2


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


def run(
    codes: Annotated[str, Option("CODES")],
    /,
    below: Annotated[float | None, Option("FREQ", convert=_frequency)] = None,
    ratio: Annotated[float | None, Option("R")] = None,
    entropy: Annotated[float | None, Option("BITS")] = None,
    tokens: Annotated[str | None, Option("PATH")] = None,
    refill: Annotated[int | Literal["same"] | None, Option("N", convert=_number_or_same)] = None,
    min_frequency: Annotated[int | None, Option("FREQ")] = None,
    *,
    text: Text,
    counts: Annotated[Sequence[str] | None, Option("PATH")] = None,
    output: NewCodes = None,
    map: MapFile = None,
    num_workers: Threads = None,
) -> None:
    """Write trimmed codes.

    codes: codes file, of subword-nmt too
    below: mark tokens rarer than FREQ in the text as CODES segment it; below 1, FREQ is a share of the last merge's
        frequency
    ratio: mark tokens that occur on their own in less than this share of their occurrences, on their own and inside
        longer tokens
    entropy: with --ratio, mark only tokens next to which the text is predictable: the entropy of the symbol on their
        left and of that on their right is at most BITS
    tokens: mark these tokens, one per line as in CODES; needs no text
    refill: continue learning BPE merges from the text up to N normal tokens; same: as many as CODES have
    min_frequency: with --refill, stop when no pair has a frequency >= FREQ, nor >= that of --below (default: 2)
    counts: count files (count-words; globs too) as the text
    """
    if counts and text.given:
        raise UsageError("--counts takes the place of --input, --format and --field; omit those")
    if min_frequency is not None and refill is None:
        raise UsageError("--min-frequency is that of the merges that --refill learns; omit it, or give --refill")
    by_text = any(rule is not None for rule in (below, ratio, refill))
    given = Codes.read(codes)
    result = trim(
        codes,
        outfile=output_or_standard(output),
        below=below,
        ratio=ratio,
        entropy=entropy,
        tokens=tokens,
        refill=refill,
        min_frequency=_MIN_FREQUENCY if min_frequency is None else min_frequency,
        num_workers=num_workers,
        documents=text.documents if (by_text or text.given) and not counts else None,
        counts=counts,
    )
    moved = write_surgery(given, result.codes, output, map)
    scaffold, normal = len(result.codes.scaffold), len(result.codes.normal)
    print(
        f"{result.marked:,} tokens newly scaffold, {scaffold:,} in all; {result.learned:,} merges learned; {normal:,} "
        "normal tokens" + (f"; {moved.old:,} ids, now {moved.new:,}" if isinstance(moved, IdMap) else ""),
        file=sys.stderr,
    )
