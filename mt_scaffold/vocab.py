"""Text → vocabulary: counting subwords, and learning joint codes with a vocabulary for each text."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import BinaryIO

from mt_scaffold import _core
from mt_scaffold.apply import BPE
from mt_scaffold.errors import UsageError
from mt_scaffold.files import PathLike, refuse_overwriting, writing_to
from mt_scaffold.learn import LearnedCodes, _say_merge, count_words, learn_from_counts
from mt_scaffold.native import TextSource


def get_vocab(infile: TextSource, outfile: PathLike | BinaryIO, num_workers: int = 1) -> None:
    """Write the words of a text with their frequencies, the most frequent first, then by first occurrence.

    infile: a path (``.gz`` too), an open file, or an iterable of lines. outfile: a path or a file open for bytes.
    """
    refuse_overwriting([outfile], [infile])
    with writing_to(outfile) as stream:
        stream.write(count_words(infile, num_workers=num_workers).format_vocabulary())


def learn_joint_bpe_and_vocab(
    infiles: Sequence[TextSource],
    codes: PathLike,
    vocabularies: Sequence[PathLike],
    num_symbols: int = 10000,
    min_frequency: int = 2,
    separator: str = "@@",
    total_symbols: bool = False,
    verbose: bool = False,
    num_workers: int = 1,
    algorithm: str = "scaffold",
) -> LearnedCodes:
    """Learn codes on all texts together, and write for each the vocabulary that it has when segmented with them.

    Words are counted once; the vocabularies come from the counts. Raises UsageError where there is not one
    vocabulary per text or one file stands in two places, otherwise as ``learn_bpe``.
    """
    if len(infiles) != len(vocabularies):
        raise UsageError(
            f"there must be one vocabulary file per input, not {len(vocabularies)} for {len(infiles)} inputs"
        )
    if num_symbols < 1:
        raise UsageError(f"the number of symbols must be positive, not {num_symbols}")
    refuse_overwriting([codes, *vocabularies], infiles)
    with contextlib.ExitStack() as stack:
        codes_stream = stack.enter_context(writing_to(codes))
        streams = [stack.enter_context(writing_to(vocabulary)) for vocabulary in vocabularies]
        counts = [count_words(infile, num_workers=num_workers) for infile in infiles]
        joint = _core.WordCounts()
        for count in counts:
            joint.add(count)
        learned = learn_from_counts(
            joint, num_symbols, min_frequency, algorithm, total_symbols, _say_merge if verbose else None
        )
        codes_stream.write(learned.text)
        bpe = BPE(learned.text, separator=separator)
        for count, stream in zip(counts, streams, strict=True):
            stream.write(bpe.count_subwords(count).format_vocabulary())
    return learned
