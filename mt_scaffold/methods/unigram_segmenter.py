"""Words → subwords with a Unigram model: SentencePiece's best segmentation, or a random one.

Subwords are SentencePiece's pieces: the first of a word begins with U+2581, in place of the space before it.
"""

from __future__ import annotations

import array
import functools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from mt_scaffold._core import WordCounts
from mt_scaffold.corpus.files import (
    PathLike,
    check_plain,
    open_input,
    open_output,
    read_file,
    refuse_overwriting,
    shown,
    warn_of_mark,
)
from mt_scaffold.corpus.text import WORD_START, not_utf8, words_of
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.methods.unigram_lattice import Lattice, LatticeMaker, Pieces, join_unknown, sample
from mt_scaffold.options import WORKERS_HELP, worker_count
from mt_scaffold.options_from_signature import Option
from mt_scaffold.segment.draw import NO_DRAW, RESAMPLINGS, Draw

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

MODEL_SUFFIX = ".model"
_KEPT_WORDS = 1 << 17
# A lattice takes half a KiB per character; in text without spaces, words are whole sentences, which seldom recur.
_LONGEST_KEPT = 32
_BLOCK = 1 << 20
_UNKNOWN_PIECE = 0
# A U+2581 within a word would begin another word; U+2585 is in no piece.
_OWN = {ord(WORD_START): "\u2585"}
# A text that normalising models change: a ligature, and spaces at both ends.
_PROBE = " \ufb01  "


class UnigramSegmenter:
    """Segments words with a Unigram model of SentencePiece, as ``BPE`` does with codes.

    Words are independent: no piece spans two of them. A U+2581 within a word is an unknown character.

    Raises MTScaffoldError for a file that is not a Unigram model of SentencePiece, and for one that would change words
    (normalise them, strip spaces, fall back to bytes) or does not begin them with U+2581.
    """

    def __init__(self, model: PathLike) -> None:
        from sentencepiece import SentencePieceProcessor

        content = read_file(model)
        if content.startswith(b"#version"):
            raise MTScaffoldError(
                f"{shown(model)}: codes, not a Unigram model; apply-bpe takes them, under a name that does not end in "
                f"{MODEL_SUFFIX}"
            )
        try:
            self._processor = SentencePieceProcessor()
            self._processor.LoadFromSerializedProto(content)
            kinds = [*map(self._processor.is_unknown, range(len(self._processor)))]
        except (RuntimeError, OSError):
            raise MTScaffoldError(f"{shown(model)}: not a model of SentencePiece; learn it again") from None
        if not kinds or not kinds[_UNKNOWN_PIECE] or any(kinds[1:]) or not _keeps_words(self._processor):
            raise MTScaffoldError(f"{shown(model)}: not a model of mt-scaffold learn-unigram; learn it with that")
        pieces = range(1, len(kinds))
        self.pieces = Pieces(
            {self._processor.id_to_piece(each): (each, self._processor.get_score(each)) for each in pieces},
            _UNKNOWN_PIECE,
        )

    def surface_forms(self) -> list[str]:
        """Return every piece except that of unknown characters."""
        return [*self.pieces.scores]

    def piece_ids(self, words: Sequence[str]) -> list[list[int]]:
        """Return the piece ids of the best segmentation of each word, with 0 for a run of unknown characters."""
        given = [word.translate(_OWN) for word in words]
        return self._processor.encode(given, out_type=int, num_threads=1) if given else []

    def segment(self, sentence: str) -> str:
        """Return the pieces of a sentence, separated by spaces; unknown characters are kept, but U+2581 is U+2585."""
        return self.segment_lines([sentence])[0]

    def segment_lines(self, lines: Sequence[str], threads: int = 1) -> list[str]:
        """Return the result of ``segment`` for each line."""
        texts = [words_of(line) for line in lines]
        words = [*set().union(*texts)]
        pieces = dict(zip(words, map(" ".join, self._pieces_of(words, threads)), strict=True))
        return [" ".join(map(pieces.__getitem__, text)) for text in texts]

    def _pieces_of(self, words: Sequence[str], threads: int = 1) -> list[list[str]]:
        given = [word.translate(_OWN) for word in words]
        return self._processor.encode(given, out_type=str, num_threads=threads) if given else []

    def count_subwords(self, counts: WordCounts) -> Counter[str]:
        """Count the pieces of counted words; unknown characters are counted as they are."""
        total: Counter[str] = Counter()
        items = counts.items()
        for pieces, (_, number) in zip(self._pieces_of([word for word, _ in items]), items, strict=True):
            for piece in pieces:
                total[piece] += number
        return total

    def reachable_by(self, draw: Draw, counts: WordCounts) -> set[str]:
        """Return every piece that sampling can produce from counted words: all their substrings that are pieces.

        The rest of a word can always be single characters, known or not. Raises UsageError for a draw of codes.
        """
        _check_draw(draw)
        scores, longest = self.pieces.scores, self.pieces.longest
        found: set[str] = set()
        for word, _ in counts.items():  # noqa: PERF102  # no dict
            text = join_unknown(WORD_START + word.translate(_OWN), scores)
            for begin in range(len(text)):
                found.update(
                    piece
                    for end in range(begin + 1, min(len(text), begin + longest) + 1)
                    if (piece := text[begin:end]) in scores
                )
        return found

    def can_have_id(self, subword: str) -> bool:
        """Return whether a subword is a piece; an unknown character is not."""
        return subword in self.pieces.scores

    def encoder(self, dictionary: Mapping[str, int], unknown: int) -> UnigramEncoder:
        """Return an encoder into ids; dictionary: piece → id; unknown: the id of every other piece."""
        return UnigramEncoder(self, dictionary, unknown)


def _keeps_words(processor: SentencePieceProcessor) -> bool:
    """Return whether this is a Unigram model with only ordinary pieces that segments words as they are."""
    try:
        processor.nbest_encode_as_ids(_PROBE, 1)
    except RuntimeError:  # BPE, words or characters
        return False
    kinds = (processor.is_control, processor.is_unused, processor.is_byte)
    if any(kind(piece) for piece in range(len(processor)) for kind in kinds):
        return False
    return "".join(processor.encode(_PROBE, out_type=str)) == (WORD_START + _PROBE).replace(" ", WORD_START)


class UnigramEncoder:
    """Segments sentences straight into integer ids, and caches the results of words."""

    def __init__(self, segmenter: UnigramSegmenter, dictionary: Mapping[str, int], unknown: int) -> None:
        scores = {
            piece: (dictionary.get(piece, unknown), score) for piece, (_, score) in segmenter.pieces.scores.items()
        }
        self._segmenter = segmenter
        self._pieces = Pieces(scores, unknown)
        self._ids = [unknown] * (len(scores) + 1)
        for piece, (number, _) in segmenter.pieces.scores.items():
            self._ids[number] = scores[piece][0]
        self._best: dict[str, list[int]] = {}
        self._lattices: dict[float, Callable[[str], Lattice]] = {}

    def ids_of(
        self, sentences: Sequence[str] | Sequence[bytes], draw: Draw = NO_DRAW, indices: Sequence[int] = ()
    ) -> tuple[memoryview, memoryview]:
        """Segment sentences (text, or UTF-8) into ids.

        Returns the ids of all sentences (int32), and their offsets (int64), one more than there are sentences.

        draw: its amount is the exponent of the probabilities in sampling; 0 takes the best segmentation.

        Raises UsageError for a draw of codes, and unless there is one index per sentence or none at all.
        """
        _check_draw(draw)
        if len(indices) and len(indices) != len(sentences):
            raise UsageError(f"{len(sentences)} sentences have {len(indices)} indices")
        texts = [words_of(each.decode("utf-8") if isinstance(each, bytes) else each) for each in sentences]
        ids, offsets = array.array("i"), array.array("q", [0])
        if draw:
            number, lattice_of = draw.core_seed, self._lattice_of(draw.amount)
            for index, words in zip(indices if len(indices) else range(len(texts)), texts, strict=True):
                uniform = generator(number, draw.epoch, int(index))
                for word in words:
                    ids.extend(sample(lattice_of(word), uniform))
                offsets.append(len(ids))
        else:
            best = self._best_of(set().union(*texts))
            for words in texts:
                for word in words:
                    ids.extend(best[word])
                offsets.append(len(ids))
        return memoryview(ids).toreadonly(), memoryview(offsets).toreadonly()

    def _best_of(self, words: Iterable[str]) -> Mapping[str, list[int]]:
        """Return the ids of the best segmentation of these words, and perhaps of others."""
        known = self._best
        if len(known) > _KEPT_WORDS:
            # Not cleared: other threads may still read the old one.
            known = self._best = {}
        new = [word for word in words if word not in known]
        for word, pieces in zip(new, self._segmenter.piece_ids(new), strict=True):
            known[word] = [self._ids[piece] for piece in pieces]
        return known

    def _lattice_of(self, alpha: float) -> Callable[[str], Lattice]:
        if alpha not in self._lattices:
            maker = LatticeMaker(self._pieces, alpha)

            def make(word: str) -> Lattice:
                return maker.make(WORD_START + word.translate(_OWN))

            # A result depends on the word alone, so threads may share the cache.
            kept = functools.lru_cache(_KEPT_WORDS)(make)
            self._lattices[alpha] = lambda word: kept(word) if len(word) <= _LONGEST_KEPT else make(word)
        return self._lattices[alpha]


def _check_draw(draw: Draw) -> None:
    if draw and draw.kind != "sampling_alpha":
        raise UsageError(f"a Unigram model has no {RESAMPLINGS[draw.kind]}; give an alpha near 0")


def generator(seed: int, epoch: int, index: int) -> Callable[[], float]:
    """Return a function that draws from [0, 1) for one sentence: the same numbers on every platform and Python."""
    return random.Random((seed << 128) | (epoch << 64) | index).random


def apply_unigram(
    model: Annotated[PathLike, Option("MODEL", "-c", name="codes")],
    infile: Annotated[PathLike, Option("PATH", "-i", name="input")],
    outfile: Annotated[PathLike, Option("PATH", "-o", name="output")],
    num_workers: Annotated[int | None, Option(help=WORKERS_HELP)] = None,
) -> None:
    """Segment a text of words with a Unigram model, line by line: the command ``apply-unigram``.

    model: model of learn-unigram
    infile: text of words
    outfile: text of pieces, separated by spaces

    Raises MTScaffoldError if the input cannot be read or is not UTF-8, or the model is not a Unigram model; UsageError
    for an output that is an input.
    """
    check_plain(infile)
    refuse_overwriting([outfile], [infile, model])
    segmenter, threads = UnigramSegmenter(model), worker_count(num_workers)
    number = offset = 0
    with open_input(infile) as stream, open_output(outfile) as output:
        while lines := stream.readlines(_BLOCK):
            if not number:
                warn_of_mark(lines[0], shown(infile))
            texts = []
            for line in lines:
                number += 1
                try:
                    texts.append(line.decode("utf-8"))
                except UnicodeDecodeError as error:
                    raise not_utf8(shown(infile), number, offset + error.start, line[error.start]) from None
                offset += len(line)
            output.write("".join(f"{text}\n" for text in segmenter.segment_lines(texts, threads)).encode())
