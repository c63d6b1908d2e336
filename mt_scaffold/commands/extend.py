"""``mt-scaffold extend``: codes → codes with more tokens, from another text."""

from __future__ import annotations

import sys
from typing import Annotated

from mt_scaffold.codes import Codes
from mt_scaffold.commands.option_types import MapFile, NewCodes, Text, Threads
from mt_scaffold.corpus.files import output_or_standard
from mt_scaffold.errors import UsageError
from mt_scaffold.methods.extending import ALGORITHMS, extend
from mt_scaffold.methods.picky import Picky
from mt_scaffold.options_from_signature import Option
from mt_scaffold.segment.id_maps import write_surgery


def run(
    codes: Annotated[str, Option("CODES")],
    /,
    symbols: Annotated[int, Option(short="-s")] = 1000,
    algorithm: Annotated[str, Option(choices=ALGORITHMS)] = ALGORITHMS[0],
    threshold: Annotated[
        float | None,
        Option(
            "T",
            help="with picky: remove a token when one merge takes this share of its occurrences "
            f"(default: {Picky.threshold})",
        ),
    ] = None,
    min_frequency: Annotated[int, Option("FREQ")] = 2,
    *,
    text: Text,
    output: NewCodes = None,
    map: MapFile = None,
    num_workers: Threads = None,
) -> None:
    """Write extended codes.

    codes: codes file, imported ones too
    symbols: new tokens
    algorithm: how learning continues; scaffold marks only new tokens, picky (for PickyBPE's codes) removes only new
        ones
    min_frequency: stop when no pair has a frequency >= FREQ
    """
    if threshold is not None and algorithm != "picky":
        raise UsageError("--threshold is an option of --algorithm picky; omit it, or choose picky")
    given = Codes.read(codes)
    result = extend(
        codes,
        outfile=output_or_standard(output),
        num_symbols=symbols,
        algorithm=algorithm,
        min_frequency=min_frequency,
        threshold=Picky.threshold if threshold is None else threshold,
        num_workers=num_workers,
        documents=text.documents,
    )
    write_surgery(given, result.codes, output, map)
    merges = len(result.codes.merges)
    print(f"{merges - len(given.merges):,} merges learned, {merges:,} in all", file=sys.stderr)
