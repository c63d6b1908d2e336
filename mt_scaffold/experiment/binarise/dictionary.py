"""Words and a segmentation → fairseq's dictionaries; their files hold a subword, a space and its count per line."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.files import PathLike, make_folder, shown, write_text
from mt_scaffold.corpus.vocabulary_file import OVERWRITE
from mt_scaffold.corpus.vocabulary_file import read_dictionary as read_dictionary
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.segmentation import Segmentation
from mt_scaffold.experiment.configuration.limits import SPECIAL_SYMBOLS, Limits
from mt_scaffold.segment.apply import BPE
from mt_scaffold.segment.segmenter import CountedSubwords, Segmenter

if TYPE_CHECKING:
    from mt_scaffold._core import WordCounts

END_ID, UNKNOWN_ID = SPECIAL_SYMBOLS.index("</s>"), SPECIAL_SYMBOLS.index("<unk>")


NO_LIMITS = Limits()


def make_dictionaries(
    train: PathLike,
    output: PathLike,
    source: str,
    target: str,
    segmentation: Segmentation,
    limits: Limits = NO_LIMITS,
    dropout: bool = False,
    num_workers: int = 1,
) -> None:
    """Write ``dict.SOURCE.txt`` and ``dict.TARGET.txt`` into the folder ``output``.

    ``train`` is the prefix of the training words: ``words/train`` stands for ``words/train.SOURCE`` and
    ``words/train.TARGET``. Without ``dropout`` the dictionaries are those of fairseq-preprocess on the segmented text,
    byte for byte: the most frequent subword first, equally frequent ones by code point, then padding. With it, the
    subwords that only BPE-dropout can produce come before the padding, and those of the codes that the limits have left
    out (see ``dropout_forms``), so that systems with and without dropout can share one dictionary. Characters that a
    Unigram model does not know are in neither. ``num_workers``: threads, -1 for all cores.

    Raises MTScaffoldError where a text is missing or not UTF-8, or the codes are malformed; UsageError for limits out
    of range, and where both languages are the same.
    """
    limits.check()
    if source == target:
        raise UsageError(f"source and target are the same language: {source}; give two languages")
    segmenters = segmentation.segmenters()
    counts = [count_words(paths=[f"{train}.{language}"], num_workers=num_workers) for language in (source, target)]
    sides = list(zip(segmenters, counts, strict=True))
    if limits.joined_dictionary:
        written = _format(sides, limits.nwordssrc, limits.thresholdsrc, limits.padding_factor, dropout)
        texts = {source: written, target: written}
    else:
        of_source = _format(sides[:1], limits.nwordssrc, limits.thresholdsrc, limits.padding_factor, dropout)
        of_target = _format(sides[1:], limits.nwordstgt, limits.thresholdtgt, limits.padding_factor, dropout)
        texts = {source: of_source, target: of_target}
    make_folder(Path(output))
    for language, text in texts.items():
        write_text(Path(output) / f"dict.{language}.txt", text)


def _format(
    sides: Sequence[tuple[Segmenter, WordCounts]], nwords: int, threshold: int, padding_factor: int, dropout: bool
) -> str:
    """Return the text of the dictionary of one side, or of two."""
    frequencies: Counter[str] = Counter()
    for bpe, counts in sides:
        frequencies.update(with_id(bpe, bpe.count_subwords(counts)))
    kept = limited(frequencies, nwords, threshold)
    if dropout:
        for bpe, counts in sides:
            kept |= {form: frequencies[form] for form in dropout_forms(bpe, counts, kept) if form not in kept}
    return format_dictionary(kept.items(), padding_factor)


def with_id(bpe: Segmenter, subwords: CountedSubwords) -> dict[str, int]:
    """Return the counts of the subwords that can have an id: with a Unigram model, unknown characters have none."""
    if isinstance(bpe, BPE):
        return dict(subwords.items())
    pieces = {*bpe.surface_forms()}
    return {form: count for form, count in subwords.items() if form in pieces}


def limited(frequencies: Mapping[str, int], nwords: int = -1, threshold: int = 0) -> dict[str, int]:
    """Return the subwords that fairseq's ``Dictionary.finalize`` keeps, in its order; nwords, threshold: see Limits."""
    in_order = sorted(frequencies.items(), key=lambda entry: (-entry[1], entry[0]))
    most = len(in_order) if nwords <= 0 else nwords - len(SPECIAL_SYMBOLS)
    return {form: count for form, count in in_order[:most] if count >= threshold}


def dropout_forms(bpe: Segmenter, counts: WordCounts, kept: Container[str]) -> Iterator[str]:
    """Yield every subword that dropout or sampling can produce from the counted words and that must have an id.

    These are the subwords that the codes can give (``BPE.surface_forms``), and the characters of the words, each inside
    a word and at its end. A character that the limits of the dictionary ``kept`` leave out in both positions stays
    unknown, as it is without dropout. A Unigram model has the characters that it can give among its pieces.
    """
    yield from bpe.surface_forms()
    if not isinstance(bpe, BPE):
        return
    frequencies = dict(bpe.count_subwords(counts).items())
    for each in sorted(set(itertools.chain.from_iterable(word for word, _ in counts.items()))):
        forms = (each + bpe.separator, each)
        if any(form in kept for form in forms) or not any(form in frequencies for form in forms):
            yield from forms


def format_dictionary(entries: Iterable[tuple[str, int]], padding_factor: int = 8) -> str:
    """Return the text of a dictionary, padded as by fairseq-preprocess to a multiple of ``padding_factor`` symbols."""
    counts = dict(entries)
    lines = [f"{form} {count}" + f" {OVERWRITE}" * (form in SPECIAL_SYMBOLS) for form, count in counts.items()]
    missing = -(len(lines) + len(SPECIAL_SYMBOLS)) % padding_factor
    fillers = (name for number in itertools.count() if (name := f"madeupword{number:04d}") not in counts)
    return "".join(f"{line}\n" for line in [*lines, *(f"{name} 0" for name in itertools.islice(fillers, missing))])


def read_ids(path: PathLike) -> dict[str, int]:
    """Return the id of each subword of a dictionary.

    Raises MTScaffoldError as ``read_dictionary`` does, and for a subword that is there twice.
    """
    entries = read_dictionary(path)
    ids = {form: number for number, (form, _) in enumerate(entries, start=len(SPECIAL_SYMBOLS))}
    if len(ids) < len(entries):
        raise MTScaffoldError(f"{shown(path)}: the same subword twice; give a fairseq dictionary")
    return ids
