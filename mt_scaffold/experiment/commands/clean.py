"""mt-scaffold clean: see mt_scaffold.experiment.data.clean."""

from __future__ import annotations

import sys
from typing import Annotated

from mt_scaffold.corpus.files import refuse_overwriting
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.data.clean import HoldOut, clean
from mt_scaffold.experiment.runtime.results import write_result
from mt_scaffold.options_from_signature import File, Option


def clean_text(
    *,
    source: Annotated[str, Option("FILE", "-s")],
    target: Annotated[str, Option("FILE", "-t")],
    output_source: File,
    output_target: File,
    min_tokens: int = 1,
    max_tokens: int = 250,
    max_ratio: Annotated[float, Option("R")] = 1.5,
    valid_every: int | None = None,
    valid_source: File | None = None,
    valid_target: File | None = None,
    count_before_cleaning: bool = False,
    report: File | None = None,
) -> None:
    """Clean parallel text, and print the counts to standard error.

    source: tokenised source side
    target: tokenised target side
    output_source: source side of the kept pairs
    output_target: target side of the kept pairs
    min_tokens: minimum words per side
    max_tokens: maximum words per side
    max_ratio: maximum ratio of the two sides' word counts
    valid_every: hold out every Nth pair, counted after cleaning, for validation
    valid_source: source side of the pairs held out
    valid_target: target side of the pairs held out
    count_before_cleaning: count the pairs to hold out before cleaning, not after
    report: write the numbers of kept and dropped pairs to FILE as JSON
    """
    hold_out = None
    if valid_every is not None and valid_source is not None and valid_target is not None:
        hold_out = HoldOut(valid_every, valid_source, valid_target, before_cleaning=count_before_cleaning)
    elif valid_every or valid_source or valid_target or count_before_cleaning:
        raise UsageError("clean: give --valid-every, --valid-source and --valid-target together, or none of them")
    refuse_overwriting([output_source, output_target, valid_source, valid_target, report], [source, target])
    cleaned = clean(source, target, output_source, output_target, min_tokens, max_tokens, max_ratio, hold_out)
    for name, part in (("", cleaned), ("for validation: ", cleaned.held_out)):
        if part is not None:
            dropped = ", ".join(f"{reason} {count}" for reason, count in part.dropped.items())
            print(f"{name}kept {part.pairs_kept} of {part.pairs_read} pairs (dropped: {dropped})", file=sys.stderr)
    if report:
        write_result(report, cleaned)
