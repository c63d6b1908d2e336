"""The segmentation of source and target: codes or Unigram models, vocabulary filters and glossaries of both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike, open_input, open_output
from mt_scaffold.corpus.symbols import check_mark, read_symbol, symbol_name
from mt_scaffold.corpus.text import SEPARATOR
from mt_scaffold.corpus.vocabulary_file import read_vocabulary
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.runtime.results import read_result, write_result
from mt_scaffold.manifest import raw_digest
from mt_scaffold.methods import Method, method_of_file
from mt_scaffold.options import refuse_text
from mt_scaffold.options_from_signature import Option
from mt_scaffold.segment.draw import Draw
from mt_scaffold.segment.frequencies import INSIDE
from mt_scaffold.segment.segmenter import Segmenter, SentenceEncoder

if TYPE_CHECKING:
    from mt_scaffold._core import WordCounts

# The files of a segmentation that is stored in a data folder.
CODES = "bpe.codes"
STORED = "segmentation.json"


@dataclass(frozen=True)
class Segmentation:
    """The files and settings that segment both sides of a parallel text.

    codes: joint codes, bpe or scaffold; or two files, for source and target
    vocabularies: vocabulary files (get-vocab) of source and target
    vocabulary_threshold: split subwords with a frequency below N in --vocabulary
    glossaries: words or patterns never to split
    separator: the end of every subword except the last of a word

    A file ``*.model`` is a Unigram model of SentencePiece (``learn_unigram``), on both sides or neither; no other
    setting applies to it.
    """

    codes: Annotated[tuple[str, str], Option("FILE", "-c", nargs="+")]
    vocabularies: Annotated[tuple[str, str] | None, Option("FILE", name="vocabulary")] = None
    vocabulary_threshold: int | None = None
    glossaries: Annotated[Sequence[str], Option("STR")] = ()
    separator: Annotated[str, Option("STR")] = SEPARATOR

    def __post_init__(self) -> None:
        refuse_text(codes=self.codes, vocabularies=self.vocabularies, glossaries=self.glossaries)
        if len(self.codes) > 2:
            raise UsageError("--codes: give one file for both languages, or two, for source and target")
        object.__setattr__(self, "codes", (self.codes[0], self.codes[-1]))

    @property
    def joint(self) -> bool:
        """Whether both sides are segmented alike."""
        return self.codes[0] == self.codes[1] and self.vocabularies is None

    @property
    def kind(self) -> type[Method[Any]]:
        """The method of the files of both sides."""
        return method_of_file(self.codes[0])

    @property
    def word_start(self) -> str | None:
        """The prefix of a word's first subword, for methods that use it instead of the separator (``join_symbols``)."""
        return self.kind.word_start

    @property
    def resamplings(self) -> tuple[Draw, Draw]:
        """A draw of each side, for all the subwords that resampling can make."""
        draw = Draw(self.kind.resampling, 0.5)
        return draw, draw

    def segmenters(self) -> tuple[Segmenter, Segmenter]:
        """Return the segmenters of source and target, one object for both if the sides are segmented alike.

        Subwords have their names in dictionaries (``symbol_name``), from which word ends can be recovered.

        Raises MTScaffoldError if a file is malformed, or no subword of a vocabulary reaches the threshold; UsageError
        for a Unigram model with codes on the other side or with a setting for codes, for vocabularies without a
        threshold or the reverse, and for an unusable separator.
        """
        if (self.vocabularies is None) != (self.vocabulary_threshold is None):
            raise UsageError("give both --vocabulary and --vocabulary-threshold, or neither")
        if method_of_file(self.codes[1]) is not self.kind:
            raise UsageError("codes on one side and a Unigram model on the other; give two of the same kind")
        source = self._segmenter(0)
        return source, source if self.joint else self._segmenter(1)

    def _segmenter(self, side: int) -> Segmenter:
        vocabulary: set[str] | None = None
        if self.vocabularies is not None and not self.kind.has_codes:
            vocabulary = set()  # the method refuses any vocabulary
        elif self.vocabularies is not None:
            vocabulary = read_vocabulary(self.vocabularies[side], self.vocabulary_threshold)
            if not vocabulary:
                raise MTScaffoldError(
                    f"{self.vocabularies[side]}: no subword occurs {self.vocabulary_threshold} times; lower "
                    "vocabulary_threshold"
                )
        codes = self.codes[side]
        if self.kind.has_codes:
            check_mark(self.separator)
        if not self.kind.has_codes or not Codes.read(codes).header.end_of_word:
            return self.kind.segmenter(codes, self.separator, vocabulary, self.glossaries)
        if vocabulary is not None:
            # In a vocabulary file, as in segmented text, a form with the separator may also be the end of a word.
            inside = [form for form in vocabulary if read_symbol(form, self.separator)[1]]
            vocabulary |= {form.removesuffix(self.separator) + INSIDE for form in inside}
        return _NamingSegmenter(self.kind.segmenter(codes, INSIDE, vocabulary, self.glossaries), self.separator)

    def knowing(self, names: Iterable[str]) -> Segmenter:
        """Return the segmenter of the source that, if codes of words allow it, splits subwords without these names."""
        if not self.kind.has_codes or not Codes.read(self.codes[0]).header.end_of_word:
            return self._segmenter(0)
        known = {text + INSIDE * inside for text, inside in (read_symbol(name, self.separator) for name in names)}
        return _NamingSegmenter(self.kind.segmenter(self.codes[0], INSIDE, known, self.glossaries), self.separator)

    def store(self, folder: Path, languages: Sequence[str]) -> dict[str, str]:
        """Copy the files into a folder, for ``stored_segmentation``; return the SHA-256 digest of each copy.

        Joint codes are called ``bpe.codes``, a joint Unigram model ``unigram.model``; other files have their language
        in the name.
        """
        stem, suffix = self.kind.stem, self.kind.suffix
        joint_codes = self.codes[0] == self.codes[1]
        joint = (f"{stem}{suffix}",) * 2
        source, target = joint if joint_codes else (f"{stem}.{language}{suffix}" for language in languages)
        codes = (source, target)
        copies = dict(zip(codes, self.codes, strict=True))
        names = None
        if self.vocabularies is not None:
            names = (f"vocabulary.{languages[0]}", f"vocabulary.{languages[1]}")
            copies |= dict(zip(names, self.vocabularies, strict=True))
        for name, path in copies.items():
            with open_input(path) as stream, open_output(folder / name) as copy:
                copy.write(stream.read())
        write_result(folder / STORED, replace(self, codes=codes, vocabularies=names))
        return {name: raw_digest(folder / name) for name in (*copies, STORED)}


class _NamingSegmenter:
    """Segments with codes, and returns subwords by their names. segmenter: one with the separator INSIDE."""

    def __init__(self, segmenter: Segmenter, separator: str) -> None:
        self._segmenter = segmenter
        self._separator = separator

    def _name(self, form: str) -> str:
        return symbol_name(form.removesuffix(INSIDE), form.endswith(INSIDE), self._separator)

    def segment(self, sentence: str) -> str:
        """Return the subwords of a sentence."""
        return " ".join(map(self._name, self._segmenter.segment(sentence).split(" ")))

    def surface_forms(self) -> list[str]:
        """Return every possible subword, except characters that are not in the codes."""
        return [*map(self._name, self._segmenter.surface_forms())]

    def count_subwords(self, counts: WordCounts) -> Counter[str]:
        """Count the subwords of counted words."""
        return Counter({self._name(form): count for form, count in self._segmenter.count_subwords(counts).items()})

    def reachable_by(self, draw: Draw, counts: WordCounts) -> list[str]:
        """Return every subword that this draw can make of counted words."""
        return [*map(self._name, self._segmenter.reachable_by(draw, counts))]

    def can_have_id(self, subword: str) -> bool:
        """Return whether a subword can be in a dictionary: always."""
        return True

    def encoder(self, dictionary: Mapping[str, int], unknown: int) -> SentenceEncoder:
        """Return an encoder into ids; dictionary: name of a subword → id."""
        read = ((read_symbol(name, self._separator), number) for name, number in dictionary.items())
        return self._segmenter.encoder({text + INSIDE * inside: number for (text, inside), number in read}, unknown)


def joint_segmentation(codes: PathLike, separator: str = SEPARATOR) -> Segmentation:
    """Return the segmentation with one codes file for both sides and no other settings."""
    return Segmentation((str(codes), str(codes)), separator=separator)


def stored_segmentation(folder: Path) -> Segmentation:
    """Return the segmentation that ``Segmentation.store`` wrote into a folder, with the paths of its files there.

    Raises MTScaffoldError if there is none.
    """
    stored = read_result(Segmentation, folder / STORED)
    source, target = (str(folder / name) for name in stored.codes)
    vocabularies = None
    if stored.vocabularies is not None:
        vocabularies = (str(folder / stored.vocabularies[0]), str(folder / stored.vocabularies[1]))
    return replace(stored, codes=(source, target), vocabularies=vocabularies)


def segmentation_in(layout: TranslationLayout, name: str) -> Segmentation:
    """Return a segmentation of an experiment by its name (``SegmentationSetting.name``), with its paths there."""
    setting = layout.config.segmentations[name]
    source, target = (str(layout.codes(codes.name)) for codes in (setting.source, setting.target))
    vocabularies = None
    if setting.vocabulary_threshold is not None:
        first, second = (str(layout.vocabulary(name, language)) for language in layout.languages)
        vocabularies = (first, second)
    return Segmentation(
        (source, target),
        vocabularies,
        setting.vocabulary_threshold,
        list(setting.glossaries),
    )
