"""Words → a Unigram model (Kudo 2018), which SentencePiece learns from the same counted words as codes."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from mt_scaffold._core import WordCounts
from mt_scaffold.codes import Codes, CodesSource
from mt_scaffold.corpus.files import PathLike, Writable, shown
from mt_scaffold.corpus.header import CHARACTERS, CodesHeader
from mt_scaffold.corpus.text import SEPARATOR, WORD_START
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.methods.base import Method, TooManySymbols, symbols_setting, total_symbols_setting
from mt_scaffold.methods.unigram_segmenter import MODEL_SUFFIX, UnigramSegmenter
from mt_scaffold.segment.frequencies import Vocabulary

# Reserved by SentencePiece, so in no piece: tab in older versions, U+001F in newer ones. It strips CRs from line ends.
_UNKNOWN = "\u2585"
RESERVED = (WORD_START, _UNKNOWN, "\t", "\x1f", "\0", "\r", "<unk>")
# <unk>
_META_PIECES = 1
# A token of BPE may be as long as a word, but the seed vocabulary grows with this length.
_LONGEST_PIECE = 64
_LONGEST_LINE = 1 << 30
_WORDS_PER_LINE = 20


class LearnedPieces(NamedTuple):
    """The outcome of learning: the model, as SentencePiece stores it, with the requested number of pieces."""

    text: bytes
    exhausted: bool = False


def _too_many(symbols: int, most: int) -> TooManySymbols:
    fewer = f"give at most {most}" if most else "there are too few words; give more text"
    return TooManySymbols(f"unigram: {symbols} symbols are more than SentencePiece finds in these words; {fewer}", most)


@dataclass(frozen=True)
class Unigram(Method[LearnedPieces]):
    """A Unigram model (Kudo 2018): ``symbols`` pieces of more than one character, and the single characters.

    symbols: U+2581, which every word begins with, counts as a character of a piece. The model also has every single
    character of the text, U+2581 and ``<unk>``. With ``total_symbols``, ``symbols`` includes the single characters.
    """

    name: ClassVar[str] = "unigram"
    title: ClassVar[str] = "Unigram"
    suffix: ClassVar[str] = MODEL_SUFFIX
    stem: ClassVar[str] = "unigram"
    word_start: ClassVar[str | None] = WORD_START
    has_codes: ClassVar[bool] = False
    resampling: ClassVar[str] = "sampling_alpha"

    symbols: int = symbols_setting("number of pieces besides the single characters")
    total_symbols: bool = total_symbols_setting("the N pieces include the single characters")

    @classmethod
    def check_installed(cls) -> None:
        """Raise MTScaffoldError if SentencePiece is not installed."""
        from importlib.util import find_spec

        if find_spec("sentencepiece") is None:
            raise MTScaffoldError(
                "unigram needs the Python package sentencepiece, which is not installed: in the source folder, pip "
                "install '.[unigram]', or make venv for everything"
            )

    def learn(
        self,
        words: WordCounts,
        header: CodesHeader = CHARACTERS,
        verbose: bool = False,
        trace: Writable | None = None,
    ) -> LearnedPieces:
        """Learn pieces from counted words.

        SentencePiece learns with one thread: the order of its sums depends on the number of threads, and the model on
        that order. It needs more memory than the whole text. Words with anything that SentencePiece reserves
        (RESERVED) are left out, and their number is printed to stderr.

        Source: Kudo 2018, section 3.2. Raises TooManySymbols if the words do not yield as many pieces; UsageError
        for ``verbose`` and ``trace``.
        """
        if verbose or trace is not None:
            raise UsageError("unigram merges nothing, so that there are no merges to show; omit verbose and trace")
        self.check_header(header)
        counts = dict(words.items())
        reserved = {word for word in counts if any(each in word for each in RESERVED)}
        if reserved:
            print(
                f"warning: {len(reserved)} words contain characters that SentencePiece reserves (U+2581, U+2585, "
                "U+001F, tab, CR, NUL) or <unk>; they are not learned from",
                file=sys.stderr,
            )
        characters = {WORD_START}.union(*counts.keys() - reserved)
        return LearnedPieces(_learned(_lines(counts, reserved), len(characters), self.symbols, self.total_symbols))

    @classmethod
    def segmenter(
        cls,
        model: PathLike,
        separator: str | None = None,
        vocabulary: Sequence[str] | set[str] | None = None,
        glossaries: Sequence[str] | None = None,
    ) -> UnigramSegmenter:
        """Return a segmenter of words with a model. Raises UsageError for any of the options: it supports none."""
        options = {
            "a vocabulary": vocabulary is not None,
            "glossaries": bool(glossaries),
            "a separator": separator not in (None, SEPARATOR),
        }
        if wrong := [name for name, given in options.items() if given]:
            raise UsageError(f"{shown(model)}: a Unigram model cannot be applied with {wrong[0]}; omit it")
        return UnigramSegmenter(model)

    @classmethod
    def use(cls, model: CodesSource, counts: WordCounts) -> Vocabulary:
        """Return how often counted words use each piece of a stored model.

        The vocabulary consists of its pieces without ``<unk>``, and the characters of the text that are not pieces.

        Raises MTScaffoldError if the file is not such a model, or no words were counted.
        """
        if len(counts) == 0:
            raise MTScaffoldError("there are no words in the input, so there is nothing to measure")
        assert isinstance(model, str | os.PathLike)
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
            has_merges=False,
        )


def _lines(counts: Mapping[str, int], without: Container[str]) -> Iterator[str]:
    """Yield each word as often as it occurs, on separate lines.

    SentencePiece seeds its pieces with the substrings of lines that are followed by different characters. A word always
    followed by a space, as in ordinary text, would not be a seed; here, the end of a line follows it as well.
    """
    for word, count in counts.items():
        if word not in without:
            for start in range(0, count, _WORDS_PER_LINE):
                yield " ".join([word] * min(_WORDS_PER_LINE, count - start))


def _learned(lines: Iterator[str], characters: int, symbols: int, total_symbols: bool) -> bytes:
    """Return the model, as SentencePiece stores it."""
    from sentencepiece import SentencePieceTrainer

    # The order decides the last digits of sums.
    ordered = sorted(lines)
    if not ordered:
        raise MTScaffoldError("there are no words in the input, so there is nothing to learn")
    others = _META_PIECES + (0 if total_symbols else characters)
    if total_symbols and symbols <= characters:
        raise MTScaffoldError(
            f"unigram: the words have {characters} characters, which are among the {symbols} symbols (total_symbols); "
            "raise symbols"
        )
    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            # Not words with their counts (input_format: tsv): SentencePiece ignores the counts when it seeds pieces.
            sentence_iterator=iter(ordered),
            model_writer=model,
            model_type="unigram",
            vocab_size=symbols + others,
            hard_vocab_limit=True,
            character_coverage=1.0,
            byte_fallback=False,
            normalization_rule_name="identity",
            add_dummy_prefix=True,
            remove_extra_whitespaces=False,
            # Any part of a word may become a piece, as it may become a token of BPE.
            split_by_unicode_script=False,
            split_by_number=False,
            max_sentencepiece_length=_LONGEST_PIECE,
            max_sentence_length=_LONGEST_LINE,
            num_threads=1,
            unk_id=0,
            bos_id=-1,
            eos_id=-1,
            pad_id=-1,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        if most := re.search(r"value <= (\d+)", str(error)):
            found, least = int(most[1]) - others, characters + 1 if total_symbols else 1
            raise _too_many(symbols, found if found >= least else 0) from None
        raise MTScaffoldError(f"unigram: SentencePiece cannot learn {symbols} symbols: {error}") from None
    return model.getvalue()
