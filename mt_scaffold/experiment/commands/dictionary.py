"""mt-scaffold dictionary: see mt_scaffold.experiment.binarise.dictionary."""

from __future__ import annotations

from mt_scaffold.experiment.binarise.dictionary import NO_RESAMPLING, make_dictionaries
from mt_scaffold.experiment.commands.arguments import (
    Languages,
    LimitOptions,
    OutputFolder,
    Prefix,
    SegmentationOptions,
    Workers,
)

EXAMPLES = """\
mt-scaffold dictionary --train train --source-lang en --target-lang de --codes codes --output dictionaries
"""


def run(
    *,
    train: Prefix,
    languages: Languages,
    segmented: SegmentationOptions,
    limited: LimitOptions,
    with_dropout: bool = False,
    output: OutputFolder,
    num_workers: Workers = 1,
) -> None:
    """Make fairseq's dictionaries.

    train: words of the training set: PREFIX.LANGUAGE
    with_dropout: include the subwords that dropout or sampling can make of the training words
    output: folder for dict.LANGUAGE.txt
    """
    segmentation = segmented.segmentation
    make_dictionaries(
        train,
        output,
        languages.source_lang,
        languages.target_lang,
        segmentation,
        limited.limits,
        segmentation.resamplings if with_dropout else NO_RESAMPLING,
        num_workers,
    )
