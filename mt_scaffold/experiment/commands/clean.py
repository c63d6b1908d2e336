"""mt-scaffold clean: see mt_scaffold.experiment.data.clean."""

from __future__ import annotations

import argparse
import sys

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.data.clean import HoldOut, clean
from mt_scaffold.experiment.runtime.results import write_result

EXAMPLES = """\
mt-scaffold clean --source train.en --target train.de --output-source clean.en --output-target clean.de
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--source", "-s", required=True, metavar="FILE", help="tokenised source side")
    parser.add_argument("--target", "-t", required=True, metavar="FILE", help="tokenised target side")
    parser.add_argument("--output-source", required=True, metavar="FILE", help="source side of the kept pairs")
    parser.add_argument("--output-target", required=True, metavar="FILE", help="target side of the kept pairs")
    parser.add_argument("--min-tokens", type=int, default=1, metavar="N", help="minimum words per side (default: 1)")
    parser.add_argument(
        "--max-tokens", type=int, default=250, metavar="N", help="maximum words per side (default: 250)"
    )
    parser.add_argument(
        "--max-ratio",
        type=float,
        default=1.5,
        metavar="R",
        help="maximum ratio of the two sides' word counts (default: 1.5)",
    )
    parser.add_argument(
        "--valid-every", type=int, metavar="N", help="hold out every Nth pair, counted after cleaning, for validation"
    )
    parser.add_argument("--valid-source", metavar="FILE", help="source side of the pairs held out")
    parser.add_argument("--valid-target", metavar="FILE", help="target side of the pairs held out")
    parser.add_argument(
        "--count-before-cleaning", action="store_true", help="count the pairs to hold out before cleaning, not after"
    )
    parser.add_argument("--report", metavar="FILE", help="write what was kept and dropped to FILE as JSON")


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    held_out = (options.valid_every, options.valid_source, options.valid_target)
    if None in held_out and (any(held_out) or options.count_before_cleaning):
        raise UsageError("clean: give --valid-every, --valid-source and --valid-target together, or none of them")
    report = clean(
        options.source,
        options.target,
        options.output_source,
        options.output_target,
        min_tokens=options.min_tokens,
        max_tokens=options.max_tokens,
        max_ratio=options.max_ratio,
        hold_out=None if None in held_out else HoldOut(*held_out, before_cleaning=options.count_before_cleaning),
    )
    for name, part in (("", report), ("for validation: ", report.held_out)):
        if part is not None:
            dropped = ", ".join(f"{reason} {count}" for reason, count in part.dropped.items())
            print(f"{name}kept {part.pairs_kept} of {part.pairs_read} pairs (dropped: {dropped})", file=sys.stderr)
    if options.report:
        write_result(options.report, report)
