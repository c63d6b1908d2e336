"""Words and a segmentation → fairseq's dictionaries: files with a subword, a space and its count on each line."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.files import PathLike, make_folder, shown, write_text
from mt_scaffold.corpus.vocabulary_file import OVERWRITE, SPECIAL_SYMBOLS
from mt_scaffold.corpus.vocabulary_file import read_dictionary as read_dictionary
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.segmentation import Segmentation
from mt_scaffold.experiment.configuration.data import Limits
from mt_scaffold.options_from_signature import HIDDEN, Option, OutputFolder, Prefix, Workers
from mt_scaffold.segment.draw import NO_DRAW, Draw
from mt_scaffold.segment.segmenter import Segmenter

if TYPE_CHECKING:
    from mt_scaffold._core import WordCounts

END_ID, UNKNOWN_ID = SPECIAL_SYMBOLS.index("</s>"), SPECIAL_SYMBOLS.index("<unk>")
NO_LIMITS = Limits()
NO_RESAMPLING = (NO_DRAW, NO_DRAW)
SourceLanguage = Annotated[str, Option("LANGUAGE", "-s", name="source-lang", help="for example en")]
TargetLanguage = Annotated[str, Option("LANGUAGE", "-t", name="target-lang", help="for example de")]


def make_dictionaries(
    train: Prefix,
    output: OutputFolder,
    source: SourceLanguage,
    target: TargetLanguage,
    segmentation: Segmentation,
    limits: Limits = NO_LIMITS,
    resamplings: Annotated[tuple[Draw, Draw], HIDDEN] = NO_RESAMPLING,
    num_workers: Workers = 1,
    with_dropout: bool = False,
) -> None:
    """Write ``dict.SOURCE.txt`` and ``dict.TARGET.txt`` into the folder ``output``.

    train: words of the training set: PREFIX.LANGUAGE
    with_dropout: include the subwords that dropout or sampling can make of the training words
    output: folder for dict.LANGUAGE.txt

    Without resampling the dictionaries are those of fairseq-preprocess on the segmented text, byte for byte: the most
    frequent subword first, equally frequent ones by code point, then padding. ``resamplings`` are the resampling of
    each side's training text, with ``with_dropout`` that of the method; the subwords that only this can make of its
    words come before the padding (see ``added_by``), in that side's dictionary only, if there are two. Characters
    that a Unigram model does not know are in neither.

    Raises MTScaffoldError if a text is missing or not UTF-8, or the codes are malformed; UsageError for limits out of
    range, and if both languages are the same.
    """
    limits.check()
    if source == target:
        raise UsageError(f"source and target are the same language: {source}; give two languages")
    segmenters = segmentation.segmenters()
    counts = [count_words(paths=[f"{train}.{language}"], num_workers=num_workers) for language in (source, target)]
    sides = list(map(_Side, segmenters, counts, segmentation.resamplings if with_dropout else resamplings))
    if limits.joined_dictionary:
        written = _format(sides, limits.nwordssrc, limits.thresholdsrc, limits.padding_factor)
        texts = {source: written, target: written}
    else:
        of_source = _format(sides[:1], limits.nwordssrc, limits.thresholdsrc, limits.padding_factor)
        of_target = _format(sides[1:], limits.nwordstgt, limits.thresholdtgt, limits.padding_factor)
        texts = {source: of_source, target: of_target}
    make_folder(Path(output))
    for language, text in texts.items():
        write_text(Path(output) / f"dict.{language}.txt", text)


class _Side(NamedTuple):
    """The training words of one side, and how they are segmented."""

    segmenter: Segmenter
    counts: WordCounts
    resampling: Draw


def _format(sides: Sequence[_Side], nwords: int, threshold: int, padding_factor: int) -> str:
    """Return the text of the dictionary of one side, or of two."""
    frequencies: Counter[str] = Counter()
    for side in sides:
        subwords = side.segmenter.count_subwords(side.counts).items()
        frequencies.update({form: count for form, count in subwords if side.segmenter.can_have_id(form)})
    kept = limited(frequencies, nwords, threshold)
    added: set[str] = set()
    for side in sides:
        added |= added_by(side.resampling, side.segmenter, side.counts, kept)
    in_order = sorted(added, key=lambda form: (-frequencies[form], form))
    return format_dictionary((kept | {form: frequencies[form] for form in in_order}).items(), padding_factor)


def limited(frequencies: Mapping[str, int], nwords: int = -1, threshold: int = 0) -> dict[str, int]:
    """Return the subwords that fairseq's ``Dictionary.finalize`` keeps, in its order; nwords, threshold: see Limits."""
    in_order = sorted(frequencies.items(), key=lambda entry: (-entry[1], entry[0]))
    most = len(in_order) if nwords <= 0 else nwords - len(SPECIAL_SYMBOLS)
    return {form: count for form, count in in_order[:most] if count >= threshold}


def added_by(draw: Draw, segmenter: Segmenter, counts: WordCounts, kept: Container[str]) -> set[str]:
    """Return the subwords that resampling can make of counted words and that must be added to those in ``kept``.

    A character in no merge is as frequent with resampling as without: if the limits of the dictionary exclude it, it
    stays unknown. Other subwords that they exclude may be frequent with resampling, and are added again.
    """
    if not draw:
        return set()
    made = {form for form in segmenter.reachable_by(draw, counts) if form not in kept}
    return made.intersection(segmenter.surface_forms()) if made else made


def format_dictionary(entries: Iterable[tuple[str, int]], padding_factor: int = 8) -> str:
    """Return the text of a dictionary, padded as by fairseq-preprocess to a multiple of ``padding_factor`` symbols."""
    counts = dict(entries)
    missing = -(len(counts) + len(SPECIAL_SYMBOLS)) % padding_factor
    fillers = (name for number in itertools.count() if (name := f"madeupword{number:04d}") not in counts)
    return dictionary_text([*counts.items(), *((name, 0) for name in itertools.islice(fillers, missing))])


def dictionary_text(entries: Iterable[tuple[str, int]]) -> str:
    """Return the text of a dictionary with these names and counts, in the order of their ids.

    A duplicate name, also of one of fairseq's own symbols, gets fairseq's mark for overwriting.
    """
    seen, lines = set(SPECIAL_SYMBOLS), []
    for name, count in entries:
        lines.append(f"{name} {count}" + f" {OVERWRITE}" * (name in seen) + "\n")
        seen.add(name)
    return "".join(lines)


def read_symbols(path: PathLike) -> list[str]:
    """Return all symbols of a dictionary, fairseq's own first, in the order of their ids."""
    return [*SPECIAL_SYMBOLS, *(form for form, _ in read_dictionary(path))]


def read_ids(path: PathLike) -> dict[str, int]:
    """Return the id of each subword of a dictionary.

    Raises MTScaffoldError as ``read_dictionary`` does, and for a duplicate subword.
    """
    entries = read_dictionary(path)
    ids = {form: number for number, (form, _) in enumerate(entries, start=len(SPECIAL_SYMBOLS))}
    if len(ids) < len(entries):
        raise MTScaffoldError(f"{shown(path)}: duplicate subword; give a fairseq dictionary")
    return ids
