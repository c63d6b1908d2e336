"""Codes → codes extended with merges from another text; all old merges and ids stay."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from typing import NamedTuple

from mt_scaffold import _core
from mt_scaffold.codes import Codes, CodesSource
from mt_scaffold.corpus.count import counted_text, sources_of
from mt_scaffold.corpus.documents import AnyDocuments
from mt_scaffold.corpus.files import Output, refuse_overwriting, writing_to
from mt_scaffold.corpus.inputs import Lines, TextFile
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.methods.bpe import PlainBPE, warn_of_limit
from mt_scaffold.methods.picky import Picky, check_threshold
from mt_scaffold.options import check_choice
from mt_scaffold.progress import progress_line
from mt_scaffold.segment.words import words_of_text

ALGORITHMS = ("bpe", "scaffold", "picky")


class ExtendedCodes(NamedTuple):
    """The outcome of extending: the codes, and whether learning stopped early because no pair was frequent enough."""

    codes: Codes
    exhausted: bool


def extend(
    codes: CodesSource,
    infile: TextFile | None = None,
    outfile: Output | None = None,
    num_symbols: int = 1000,
    algorithm: str = "bpe",
    min_frequency: int = 2,
    num_workers: int | None = None,
    *,
    paths: Iterable[TextFile] | None = None,
    lines: Lines | None = None,
    documents: AnyDocuments | None = None,
    threshold: float = Picky.threshold,
) -> ExtendedCodes:
    """Learn ``num_symbols`` more tokens from another text, and write the codes.

    Learning resumes after all merges of ``codes``, including those of scaffold tokens, are applied to the text. They
    stay first and in their order, with their marks: "scaffold" marks only new tokens, and counts those that are normal;
    "bpe" counts merges. Codes of PickyBPE need "picky", which takes no others: their splits are applied as well; it
    removes only new tokens, with the ``threshold`` of ``Picky``, and counts those that remain. A token that the given
    codes removed can be merged again, and then has its old rank.

    codes: a codes file, as ``BPE`` takes it. infile, paths, lines, documents: the text, as in
    ``learn_bpe``; exactly one. outfile: a path, or a file open for bytes or text; None to only return the codes.

    Raises MTScaffoldError for malformed codes and a text that cannot be read or has no words; UsageError for codes of
    another kind than the algorithm's, values out of range, none or several texts, and an output that is an input.

    >>> extend(b"#version: 0.2\\nl o\\n", lines=["low low slow"], num_symbols=1).codes.merges
    [Merge(left='l', right='o', scaffold=False), Merge(left='lo', right='w</w>', scaffold=False)]
    """
    check_choice("algorithm", algorithm, ALGORITHMS)
    PlainBPE(num_symbols, min_frequency)  # refuses values out of range
    read = Codes.of(codes)
    check_threshold(threshold)
    if read.header.picky and algorithm != "picky":
        raise UsageError(f"{read.name}: codes of PickyBPE, which removes tokens between merges; choose picky")
    if algorithm == "picky" and not read.header.picky:
        raise UsageError(f"{read.name}: codes of BPE, whose merges have no order in time; choose bpe or scaffold")
    text = counted_text(infile, paths, lines, documents, None)
    refuse_overwriting([outfile], [codes, *sources_of(text)])
    with writing_to(io.BytesIO() if outfile is None else outfile) as stream:
        words = words_of_text(read, text, None, num_workers)
        result = _extended(read, words, num_symbols, algorithm, min_frequency, threshold)
        stream.write(result.codes.text)
    return result


def _extended(
    codes: Codes, words: _core.WordCounts, more: int, algorithm: str, min_frequency: int, threshold: float
) -> ExtendedCodes:
    if len(words) == 0:
        raise MTScaffoldError("there are no words in the input to learn from")
    wanted = more + (len(codes.merges) if algorithm == "bpe" else 0)
    with progress_line("learning", "merges") as show:
        learned = _core.learn(
            words, algorithm, wanted, min_frequency, None, show, codes.header.for_core, threshold, codes.text
        )
    warn_of_limit(learned.limited)
    if learned.exhausted:
        print(f"no pair has frequency >= {min_frequency}. Stopping", file=sys.stderr)
    found = Codes(learned.codes, codes.name)
    if codes.header.picky:
        return ExtendedCodes(found, learned.exhausted)
    return ExtendedCodes(found.with_scaffold(codes.scaffold | found.scaffold), learned.exhausted)
