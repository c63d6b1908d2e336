"""mt-scaffold apply-unigram: see mt_scaffold.methods.unigram_segmenter."""

from __future__ import annotations

from typing import Annotated

from mt_scaffold.experiment.commands.arguments import Threads
from mt_scaffold.methods.unigram_segmenter import apply_unigram
from mt_scaffold.options_from_signature import Option

EXAMPLES = """\
mt-scaffold apply-unigram --codes unigram.model --input train.en --output train.pieces.en
"""


def run(
    codes: Annotated[str, Option("MODEL", "-c")],
    input: Annotated[str, Option("PATH", "-i")],
    output: Annotated[str, Option("PATH", "-o")],
    num_workers: Threads = None,
) -> None:
    """Segment text.

    codes: model of learn-unigram
    input: text of words
    output: text of pieces, separated by spaces
    """
    apply_unigram(codes, input, output, num_workers)
