"""Words → subwords: segmenting text with learned codes."""

from __future__ import annotations

import io
import operator
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import BinaryIO

from mt_scaffold import _core
from mt_scaffold.codes import CodesSource, codes_text
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.files import PathLike, open_input, refuse_overwriting, shown, writing_to
from mt_scaffold.native import TextSource, core_input, progress_line, worker_count

LINE_MARGIN = "\r\n "


def check_dropout(dropout: float) -> float:
    """The dropout probability itself; UsageError where it is not in [0, 1]."""
    if not 0 <= dropout <= 1:
        raise UsageError(f"the dropout probability must be between 0 and 1, not {dropout}")
    return dropout


class BPE:
    """Segments text with learned codes (Algorithm 2 of the Scaffold-BPE paper), as subword-nmt's class of that name.

    codes: a codes file (path, open file or its bytes), with or without scaffold tokens.
    merges: use only the first so many merges; -1 for all.
    separator: what every subword but a word's last ends in.
    vocab: the subwords, with separator, that may be used; others are split further (see ``read_vocabulary``).
    glossaries: words or regular expressions that are isolated and never split.

    Raises MTScaffoldError where the codes are malformed, UsageError for a glossary that is no regular expression.

    >>> bpe = BPE(b"#version: 0.2\\na n\\nb an\\n")
    >>> bpe.segment("banana")
    'ban@@ an@@ a'
    """

    def __init__(
        self,
        codes: CodesSource | BinaryIO,
        merges: int = -1,
        separator: str = "@@",
        vocab: Iterable[str] | None = None,
        glossaries: Sequence[str] | None = None,
    ) -> None:
        if isinstance(codes, str | bytes | os.PathLike):
            text, name = codes_text(codes)
        else:
            data = codes.read()
            text = data.encode("utf-8") if isinstance(data, str) else data
            name = str(getattr(codes, "name", "codes"))
        if not -1 <= merges < 2**63:
            raise UsageError(f"the number of merges must be 0 or more, or -1 for all, not {merges}")
        try:
            separator.encode("utf-8")
        except UnicodeEncodeError as error:
            raise UsageError("the separator is not UTF-8") from error
        self.separator = separator
        self._segmenter = _core.Segmenter(text, separator, name, merges, None if vocab is None else set(vocab))
        self._isolate = GlossaryIsolator(glossaries) if glossaries else None
        self._applier = _core.Applier(self._segmenter, self._isolate)

    def segment(self, sentence: str, dropout: float = 0, seed: int | None = None, index: int = 0) -> str:
        """Segment a sentence whose words are separated by spaces.

        With ``dropout`` the result is a function of (seed, index, sentence); without a seed it is random.
        """
        return self._segment(sentence.strip(LINE_MARGIN), dropout, seed, index)

    def segment_tokens(self, tokens: Iterable[str], dropout: float = 0, seed: int | None = None) -> list[str]:
        """Segment a sequence of words; gives the subwords, all but a word's last with the separator."""
        words = [word for word in tokens if word]
        for word in words:
            if " " in word:
                raise UsageError(f"a token must not hold a space: {word!r}")
        segmented = self._segment(" ".join(words), dropout, seed, 0, keep_margins=False)
        return segmented.split(" ") if segmented else []

    def process_line(self, line: str, dropout: float = 0, seed: int | None = None, index: int = 0) -> str:
        """Segment a line; its CRs, LFs and spaces at either end are kept as they stand."""
        without_leading = line.lstrip(LINE_MARGIN)
        sentence = without_leading.rstrip(LINE_MARGIN)
        leading = line[: len(line) - len(without_leading)]
        return leading + self._segment(sentence, dropout, seed, index) + without_leading[len(sentence) :]

    def _segment(self, sentence: str, dropout: float, seed: int | None, index: int, keep_margins: bool = True) -> str:
        if not dropout:
            return self._applier.segment_line(sentence, keep_margins)
        number = seed_of(random_seed() if seed is None else seed)
        return self._applier.segment_line(sentence, keep_margins, check_dropout(dropout), number, 0, index)

    def process_file(
        self,
        infile: TextSource,
        outfile: PathLike | BinaryIO,
        dropout: float = 0,
        num_workers: int = 1,
        seed: int | None = None,
    ) -> None:
        """Segment a text line by line, in order, with ``num_workers`` threads (-1: all cores) and bounded memory.

        infile: a path (``.gz`` too), an open file, or an iterable of lines. outfile: a path or a file open for bytes.
        The result does not depend on the number of workers; with dropout it is fixed by ``seed``.
        Raises MTScaffoldError where the input cannot be read or is not UTF-8; the output then does not appear.
        UsageError where the output would take the place of the input.
        """
        check_dropout(dropout)
        refuse_overwriting([outfile], [infile])
        workers = worker_count(num_workers)
        number = seed_of(random_seed() if seed is None else seed)
        with core_input(infile) as source, progress_line("segmenting") as show:
            with writing_to(outfile) as stream:
                name = shown(outfile) if isinstance(outfile, str | os.PathLike) else None
                self._applier.apply(source, _core_output(stream, name), workers, dropout, number, 0, show)

    def surface_forms(self) -> list[str]:
        """Every subword that the codes can give, as it stands in segmented text: base symbols in both positions, then
        the normal merged tokens. A character that no merge holds comes out as it is and is not among them."""
        return self._segmenter.surface_forms()

    def count_subwords(self, counts: _core.WordCounts) -> _core.WordCounts:
        """The counts of the subwords of counted words (``mt_scaffold.count_words``), without reading the text again."""
        return self._applier.count_subwords(counts)

    def encoder(self, dictionary: Mapping[str, int], unknown: int) -> Encoder:
        """An encoder into the ids of ``dictionary`` (subword as in segmented text → id)."""
        return Encoder(_core.Applier(self._segmenter, self._isolate, dict(dictionary), unknown))


class Encoder:
    """Segments sentences straight into integer ids, without a Python object per subword."""

    def __init__(self, applier: _core.Applier) -> None:
        self._applier = applier

    def encode(
        self,
        sentences: Sequence[str] | Sequence[bytes],
        dropout: float = 0,
        seed: int = 0,
        epoch: int = 0,
        indices: Sequence[int] = (),
    ) -> tuple[memoryview, memoryview]:
        """Segment sentences (text, or UTF-8) into ids in one call.

        With dropout, the segmentation of a sentence is a function of (seed, epoch, its index): ``indices``, or its
        position in ``sentences``. Returns two read-only buffers (``numpy.asarray`` takes them without a copy): the ids
        of all sentences (int32), and where each begins (int64, one more than there are sentences).
        """
        if len(indices) and len(indices) != len(sentences):
            raise UsageError(f"{len(sentences)} sentences have {len(indices)} indices")
        ids, offsets = self._applier.ids(sentences, indices, check_dropout(dropout), seed_of(seed), epoch)
        return memoryview(ids).cast("i"), memoryview(offsets).cast("q")


def random_seed() -> int:
    """A seed that nobody has chosen."""
    return int.from_bytes(os.urandom(8), "little")


def seed_of(seed: int) -> int:
    """A seed as the core takes it: 64 bits, a negative one as its complement; UsageError where it needs more."""
    number = operator.index(seed)
    if not -(2**63) <= number < 2**64:
        raise UsageError(f"the seed must fit into 64 bits: {seed} does not")
    return number & (2**64 - 1)


def _core_output(stream: BinaryIO, name: str | None = None) -> _core.Output:
    """A file that the core writes to itself where it is an ordinary one; what compresses has a descriptor too."""
    name = name or str(getattr(stream, "name", "output"))
    raw = stream.raw if isinstance(stream, io.BufferedWriter) else stream
    if not isinstance(raw, io.FileIO):
        return name, stream
    stream.flush()
    return name, stream.fileno()


class GlossaryIsolator:
    """Isolates glossary entries (words or regular expressions) inside words, as subword-nmt does."""

    def __init__(self, glossaries: Sequence[str]) -> None:
        self._patterns: list[tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]] = []
        for glossary in glossaries:
            try:
                inside = re.compile(glossary)
                self._patterns.append((re.compile("^" + glossary + "$"), inside, re.compile(f"({glossary})")))
            except re.error as error:
                raise UsageError(f"the glossary '{glossary}' is not a regular expression: {error}") from error
            if inside.groups:
                raise UsageError(
                    f"the glossary '{glossary}' has a capturing group, which would repeat text; write (?:...) instead"
                )
        self._entry = re.compile("^({})$".format("|".join(glossaries)))

    def __call__(self, word: str) -> list[tuple[str, bool]]:
        """The parts of a word in order, each with whether it is a glossary entry."""
        parts = [word]
        for whole, inside, splitting in self._patterns:
            isolated = []
            for part in parts:
                if whole.match(part) or not inside.search(part):
                    isolated.append(part)
                else:
                    isolated += [piece for piece in splitting.split(part) if piece]
            parts = isolated
        return [(part, bool(self._entry.match(part))) for part in parts]


def read_vocabulary(path: PathLike, threshold: int | None = None) -> set[str]:
    """Read a vocabulary file (``get-vocab``): the subwords whose frequency reaches ``threshold``.

    Raises MTScaffoldError with the line number where a line is not a subword, one space and a count.
    """
    vocabulary = set()
    with open_input(path) as stream:
        for number, line in enumerate(stream, 1):
            word, space, count = line.rstrip(b"\r\n ").partition(b" ")
            try:
                if not space or not word:
                    raise ValueError
                frequency = int(count)
                subword = word.decode("utf-8")
            except ValueError:
                raise MTScaffoldError(
                    f"{os.fspath(path)}: line {number}: expected a subword, one space and its count"
                ) from None
            if threshold is None or frequency >= threshold:
                vocabulary.add(subword)
    return vocabulary


def apply_bpe(
    codes: CodesSource,
    infile: TextSource,
    outfile: PathLike | BinaryIO,
    merges: int = -1,
    separator: str = "@@",
    vocabulary: PathLike | None = None,
    vocabulary_threshold: int | None = None,
    dropout: float = 0,
    glossaries: Sequence[str] | None = None,
    seed: int | None = None,
    num_workers: int = 1,
) -> None:
    """Segment a text with a codes file: what the command ``apply-bpe`` does. See ``BPE`` and ``BPE.process_file``."""
    check_dropout(dropout)
    refuse_overwriting([outfile], [infile, codes, vocabulary])
    vocab = None
    if vocabulary is not None:
        vocab = read_vocabulary(vocabulary, vocabulary_threshold)
        if not vocab:
            print(
                f"warning: {os.fspath(vocabulary)}: no subword reaches the threshold; nothing is filtered",
                file=sys.stderr,
            )
    elif vocabulary_threshold is not None:
        print("warning: a vocabulary threshold has no effect without a vocabulary", file=sys.stderr)
    bpe = BPE(codes, merges, separator, vocab, glossaries)
    bpe.process_file(infile, outfile, dropout, num_workers, seed)
