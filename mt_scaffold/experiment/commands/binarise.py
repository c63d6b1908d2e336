"""mt-scaffold binarise: see mt_scaffold.experiment.binarise.pairs_as_ids."""

from __future__ import annotations

from mt_scaffold.experiment.binarise.pairs_as_ids import binarise
from mt_scaffold.experiment.commands.arguments import DataOptions, Languages, LimitOptions, SegmentationOptions

EXAMPLES = """\
mt-scaffold binarise --train train --valid valid --test test --source-lang en --target-lang de --codes codes \\
    --output binarised
"""


def run(data: DataOptions, languages: Languages, segmented: SegmentationOptions, limited: LimitOptions) -> None:
    """Make a fairseq data folder from words and codes."""
    binarise(
        data.output,
        languages.source_lang,
        languages.target_lang,
        segmented.segmentation,
        data.train,
        data.valid,
        data.test,
        data.dictionaries,
        limited.limits,
        num_workers=data.num_workers,
    )
