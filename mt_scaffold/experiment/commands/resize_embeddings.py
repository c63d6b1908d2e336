"""mt-scaffold resize-embeddings: see mt_scaffold.experiment.surgery."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.commands.arguments import File, OutputFolder
from mt_scaffold.experiment.surgery.fairseq_model import resize_fairseq
from mt_scaffold.experiment.surgery.transformers_model import resize_transformers
from mt_scaffold.options_from_signature import Option

EXAMPLES = """\
mt-scaffold trim model.codes --below 10 --input corpus.txt --output small.codes --map map.json
mt-scaffold resize-embeddings llama map.json --output small-llama
mt-scaffold resize-embeddings averaged.pt map.json --dictionaries dict.en.txt dict.de.txt --output small
"""


def run(
    model: Annotated[str, Option("MODEL")],
    maps: Annotated[Sequence[str], Option("MAP")],
    /,
    *,
    dictionaries: Sequence[File] = (),
    more_rows: Annotated[int | None, Option("N")] = None,
    output: OutputFolder,
) -> None:
    """Resize a model, and print the changes to standard error.

    model: a model of transformers (a folder), or a checkpoint of fairseq
    maps: the file that trim or extend wrote with --map; two for source and target codes
    dictionaries: for a checkpoint: its dictionary, or those of source and target
    more_rows: for a model of transformers: the number of rows after the ids of the map, which are kept (default: up to
        a twentieth of them, or 1,024)
    output: the folder to write, a new one
    """
    if Path(model).is_dir():
        if dictionaries or len(maps) > 1:
            raise UsageError(f"{model}: a model of transformers takes one map and no dictionaries")
        resized = resize_transformers(model, maps[0], output, more_rows)
    else:
        if not Path(model).exists():
            raise MTScaffoldError(f"{model}: no such model; give a folder of transformers, or a checkpoint")
        if more_rows is not None:
            raise UsageError("--more-rows: the rows of a fairseq checkpoint are those of its dictionary; omit it")
        if not dictionaries:
            raise UsageError(f"{model}: a checkpoint of fairseq; give its --dictionaries")
        resized = resize_fairseq(model, maps, dictionaries, output)
    for note in resized.notes:
        print(note, file=sys.stderr)
    for name, (before, after) in resized.rows.items():
        print(f"{name}: {before:,} rows, now {after:,}", file=sys.stderr)
    before, after = resized.parameters
    change = f"{resized.saved:,} saved" if resized.saved >= 0 else f"{-resized.saved:,} more"
    print(f"{resized.added:,} rows are new; {before:,} parameters, now {after:,}: {change}", file=sys.stderr)
