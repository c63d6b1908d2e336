"""mt-scaffold resize-embeddings: see mt_scaffold.experiment.surgery."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.surgery.fairseq_model import resize_fairseq
from mt_scaffold.experiment.surgery.transformers_model import resize_transformers

EXAMPLES = """\
mt-scaffold trim model.codes --below 10 --input corpus.txt --output small.codes --map map.json
mt-scaffold resize-embeddings llama map.json --output small-llama
mt-scaffold resize-embeddings averaged.pt map.json --dictionaries dict.en.txt dict.de.txt --output small
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", metavar="MODEL", help="a model of transformers (a folder), or a checkpoint of fairseq")
    parser.add_argument(
        "maps", metavar="MAP", nargs="+", help="what --map of trim or extend wrote; two for source and target codes"
    )
    parser.add_argument(
        "--dictionaries",
        nargs="+",
        default=[],
        metavar="FILE",
        help="of a checkpoint: its dictionary, or those of source and target",
    )
    parser.add_argument(
        "--more-rows",
        type=int,
        metavar="N",
        help="of a model of transformers: the rows after the ids of the map, which stay (default: up to a twentieth of "
        "them, or 1,024)",
    )
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="the folder to write, a new one")


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    if Path(options.model).is_dir():
        if options.dictionaries or len(options.maps) > 1:
            raise UsageError(f"{options.model}: a model of transformers takes one map and no dictionaries")
        resized = resize_transformers(options.model, options.maps[0], options.output, options.more_rows)
    else:
        if not Path(options.model).exists():
            raise MTScaffoldError(f"{options.model}: no such model; give a folder of transformers, or a checkpoint")
        if options.more_rows is not None:
            raise UsageError(
                "--more-rows: a checkpoint of fairseq has a dictionary that says what its rows are; omit it"
            )
        if not options.dictionaries:
            raise UsageError(f"{options.model}: a checkpoint of fairseq; give its --dictionaries")
        resized = resize_fairseq(options.model, options.maps, options.dictionaries, options.output)
    for note in resized.notes:
        print(note, file=sys.stderr)
    for name, (before, after) in resized.rows.items():
        print(f"{name}: {before:,} rows, now {after:,}", file=sys.stderr)
    before, after = resized.parameters
    change = f"{resized.saved:,} saved" if resized.saved >= 0 else f"{-resized.saved:,} more"
    print(f"{resized.added:,} rows are new; {before:,} parameters, now {after:,}: {change}", file=sys.stderr)
