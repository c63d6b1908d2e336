"""Text → vocabulary: counting the subwords, or words, of a text."""

from __future__ import annotations

from collections.abc import Iterable

from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.files import Output, refuse_overwriting, writing_to
from mt_scaffold.corpus.inputs import Lines, TextFile, text_sources


def get_vocab(
    infile: TextFile | None = None,
    outfile: Output | None = None,
    num_workers: int | None = None,
    *,
    paths: Iterable[TextFile] | None = None,
    lines: Lines | None = None,
    byte_level: bool = False,
) -> None:
    """Write the words of a text with their counts: the most frequent first, then by first occurrence.

    infile: a path (``.gz`` too) or an open file. paths: several of them, read as one text.
    lines: an iterable of strings. Exactly one of the three is given.
    outfile: a path, or a file open for bytes or text. num_workers: threads, as in ``count_words``.
    byte_level: the text need not be UTF-8, like text segmented with the codes of ``--byte``.

    Raises MTScaffoldError if the input cannot be read or is not UTF-8; UsageError for none or several inputs, and for
    an output that is an input.
    """
    sources = text_sources(infile, paths, lines)
    refuse_overwriting([outfile], sources)
    with writing_to(outfile) as stream:
        stream.write(count_words(paths=sources, num_workers=num_workers, any_bytes=byte_level).format_vocabulary())
