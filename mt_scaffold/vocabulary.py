"""Text → vocabulary: counting subwords, and learning joint codes with a vocabulary for each text."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from mt_scaffold import _core
from mt_scaffold.apply import BPE, check_separator
from mt_scaffold.corpus.count import Text, count_words, sources_of
from mt_scaffold.corpus.files import Output, PathLike, refuse_overwriting, writing_to
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.corpus.inputs import Lines, TextFile, text_sources
from mt_scaffold.corpus.text import SEPARATOR
from mt_scaffold.errors import UsageError
from mt_scaffold.methods.learn import LearnedCodes, learn_from_counts, learn_from_languages
from mt_scaffold.methods.parity import check_languages, count_languages, parity_settings
from mt_scaffold.options import check_learning, picky_threshold


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

    Raises MTScaffoldError where the input cannot be read or is not UTF-8; UsageError for none or several inputs, and
    for an output that is an input.
    """
    sources = text_sources(infile, paths, lines)
    refuse_overwriting([outfile], sources)
    with writing_to(outfile) as stream:
        stream.write(count_words(paths=sources, num_workers=num_workers, any_bytes=byte_level).format_vocabulary())


def learn_joint_bpe_and_vocab(
    paths: Sequence[TextFile],
    codes: PathLike,
    vocabularies: Sequence[PathLike],
    num_symbols: int = 10000,
    min_frequency: int = 2,
    separator: str = SEPARATOR,
    total_symbols: bool = False,
    verbose: bool = False,
    num_workers: int | None = None,
    algorithm: str = "scaffold",
    pretokenise: str = "spaces",
    split_digits: bool = False,
    byte_level: bool = False,
    threshold: float | None = None,
    dev: Sequence[TextFile] | None = None,
    global_merges: int = 0,
    window: int | None = None,
    alpha: float | None = None,
) -> LearnedCodes:
    """Learn codes on all texts together, and write the vocabulary that each text has when segmented with them.

    paths: one path (``.gz`` too) or open file per text. codes: the codes file to write.
    vocabularies: the vocabulary files to write, one per text. The rest is as in ``learn_bpe``.

    Words are counted once; the vocabularies come from the counts. Raises UsageError where there is not one vocabulary
    per text, or where one file is named twice; otherwise as ``learn_bpe``.
    """
    check_learning(num_symbols, min_frequency, algorithm)
    picky_threshold(algorithm, threshold)
    header = CodesHeader.of_options(pretokenise, split_digits, byte_level)
    parity = parity_settings(algorithm, dev, global_merges, window, alpha)
    check_separator(header, separator)
    sources = text_sources(paths=paths)
    if len(sources) != len(vocabularies):
        raise UsageError(
            f"there must be one vocabulary file per input, not {len(vocabularies)} for {len(sources)} inputs"
        )
    if parity is not None:
        check_languages(parity, len(sources))
    developments = (parity and parity.development) or []
    refuse_overwriting([codes, *vocabularies], [*sources, *developments])

    def count(text: Text, development: bool = False) -> _core.WordCounts:
        return count_words(
            paths=sources_of(text),
            num_workers=num_workers,
            pretokenise=pretokenise,
            split_digits=split_digits,
            any_bytes=header.bytes,
        )

    with contextlib.ExitStack() as stack:
        codes_stream = stack.enter_context(writing_to(codes))
        streams = [stack.enter_context(writing_to(vocabulary)) for vocabulary in vocabularies]
        amount = (num_symbols, min_frequency)
        if parity is None:
            counts = [count([source]) for source in sources]
            learned = learn_from_counts(
                *(_together(counts), *amount, algorithm, total_symbols, verbose), header=header, threshold=threshold
            )
        else:
            languages = count_languages(parity, [[source] for source in sources], count)
            counts = languages.training
            copies = languages._replace(training=[_together([each]) for each in counts])
            learned = learn_from_languages(copies, parity, *amount, total_symbols, verbose, header=header)
        codes_stream.write(learned.text)
        bpe = BPE(learned.codes, separator=separator)
        for each, stream in zip(counts, streams, strict=True):
            stream.write(bpe.count_subwords(each).format_vocabulary())
    return learned


def _together(counts: Iterable[_core.WordCounts]) -> _core.WordCounts:
    """The words of all, as counts of their own."""
    together = _core.WordCounts()
    for count in counts:
        together.add(count)
    return together
