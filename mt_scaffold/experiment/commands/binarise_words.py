"""mt-scaffold binarise-words: see mt_scaffold.experiment.binarise.pairs_as_words."""

from __future__ import annotations

from mt_scaffold.experiment.binarise.pairs_as_words import binarise_words
from mt_scaffold.experiment.commands.arguments import DataOptions, Languages, LimitOptions, SegmentationOptions

EXAMPLES = """\
mt-scaffold binarise-words --train train --valid valid --source-lang en --target-lang de --codes codes --output data
"""


def run(data: DataOptions, languages: Languages, segmented: SegmentationOptions, limited: LimitOptions) -> None:
    """Make a fairseq data folder of words, to be segmented during training.

    Make a fairseq data folder of words, for fairseq's --task translation_bpe_dropout, which segments them during
    training; see docs/fairseq.md.
    """
    binarise_words(
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
