"""Words → subwords: segmenting text with learned codes."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, AnyStr

from mt_scaffold import _core
from mt_scaffold.codes import Codes, CodesSource
from mt_scaffold.corpus.files import Output, PathLike, refuse_overwriting, shown, writing_to
from mt_scaffold.corpus.header import CodesHeader
from mt_scaffold.corpus.inputs import (
    Changed,
    Lines,
    TextFile,
    core_input,
    core_output,
    source_name,
    text_source,
    whole_lines,
)
from mt_scaffold.corpus.text import (
    LINE_MARGIN,
    SEPARATOR,
    as_bytes,
    check_text,
    join_subwords,
    like,
    notation_to_bytes,
)
from mt_scaffold.corpus.vocabulary_file import read_vocabulary
from mt_scaffold.errors import UsageError
from mt_scaffold.options import check_index, check_merges, refuse_text, worker_count
from mt_scaffold.progress import progress_line
from mt_scaffold.segment.draw import NO_DRAW, Draw, warn_of_epoch
from mt_scaffold.segment.ids import TokenIds, check_special_tokens
from mt_scaffold.segment.native import Native

if TYPE_CHECKING:
    from mt_scaffold.segment.numbering import Numbering, Spaces


class BPE(TokenIds):
    """Segment text with learned codes (Algorithm 2 of the Scaffold-BPE paper); the API is that of subword-nmt's BPE.

    Text is str or bytes, and results are of the same type. With codes of bytes, a str may hold bytes that are not UTF-8
    as lone surrogates (``errors="surrogateescape"``), and subwords that are only a part of a character are returned
    that way. Codes with a pre-tokeniser give subwords in GPT-2's notation of bytes
    (``mt_scaffold.corpus.text.bytes_to_notation``), separated by spaces, and lose nothing: spaces are in the words.

    codes: a codes file with or without scaffold tokens, as a path (``.gz`` too), an open file, its bytes or ``Codes``.
    merges: use only the first ``merges`` merges; -1 for all.
    separator: the ending of every subword but a word's last.
    vocab: the subwords, with separator, that may be used; others are split further (see ``read_vocabulary``).
    glossaries: words or regular expressions that are isolated and never split. With codes of bytes they match bytes.

    The methods' ``dropout`` segments training text at random: it skips each merge with this probability (BPE-dropout,
    docs/methods.md).

    special_tokens: texts with one id each, after those of the codes (see ``encode``). pad_vocab_to: round the
        number of ids up to a multiple of this. numbering: ids of imported codes; None for those next to the file.

    Raises MTScaffoldError if the codes are malformed; UsageError for a number of merges below -1, a separator that
    is not UTF-8, a glossary that is not a regular expression, and for a separator, vocab or glossaries with codes that
    have a pre-tokeniser.

    >>> bpe = BPE(b"#version: 0.2\\na n\\nb an\\n")
    >>> bpe.segment("banana")
    'ban@@ an@@ a'
    """

    def __init__(
        self,
        codes: CodesSource,
        merges: int = -1,
        separator: str = SEPARATOR,
        vocab: Iterable[str] | None = None,
        glossaries: Sequence[str] | None = None,
        *,
        special_tokens: Iterable[str] = (),
        pad_vocab_to: int = 1,
        numbering: Numbering | None = None,
    ) -> None:
        refuse_text(vocab=vocab, glossaries=glossaries, special_tokens=special_tokens)
        read = Codes.of(codes)
        try:
            separator.encode("utf-8")
        except UnicodeEncodeError as error:
            raise UsageError("the separator is not UTF-8") from error
        self.separator = separator
        self.header = read.header
        check_separator(self.header, separator)
        if not self.header.end_of_word and (vocab is not None or glossaries):
            what = "a vocabulary" if vocab is not None else "glossaries"
            raise UsageError(f"{read.name}: codes with a pre-tokeniser cannot be applied with {what}")
        multiple = operator.index(pad_vocab_to) if hasattr(pad_vocab_to, "__index__") else 0
        if not 1 <= multiple < 2**31:
            raise UsageError(
                f"the number of ids is padded to a multiple of 1 or more, an integer below 2^31, not {pad_vocab_to}"
            )
        self._arguments: dict[str, Any] = {
            "codes": Codes(read.text, read.name, read.manifest),
            "merges": check_merges(merges),
            "separator": separator,
            "vocab": None if vocab is None else [*vocab],
            "glossaries": None if glossaries is None else [*glossaries],
            "special_tokens": check_special_tokens(special_tokens),
            "pad_vocab_to": multiple,
            "numbering": numbering,
        }
        self._native = Native(**{**self._arguments, "codes": read})

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_native"}

    def __reduce__(self) -> tuple[object, ...]:
        # With the state, a copy keeps the attributes of a subclass.
        return _rebuild, (type(self), self._arguments), self.__getstate__()

    def __repr__(self) -> str:
        codes: Codes = self._arguments["codes"]
        merges: int = self._arguments["merges"]
        number = len(codes.merges) if merges < 0 else min(merges, len(codes.merges))
        return f"<BPE of {codes.name}: {number:,} merge{'s' * (number != 1)}>"

    def segment(self, sentence: AnyStr, dropout: float = 0, seed: int | None = None, index: int = 0) -> AnyStr:
        """Return the subwords of a sentence, both separated by spaces; CRs, LFs and spaces at either end are dropped.

        Codes with a pre-tokeniser drop nothing: the sentence is a document, line ends included.

        dropout: the probability in [0, 1] that a merge is skipped at a step (BPE-dropout).
        seed, index: with dropout, the result depends only on (seed, index, sentence); it is random without a seed.

        Raises UsageError for a probability out of range or a seed of more than 64 bits; MTScaffoldError for a lone
        surrogate.
        """
        margin = like(sentence, LINE_MARGIN)
        stripped = sentence.strip(margin) if self._native.spaced else sentence
        return self._segment(stripped, Draw("dropout", dropout, seed) if dropout else None, index)

    def join(self, line: AnyStr) -> AnyStr:
        """Join the subwords of a line into words: the inverse of ``segment``, with dropout too.

        ``join(segment(x)) == x`` for words with single spaces between them, none of which ends in the separator; with a
        pre-tokeniser, for any x.

        Raises MTScaffoldError for a character outside GPT-2's notation if the codes have a pre-tokeniser.

        >>> BPE(b"#version: 0.2\\na n\\nb an\\n").join("ban@@ an@@ a")
        'banana'
        """
        return join_line(line, self.header, self.separator, self._native.spaces)

    def segment_tokens(self, tokens: Iterable[AnyStr], dropout: float = 0, seed: int | None = None) -> list[AnyStr]:
        """Return the subwords of a sequence of words, all but a word's last with the separator.

        Empty words are skipped. Codes with a pre-tokeniser take each word as it is: it may hold spaces.

        Raises UsageError for a string in place of words and, without a pre-tokeniser, for a word that holds a space;
        otherwise as ``segment`` does.
        """
        refuse_text(tokens=tokens)
        given = list(tokens)
        for word in given:
            check_text(word)
        words = [word for word in given if word]
        if not words:
            return []
        draw = _draw_of(dropout, seed)
        space = like(words[0], " ")
        if self.header.end_of_word:
            for word in words:
                if space in word:
                    raise UsageError(f"a token must not hold a space: {word!r}")
            joined = space.join(words)
            return self._segment(joined, draw, keep_margins=False).split(space)
        as_given = [as_bytes(word) for word in words]
        return like(words[0], self._native.applier.segment_words(as_given, draw)).split(space)

    def process_line(self, line: AnyStr, dropout: float = 0, seed: int | None = None, index: int = 0) -> AnyStr:
        """Segment a line as ``segment`` does, but keep its CRs, LFs and spaces at either end unchanged.

        With a pre-tokeniser only an LF at the end is set aside; the others are part of the words.
        """
        draw = _draw_of(dropout, seed)
        if not self.header.end_of_word:
            text = line.removesuffix(like(line, "\n"))
            return self._segment(text, draw, index) + line[len(text) :]
        margin = like(line, LINE_MARGIN)
        without_leading = line.lstrip(margin)
        sentence = without_leading.rstrip(margin)
        leading = line[: len(line) - len(without_leading)]
        segmented = self._segment(sentence, draw, index)
        return leading + segmented + without_leading[len(sentence) :]

    def _segment(self, sentence: AnyStr, draw: Draw | None, index: int = 0, keep_margins: bool = True) -> AnyStr:
        native = self._native
        if native.spaces is not None:
            sentence = native.spaces.prepared(sentence)
        if draw is None and isinstance(sentence, str):
            try:
                return native.segment_plain(sentence, keep_margins)
            except TypeError:  # a lone surrogate
                pass
        given = as_bytes(sentence) if self.header.bytes else sentence
        try:
            return like(sentence, native.applier.segment_line(given, keep_margins, draw, check_index(index)))
        except TypeError:
            if isinstance(sentence, str):
                as_bytes(sentence, "strict")
            raise

    def process_file(
        self,
        infile: TextFile | None = None,
        outfile: Output | None = None,
        dropout: float = 0,
        num_workers: int | None = None,
        seed: int | None = None,
        epoch: int = 0,
        *,
        lines: Lines | None = None,
        endings: _core.WordEndings | None = None,
    ) -> None:
        """Segment a text line by line, in order and in bounded memory.

        infile: a path (``.gz`` too) or an open file. lines: an iterable of strings. Exactly one of the two is given.
        outfile: a path, or a file open for bytes or text. num_workers: threads, as in ``count_words``.
        dropout, seed: as in ``segment``, with a line's number, from 0, as its index; the output does not depend on the
            number of workers.
        epoch: with dropout and a seed, each epoch is segmented differently, as by ``Encoder.encode``.
        endings: counts the words between spaces that end in its separator.

        Raises MTScaffoldError if the input cannot be read or is not UTF-8 (an output path is then not created);
        UsageError for values out of range, none or several inputs, and an output that is the input.
        """
        draw = Draw("dropout", dropout, seed, epoch)
        source = text_source(infile, lines)
        refuse_overwriting([outfile], [source])
        self._process(source, outfile, draw, num_workers, endings)

    def _process(
        self,
        source: TextFile,
        outfile: Output | None,
        draw: Draw,
        num_workers: int | None,
        endings: _core.WordEndings | None,
    ) -> None:
        threads = worker_count(num_workers)
        with (
            core_input(
                source if self._native.spaces is None else Changed(self._prepared(source), source_name(source))
            ) as opened,
            progress_line("segmenting") as show,
            writing_to(outfile, durable=False) as stream,
        ):
            name = shown(outfile) if isinstance(outfile, str | os.PathLike) else None
            output = core_output(stream, name)
            self._native.applier.apply(opened, output, threads, draw, show, endings)

    def _prepared(self, source: TextFile) -> Iterator[bytes]:
        spaces = self._native.spaces
        assert spaces is not None
        for block in whole_lines(source):
            lines = block.split(b"\n")
            prepared = map(spaces.prepared, lines if lines[-1] else lines[:-1])
            yield b"\n".join(prepared) + b"\n" * (not lines[-1])

    def surface_forms(self) -> list[str]:
        """Return every subword the codes can give, as segmented text shows it.

        Base symbols in both positions come first, then the normal merged tokens; with glossaries, those that end a word
        can also end a part of one. Characters that no merge holds and isolated glossary entries are not listed.
        """
        return self._native.segmenter.surface_forms(self._native.isolate is not None)

    def count_subwords(self, counts: _core.WordCounts) -> _core.WordCounts:
        """Count the subwords of counted words (``mt_scaffold.count_words``) without reading the text again."""
        return self._native.applier.count_subwords(counts)

    def reachable(self, counts: _core.WordCounts, dropout: float = 0) -> list[str]:
        """Return every subword that dropout can make of counted words, in no particular order.

        These are all single characters (or bytes) of the words, inside a word or at its end as they occur there. With a
        dropout below 1 there are also the tokens of the codes whose characters the words hold: any merge can be the one
        that survives a step, so all merges of a token can happen while its neighbours stay unmerged. A scaffold token,
        or one that is not in ``vocab``, counts as the subwords it is split into. PickyBPE's merges and splits keep
        their order, so a token that is split must be merged again afterwards.

        Raises UsageError as ``segment`` does.
        """
        return self.reachable_by(Draw("dropout", dropout), counts)

    def reachable_by(self, draw: Draw, counts: _core.WordCounts) -> list[str]:
        """Return what ``reachable`` does, for a draw."""
        return self._native.applier.reachable(counts, draw)

    def can_have_id(self, subword: str) -> bool:
        """Return whether a subword can be in a dictionary: always."""
        return True

    def encoder(self, dictionary: Mapping[str, int], unknown: int) -> Encoder:
        """Return an encoder into ids.

        dictionary: subword, as segmented text shows it → id. unknown: the id of every other subword.
        """
        as_key = as_bytes if self.header.end_of_word else notation_to_bytes
        keys: dict[str | bytes, int] = {as_key(subword): number for subword, number in dictionary.items()}
        native = self._native
        applier = _core.Applier(native.segmenter, native.isolate, keys, unknown, pretokeniser=native.pretokeniser)
        return Encoder(applier, native.spaces)


class Encoder:
    """Segment sentences straight into integer ids, without a Python object per subword; ``BPE.encoder`` makes one.

    >>> encoder = BPE(Codes(b"#version: 0.2\\nl o\\n")).encoder({"lo@@": 4, "w": 5}, 3)
    >>> ids, begins = encoder.encode(["low", "owl"])
    >>> [*ids], [*begins]
    ([4, 5, 3, 3, 3], [0, 2, 5])
    """

    def __init__(self, applier: _core.Applier, spaces: Spaces | None = None) -> None:
        self._applier = applier
        self._spaces = spaces

    def encode(
        self,
        sentences: Sequence[str] | Sequence[bytes],
        dropout: float = 0,
        seed: int | None = None,
        epoch: int = 0,
        indices: Sequence[int] = (),
    ) -> tuple[memoryview, memoryview]:
        """Segment sentences (text, or UTF-8) into ids in one call.

        An LF at the end of a sentence is dropped; with a pre-tokeniser it is part of the sentence.

        dropout: the probability in [0, 1] that a merge is skipped at a step (BPE-dropout).
        seed, epoch, indices: with dropout, the segmentation of a sentence depends only on (seed, epoch, its index),
            the index being its position in ``sentences`` unless ``indices`` are given; without a seed it is random.

        Returns two read-only buffers, which ``numpy.asarray`` takes without a copy: the ids of all sentences (int32),
        and the offset of each sentence (int64, one more than there are sentences).

        Raises UsageError for values out of range, and for ``indices`` that are not one per sentence.
        """
        return self.ids_of(sentences, Draw("dropout", dropout, seed, epoch), indices)

    def ids_of(
        self, sentences: Sequence[str] | Sequence[bytes], draw: Draw = NO_DRAW, indices: Sequence[int] = ()
    ) -> tuple[memoryview, memoryview]:
        """Return what ``encode`` does, for a draw."""
        if len(indices) and len(indices) != len(sentences):
            raise UsageError(f"{len(sentences)} sentences have {len(indices)} indices")
        if self._spaces is not None:
            sentences = [self._spaces.prepared(as_bytes(each)) for each in sentences]
        ids, offsets = self._applier.ids(sentences, indices, draw)
        return memoryview(ids).cast("i"), memoryview(offsets).cast("q")


def _draw_of(dropout: float, seed: int | None) -> Draw | None:
    """Return the draw of a call for one sentence; None, without checking the seed, if nothing is drawn."""
    return Draw("dropout", dropout, seed) if dropout else None


def _rebuild(kind: type[BPE], arguments: dict[str, Any]) -> BPE:
    """Rebuild a BPE from its constructor arguments, as pickle and copy do."""
    bpe = kind.__new__(kind)
    BPE.__init__(bpe, **arguments)
    return bpe


def check_separator(header: CodesHeader, separator: str) -> None:
    """Raise UsageError for a separator other than the default with a pre-tokeniser, whose subwords need none."""
    if not header.end_of_word and separator != SEPARATOR:
        raise UsageError("codes with a pre-tokeniser have no separator: their subwords hold the spaces; omit it")


def join_line(line: AnyStr, header: CodesHeader, separator: str = SEPARATOR, spaces: Spaces | None = None) -> AnyStr:
    """Join the subwords of a line, segmented with codes of this header, as ``BPE.join`` does.

    spaces: how imported codes prepared the text.
    """
    check_text(line)
    text = line if isinstance(line, str) else line.decode("utf-8", "surrogateescape")
    if header.end_of_word:
        joined = join_subwords(text, separator)
        # Parts of one character are separate bytes until they are joined.
        return like(line, as_bytes(joined).decode("utf-8", "surrogateescape") if header.bytes else joined)
    parts = (notation_to_bytes(part.replace(" ", "")) for part in text.split("\n"))
    if spaces is not None:
        parts = (spaces.taken_off(part) for part in parts)
    return like(line, b"\n".join(parts).decode("utf-8", "surrogateescape"))


def apply_bpe(
    codes: CodesSource,
    infile: TextFile | None = None,
    outfile: Output | None = None,
    merges: int = -1,
    separator: str = SEPARATOR,
    vocabulary: PathLike | None = None,
    vocabulary_threshold: int | None = None,
    dropout: float = 0,
    glossaries: Sequence[str] | None = None,
    seed: int | None = None,
    num_workers: int | None = None,
    epoch: int = 0,
    *,
    lines: Lines | None = None,
    endings: _core.WordEndings | None = None,
) -> None:
    """Segment a text with a codes file, as the command ``apply-bpe`` does.

    vocabulary, vocabulary_threshold: use only the subwords of this file whose count reaches the threshold (see
        ``read_vocabulary``). The other arguments, and the errors, are those of ``BPE`` and ``BPE.process_file``.
    """
    source = text_source(infile, lines)
    refuse_overwriting([outfile], [source, codes, vocabulary])
    read = Codes.of(codes)
    vocab = None
    if vocabulary is not None:
        vocab = read_vocabulary(vocabulary, vocabulary_threshold, read.header.bytes)
        if not vocab:
            print(
                f"warning: {os.fspath(vocabulary)}: no subword reaches the threshold; nothing is filtered",
                file=sys.stderr,
            )
    elif vocabulary_threshold is not None:
        print("warning: a vocabulary threshold has no effect without a vocabulary", file=sys.stderr)
    draw = Draw("dropout", dropout, seed, epoch)
    warn_of_epoch(draw)
    bpe = BPE(read, merges, separator, vocab, glossaries)
    bpe._process(source, outfile, draw, num_workers, endings)
