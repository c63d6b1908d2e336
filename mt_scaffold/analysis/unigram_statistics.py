"""How a Unigram model segments a text, in the figures that codes are measured by (docs/statistics.md)."""

from __future__ import annotations

from dataclasses import replace

from mt_scaffold._core import WordCounts
from mt_scaffold.analysis.stats import Summary, summarise
from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike, shown
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.frequencies import Vocabulary
from mt_scaffold.methods.unigram_segmenter import UnigramSegmenter


def use_of_pieces(model: PathLike, counts: WordCounts) -> Vocabulary:
    """Measure how often counted words (``count_words``) use each piece of a Unigram model.

    The vocabulary is that of its pieces without ``<unk>``, and the characters of the text that it does not have.

    Raises MTScaffoldError where the file is not such a model, or no words were counted.
    """
    if len(counts) == 0:
        raise MTScaffoldError("there are no words in the input, so there is nothing to measure")
    segmenter = UnigramSegmenter(model)
    frequencies = dict.fromkeys(segmenter.surface_forms(), 0) | segmenter.count_subwords(counts)
    words, lines = counts.total(), counts.lines()
    return Vocabulary(
        codes=Codes(b"#version: 0.2\n", shown(model)),
        frequencies=frequencies,
        normal=frozenset(piece for piece in frequencies if len(piece) > 1),
        scaffold=frozenset(),
        words=words,
        lines=lines,
        text_bytes=counts.word_bytes() + words - lines,
    )


def summarise_pieces(vocabulary: Vocabulary) -> Summary:
    """Return the figures of a Unigram model, None for those that only codes have."""
    return replace(summarise(vocabulary), merges=None, scaffold_tokens=None, scaffold_share=None)
