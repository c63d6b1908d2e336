"""subword-nmt's module ``apply_bpe``: segment text with codes of either kind."""

from __future__ import annotations

import argparse
import codecs
import inspect as inspect
import io
import itertools
import os as os
import random
import re
import sys as sys
import tempfile as tempfile
import warnings as warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from io import open as open
from multiprocessing import Pool as Pool
from multiprocessing import cpu_count as cpu_count
from typing import IO, Any, cast

from mt_scaffold.cached import cached_property
from mt_scaffold.codes import AnyMerge, Codes, Merge
from mt_scaffold.commands.arguments import add_segmenting
from mt_scaffold.corpus import vocabulary_file
from mt_scaffold.corpus.files import AsBytes, open_input, shown, stream_name, warn_of_mark, without_mark
from mt_scaffold.corpus.glossaries import around
from mt_scaffold.corpus.text import LINE_MARGIN, SEPARATOR, as_bytes, like, not_utf8, notation_to_bytes
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.options import check_merges, refuse_text, worker_count
from mt_scaffold.segment import apply
from mt_scaffold.segment.draw import check_dropout
from mt_scaffold.subword_nmt.segmenting import check_vocab_and_split as check_vocab_and_split
from mt_scaffold.subword_nmt.segmenting import encode as encode
from mt_scaffold.subword_nmt.segmenting import isolate_glossary as isolate_glossary
from mt_scaffold.subword_nmt.segmenting import recursive_split as recursive_split
from mt_scaffold.subword_nmt.streams import Text, add_file, add_num_workers, as_text, beneath, new_parser


class BPE:
    """Segment text with learned codes, as subword-nmt's class of this name does.

    codes: an open codes file, read from its beginning. vocab: the subwords, with separator, that may be used.
    is_bytes: the codes are of byte-level BPE (``get_byte_mode``); lines, words, subwords and ``vocab`` are bytes.
    The other arguments, and the errors, are those of ``mt_scaffold.BPE``.

    ``vocab``, ``separator`` and ``glossaries`` may be assigned, but not changed in place.

    Dropout draws from Python's ``random``, whose seed decides. With codes of original BPE the draws are subword-nmt's,
    one by one and as slowly; with other codes a single one seeds each call.
    """

    def __init__(
        self,
        codes: IO[Any],
        merges: int = -1,
        separator: str | bytes = SEPARATOR,
        vocab: Collection[Any] | None = None,
        glossaries: Sequence[Any] | None = None,
        is_bytes: bool = False,
    ) -> None:
        refuse_text(glossaries=glossaries)
        self.is_bytes = is_bytes
        self.separator: Any = as_bytes(separator) if is_bytes else as_text(separator)
        self.vocab = vocab
        self.glossaries: Sequence[Any] = [as_bytes(entry) if is_bytes else entry for entry in glossaries or []]
        self._merges = check_merges(merges)
        try:
            self.version, self._codes, found = _read_codes(codes, self._merges, is_bytes)
        except UnicodeDecodeError as error:
            raise vocabulary_file.not_decoded(codes, stream_name(codes, "codes"), error) from None
        picky = self._codes is not None and self._codes.header.picky
        self._is_original_bpe = not picky and not any(not merge.normal for merge in found)
        if not self._is_original_bpe and not self._isolates_natively:
            raise UsageError("a subclass with its own _isolate_glossaries takes codes of original BPE only")
        # A pair keeps its first rank. Of several that make a token, the one whose last mention comes first splits it.
        as_symbol: Callable[[str], Any] = notation_to_bytes if is_bytes else str
        pairs = [(as_symbol(merge.left), as_symbol(merge.right)) for merge in found]
        self.bpe_codes = {pair: rank for rank, pair in reversed(list(enumerate(pairs)))}
        self.bpe_codes_reverse = {left + right: (left, right) for left, right in self.bpe_codes}
        _ = self._native  # report errors now

    def __setattr__(self, name: str, value: object) -> None:
        if name in ("vocab", "glossaries"):
            refuse_text(**{name: value})
        super().__setattr__(name, value)
        if name in ("vocab", "separator", "glossaries"):
            self._forget()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_native"}

    def _forget(self) -> None:
        for derived in ("_native", "glossaries_regex", "cache"):
            self.__dict__.pop(derived, None)

    @cached_property
    def cache(self) -> dict[Any, Sequence[Any]]:
        """Words that ``encode`` has segmented; the native core has its own."""
        return {}

    @cached_property
    def glossaries_regex(self) -> re.Pattern[Any] | None:
        """The pattern of a whole glossary entry; None without glossaries."""
        if not self.glossaries:
            return None
        return re.compile(around(like(self.glossaries[0], "|").join(self.glossaries), "^(", ")$"))

    @cached_property
    def _native(self) -> apply.BPE | None:
        """The native segmenter; None for codes of format 0.1, which only ``encode`` takes."""
        if self._codes is None:
            return None
        separator = self.separator.decode("utf-8") if self.is_bytes else self.separator
        return apply.BPE(self._codes, self._merges, separator, self.vocab, self.glossaries)

    @property
    def _isolates_natively(self) -> bool:
        return type(self)._isolate_glossaries is BPE._isolate_glossaries

    @property
    def _native_now(self) -> apply.BPE | None:
        return self._native if encode is _OWN_ENCODE and self._isolates_natively else None

    def process_lines(self, filename: str, outfile: Any, dropout: float = 0, num_workers: int = 1) -> None:
        """Segment the file of this name, line by line, into a file open for text, or with ``is_bytes`` for bytes.

        num_workers: threads; only one with dropout, as each draw depends on those before it.
        """
        if not dropout and type(self) is BPE and self._native_now is not None:
            output = beneath(outfile) if self.is_bytes else AsBytes(outfile)
            self._native_now.process_file(filename, output, num_workers=num_workers)
            return
        worker_count(num_workers)  # report a wrong number here too
        offset = 0
        with open_input(filename) as lines:
            for number, line in enumerate(lines, 1):
                if number == 1:
                    warn_of_mark(line, shown(filename))
                if self.is_bytes:
                    beneath(outfile).write(self.process_line(line, dropout))
                    continue
                try:
                    text = line.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise not_utf8(shown(filename), number, offset + error.start, line[error.start]) from None
                outfile.write(self.process_line(text, dropout))
                offset += len(line)

    def process_line(self, line: Any, dropout: float = 0) -> Any:
        """Segment a line as ``segment`` does, but keep its CRs, LFs and spaces at either end unchanged."""
        margin = like(line, LINE_MARGIN)
        without_leading = line.lstrip(margin)
        trailing = without_leading[len(without_leading.rstrip(margin)) :]
        return line[: len(line) - len(without_leading)] + self.segment(line, dropout) + trailing

    def segment(self, sentence: Any, dropout: float = 0) -> Any:
        """Return the subwords of a sentence, both separated by spaces, without CRs, LFs and spaces at either end."""
        if not dropout and type(self).segment_tokens is BPE.segment_tokens and self._native_now is not None:
            return self._native_now.segment(sentence)
        space = like(sentence, " ")
        return space.join(self.segment_tokens(sentence.strip(like(sentence, LINE_MARGIN)).split(space), dropout))

    def segment_tokens(self, tokens: Iterable[Any], dropout: float = 0) -> list[Any]:
        """Return the subwords of a sequence of words, all but a word's last with the separator."""
        check_dropout(dropout)
        words = [word for word in tokens if word]
        if not dropout and self._native_now is not None:
            return self._native_now.segment_tokens(words)
        if not self._is_original_bpe and self._native_now is not None:
            return self._native_now.segment_tokens(words, dropout, random.getrandbits(64))
        subwords: list[Any] = []
        for word in words:
            pieces = [piece for part in self._isolate_glossaries(word) for piece in self._encode(part, dropout)]
            subwords += [piece + self.separator for piece in pieces[:-1]]
            subwords.append(pieces[-1])
        return subwords

    def _encode(self, word: Any, dropout: float) -> Sequence[Any]:
        return encode(
            word,
            self.bpe_codes,
            self.bpe_codes_reverse,
            self.vocab,
            self.separator,
            self.version,
            self.cache,
            self.glossaries_regex,
            self.is_bytes,
            dropout,
        )

    def _isolate_glossaries(self, word: Any) -> list[Any]:
        parts = [word]
        for glossary in self.glossaries:
            parts = [piece for part in parts for piece in isolate_glossary(part, glossary, self.is_bytes)]
        return parts


def _read_codes(codes: IO[Any], merges: int, is_bytes: bool) -> tuple[tuple[int, int], Codes | None, list[AnyMerge]]:
    """Return the version of a codes file, its content if the core can read that version, and its first merges."""
    name = stream_name(codes, "codes")
    codes.seek(0)
    if is_bytes:
        content = Codes(without_mark(beneath(codes).read(), name), name)
        if not content.header.bytes or not content.header.end_of_word:
            raise UsageError(f"{name}: not codes of byte-level BPE (#version: 0.2 byte); omit is_bytes")
        return (0, 2), content, content.first(merges)
    if isinstance(codes.read(0), bytes):
        codes = cast(IO[str], codecs.getreader("utf-8")(codes))
    first_line = without_mark(codes.readline().encode("utf-8"), name).decode("utf-8")
    versioned = first_line.startswith("#version:")
    if versioned and first_line.split() != ["#version:", "0.1"]:
        if first_line.split()[1:] in (["0.2", "byte"], ["0.4", "picky", "byte"]):
            raise UsageError(f"{name}: codes of byte-level BPE; pass is_bytes=True, and lines as bytes")
        content = Codes((first_line + codes.read()).encode("utf-8"), name)
        if not content.header.end_of_word:
            raise UsageError(f"{name}: subword-nmt knows no pre-tokenisers; apply these codes with mt_scaffold.BPE")
        return (0, 2), content, content.first(merges)
    text = codes.read() if versioned else first_line + codes.read()
    lines = text.rstrip("\n").split("\n")
    used = itertools.islice(enumerate(lines, 2 if versioned else 1), None if merges == -1 else merges)
    return (0, 1), None, [_merge(line, f"{name}: line {number}") for number, line in used]


def _merge(line: str, place: str) -> Merge:
    symbols = line.strip(LINE_MARGIN).split(" ")
    if len(symbols) != 2:
        raise MTScaffoldError(f"{place}: expected two symbols with one space between them")
    return Merge(symbols[0], symbols[1])


# A program may replace encode, as subword-nmt's own tests do; it is then called for every word.
_OWN_ENCODE = encode


def read_vocabulary(vocab_file: Text, threshold: int | None) -> set[str]:
    """Return the subwords of an open vocabulary file, or its lines, whose count reaches ``threshold``; None for all."""
    if not hasattr(vocab_file, "read"):
        vocab_file = io.StringIO("\n".join(cast(str, line).rstrip("\n") for line in vocab_file))
    return vocabulary_file.read_vocabulary(cast(IO[str], vocab_file), threshold)


def get_byte_mode(code_file_name: str) -> bool:
    """Return whether a codes file is of byte-level BPE by its header: the argument ``is_bytes`` of ``BPE``."""
    with open(code_file_name, "rb") as codes:  # noqa: UP020
        return codes.readline().endswith(b"byte\n")


def create_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser] | None = None,
) -> argparse.ArgumentParser:
    """Return a parser of subword-nmt's options, on its own or as a command of another parser."""
    parser = new_parser("apply-bpe", "Segment text with learned codes.", subparsers)
    add_file(parser, "--input", "-i", help="input text (default: standard input)")
    add_file(parser, "--codes", "-c", required=True, help="codes file")
    add_file(parser, "--output", "-o", mode="w", help="output text (default: standard output)")
    add_file(parser, "--vocabulary", help="vocabulary; subwords not in it are split further")
    add_segmenting(parser)
    add_num_workers(parser)
    return parser


if __name__ == "__main__":
    from mt_scaffold.subword_nmt.command import main

    main("apply-bpe")
