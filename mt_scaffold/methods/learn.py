"""Text → a model of any method, and learn_bpe with subword-nmt's parameters."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Sequence
from typing import TypeVar

from mt_scaffold import _core
from mt_scaffold.corpus.count import count_files, count_text, counted_text, load_counts, sources_of
from mt_scaffold.corpus.documents import AnyDocuments
from mt_scaffold.corpus.files import Output, PathLike, refuse_overwriting, writing_to
from mt_scaffold.corpus.header import CHARACTERS, CodesHeader
from mt_scaffold.corpus.inputs import Lines, TextFile, text_sources
from mt_scaffold.corpus.text import SEPARATOR
from mt_scaffold.errors import UsageError
from mt_scaffold.methods import make_method, methods
from mt_scaffold.methods.base import Learned, Method
from mt_scaffold.methods.bpe import LearnedCodes, MethodWithCodes, Scaffold
from mt_scaffold.options import check_choice

Model = TypeVar("Model", bound=Learned)


def learn(
    infile: TextFile | None = None,
    method: Method[Model] = Scaffold(),  # type: ignore[assignment]  # noqa: B008  # frozen; without one it is LearnedCodes
    outfile: Output | None = None,
    *,
    paths: Iterable[TextFile] | None = None,
    lines: Lines | None = None,
    documents: AnyDocuments | None = None,
    counts: Sequence[PathLike] | None = None,
    is_dict: bool = False,
    pretokenise: str = "spaces",
    split_digits: bool = False,
    byte_level: bool = False,
    num_workers: int | None = None,
    max_memory: int | str | None = None,
    prune: int = 1,
    verbose: bool = False,
    trace: Output | None = None,
    endings: _core.WordEndings | None = None,
) -> Model:
    """Learn a model from text, and write it.

    infile: a path (``.gz`` too) or an open file. paths: several of them, read as one text.
    lines: an iterable of strings. documents: ``Documents``, or an iterable of strings or bytes, each pre-tokenised as a
    whole. counts: count files (``write_counts``, globs too), which record how their words were counted. Exactly one is
    given.
    method: one of ``mt_scaffold.methods`` with its settings, such as ``Picky(symbols=32000, threshold=0.7)``.
    outfile: a path, or a file open for bytes or text; None to only return the model.
    is_dict: each line of the input is a word and its count.
    pretokenise: how a line is cut into words: at "spaces", with the published pattern of "gpt2", "cl100k" or "o200k",
    or with a regular expression of the package ``regex``, whose matches and the gaps between them are words. All but
    "spaces" keep the spaces in the words and imply ``byte_level``; then no symbol carries ``</w>``, and the 256 bytes
    are the base symbols (Radford et al., 2019; the Scaffold-BPE paper, "Experimental Setup").
    split_digits: with a pattern, every number character becomes a separate word.
    byte_level: base symbols are bytes and the text may be any bytes; with "spaces", the codes are those of
    ``subword-nmt learn-bpe --byte``.
    num_workers: threads that count words, as in ``count_words``; the result does not depend on it.
    max_memory: as in ``count_words``; learning is refused if it would need more, by an estimate.
    prune: drop words with a lower count before learning, and say on stderr what that can change.
    verbose: print each merge to stderr.
    trace: a path, or a file open for bytes or text, which gets a line for each step of Algorithm 1 (each iteration, as
    the paper's figure shows one): tab-separated, below a line of column names. A step either merges ``left`` and
    ``right``, whose pair has ``frequency``, and lists in ``marked`` those of the two that are now rarer than the
    ``head`` of the queue and become scaffold tokens; or it makes ``returned``, a scaffold token, normal again.
    With PickyBPE, ``marked`` are those of the two that are removed. docs/statistics.md has every column.
    endings: a counter of the words between spaces that end in its separator.

    Returns what was learned: ``LearnedCodes``, or ``LearnedPieces`` with ``Unigram``; ``text`` is the file of either.

    Raises MTScaffoldError for input that has no words, cannot be read or is not UTF-8; UsageError for none or several
    inputs, for an output that is an input, for a model and a trace in the same file, and for conflicting options.

    >>> from mt_scaffold.methods import PlainBPE
    >>> learn(lines=["low lower", "low"], method=PlainBPE(symbols=2)).codes.merges
    [Merge(left='l', right='o', scaffold=False), Merge(left='lo', right='w</w>', scaffold=False)]
    """
    header = CodesHeader.of_options(pretokenise, split_digits, byte_level)
    method.check_header(header)
    if counts is not None and is_dict:
        raise UsageError("a count file is not a dictionary; give it as counts, without is_dict")
    text = counted_text(infile, paths, lines, documents, counts)
    count_paths = None if counts is None else count_files(counts)
    refuse_overwriting([outfile, trace], sources_of(text) if count_paths is None else count_paths)
    if trace is not None and trace is outfile:
        raise UsageError("codes and trace would be mixed in one output; give each its own file")
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(writing_to(io.BytesIO() if outfile is None else outfile))
        steps = None if trace is None else stack.enter_context(writing_to(trace))
        if count_paths is None:
            words = count_text(
                text,
                header,
                is_dict=is_dict,
                num_workers=num_workers,
                max_memory=max_memory,
                prune=prune,
                endings=endings,
            )
        else:
            expected = None if header == CHARACTERS else header
            words, header = load_counts(count_paths, expected, max_memory, prune)
            method.check_header(header)
        learned = method.learn(words, header, verbose, steps)
        stream.write(learned.text)
    return learned


def learn_bpe(
    infile: TextFile | None = None,
    outfile: Output | None = None,
    num_symbols: int = 10000,
    min_frequency: int = 2,
    verbose: bool = False,
    is_dict: bool = False,
    total_symbols: bool = False,
    num_workers: int | None = None,
    algorithm: str = "scaffold",
    *,
    paths: Iterable[TextFile] | None = None,
    lines: Lines | None = None,
    pretokenise: str = "spaces",
    split_digits: bool = False,
    byte_level: bool = False,
) -> LearnedCodes:
    """Learn codes as subword-nmt's function of this name does; ``learn`` has every method with all of its settings.

    num_symbols: merges for ``algorithm="bpe"``; normal merged tokens for ``"scaffold"``; merged tokens
    that are not removed for ``"picky"``. min_frequency: stop, with a warning, when the most frequent pair is rarer.
    total_symbols: subtract the number of base symbols from ``num_symbols``. The rest, and the errors, are those of
    ``learn``.

    >>> learn_bpe(lines=["low lower", "low"], num_symbols=2).codes.merges
    [Merge(left='l', right='o', scaffold=False), Merge(left='lo', right='w</w>', scaffold=False)]
    """
    check_choice("algorithm", algorithm, methods("learn-bpe"))
    learned: LearnedCodes = learn(
        infile,
        make_method(algorithm, symbols=num_symbols, min_frequency=min_frequency, total_symbols=total_symbols),
        outfile,
        paths=paths,
        lines=lines,
        is_dict=is_dict,
        pretokenise=pretokenise,
        split_digits=split_digits,
        byte_level=byte_level,
        num_workers=num_workers,
        verbose=verbose,
    )
    return learned


def learn_joint_bpe_and_vocab(
    paths: Sequence[TextFile],
    codes: PathLike,
    vocabularies: Sequence[PathLike],
    method: MethodWithCodes = Scaffold(),  # noqa: B008  # frozen
    separator: str = SEPARATOR,
    verbose: bool = False,
    num_workers: int | None = None,
    *,
    pretokenise: str = "spaces",
    split_digits: bool = False,
    byte_level: bool = False,
    endings: _core.WordEndings | None = None,
) -> LearnedCodes:
    """Learn codes from all texts together, and write the vocabulary of each text as segmented with them.

    paths: one path (``.gz`` too) or open file per text. codes: the codes file to write.
    vocabularies: the vocabulary files to write, one per text. The rest is as in ``learn``.

    Words are counted once; the vocabularies come from the counts. Raises UsageError unless there is one vocabulary
    per text, and if a file is named twice; otherwise as ``learn``.
    """
    from mt_scaffold.segment.apply import BPE, check_separator

    header = CodesHeader.of_options(pretokenise, split_digits, byte_level)
    check_separator(header, separator)
    sources = text_sources(paths=paths)
    if len(sources) != len(vocabularies):
        raise UsageError(
            f"there must be one vocabulary file per input, not {len(vocabularies)} for {len(sources)} inputs"
        )
    refuse_overwriting([codes, *vocabularies], sources)

    with contextlib.ExitStack() as stack:
        codes_stream = stack.enter_context(writing_to(codes))
        streams = [stack.enter_context(writing_to(vocabulary)) for vocabulary in vocabularies]
        words = [count_text([source], header, num_workers=num_workers, endings=endings) for source in sources]
        # Learning uses up the counts, and each text's are needed again below.
        together = _core.WordCounts()
        for each in words:
            together.add(each)
        learned = method.learn(together, header, verbose)
        codes_stream.write(learned.text)
        bpe = BPE(learned.codes, separator=separator)
        for each, stream in zip(words, streams, strict=True):
            stream.write(bpe.count_subwords(each).format_vocabulary())
    return learned
