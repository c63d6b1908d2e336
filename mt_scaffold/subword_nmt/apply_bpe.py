"""subword-nmt's module ``apply_bpe``: segment text with codes of either kind."""

from __future__ import annotations

import argparse
import io
import itertools
import random
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from multiprocessing import cpu_count as cpu_count
from typing import IO, Any, cast

from mt_scaffold.cached import cached_property
from mt_scaffold.codes import Codes
from mt_scaffold.commands.arguments import add_segmenting
from mt_scaffold.corpus import vocabulary_file
from mt_scaffold.corpus.files import AsBytes, open_input, shown, stream_name, warn_of_mark
from mt_scaffold.corpus.glossaries import around
from mt_scaffold.corpus.text import END_OF_WORD, LINE_MARGIN, SEPARATOR, not_utf8
from mt_scaffold.errors import UsageError
from mt_scaffold.options import check_merges, refuse_text, worker_count
from mt_scaffold.segment import apply
from mt_scaffold.segment.draw import check_dropout
from mt_scaffold.subword_nmt.streams import Text, add_file, add_num_workers

Pair = tuple[str, str]


class BPE:
    """Segment text with learned codes, as subword-nmt's class of this name does.

    codes: an open codes file, read from its beginning. vocab: the subwords, with separator, that may be used.
    The other arguments, and the errors, are those of ``mt_scaffold.BPE``.

    ``vocab``, ``separator`` and ``glossaries`` may be assigned, but not changed in place.

    Dropout draws from Python's ``random``, whose seed decides. With codes of original BPE the draws are subword-nmt's,
    one by one and as slowly; with other codes a single one seeds each call.
    """

    version = (0, 2)

    def __init__(
        self,
        codes: IO[Any],
        merges: int = -1,
        separator: str = SEPARATOR,
        vocab: Collection[str] | None = None,
        glossaries: Sequence[str] | None = None,
    ) -> None:
        refuse_text(glossaries=glossaries)
        self.separator = separator
        self.vocab = vocab
        self.glossaries: Sequence[str] = list(glossaries or [])
        self._merges = check_merges(merges)
        try:
            self._codes = _read_codes(codes)
        except UnicodeDecodeError as error:
            raise vocabulary_file.not_decoded(codes, stream_name(codes, "codes"), error) from None
        found = self._codes.first(self._merges)
        self._is_original_bpe = not self._codes.header.picky and all(merge.normal for merge in found)
        # A pair keeps its first rank. Of several that make a token, the one whose last mention comes first splits it.
        self.bpe_codes = {(merge.left, merge.right): rank for rank, merge in reversed(list(enumerate(found)))}
        self.bpe_codes_reverse = {left + right: (left, right) for left, right in self.bpe_codes}
        _ = self._native  # report errors now

    def __setattr__(self, name: str, value: object) -> None:
        if name in ("vocab", "glossaries"):
            refuse_text(**{name: value})
        super().__setattr__(name, value)
        if name in ("vocab", "separator", "glossaries"):
            for derived in ("_native", "glossaries_regex", "cache"):
                self.__dict__.pop(derived, None)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_native"}

    @cached_property
    def cache(self) -> dict[str, Sequence[str]]:
        """Words that ``encode`` has segmented; the native core has its own."""
        return {}

    @cached_property
    def glossaries_regex(self) -> re.Pattern[str] | None:
        """The pattern of a whole glossary entry; None without glossaries."""
        return re.compile(around("|".join(self.glossaries), "^(", ")$")) if self.glossaries else None

    @cached_property
    def _native(self) -> apply.BPE:
        return apply.BPE(self._codes, self._merges, self.separator, self.vocab, self.glossaries)

    @property
    def _is_native(self) -> bool:
        return encode is _OWN_ENCODE

    def process_lines(self, filename: str, outfile: Any, dropout: float = 0, num_workers: int = 1) -> None:
        """Segment the file of this name, line by line, into a file open for text.

        num_workers: threads; only one with dropout, as each draw depends on those before it.
        """
        if not dropout and type(self) is BPE and self._is_native:
            self._native.process_file(filename, AsBytes(outfile), num_workers=num_workers)
            return
        worker_count(num_workers)  # report a wrong number here too
        offset = 0
        with open_input(filename) as lines:
            for number, line in enumerate(lines, 1):
                if number == 1:
                    warn_of_mark(line, shown(filename))
                try:
                    text = line.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise not_utf8(shown(filename), number, offset + error.start, line[error.start]) from None
                outfile.write(self.process_line(text, dropout))
                offset += len(line)

    def process_line(self, line: str, dropout: float = 0) -> str:
        """Segment a line as ``segment`` does, but keep its CRs, LFs and spaces at either end unchanged."""
        without_leading = line.lstrip(LINE_MARGIN)
        trailing = without_leading[len(without_leading.rstrip(LINE_MARGIN)) :]
        return line[: len(line) - len(without_leading)] + self.segment(line, dropout) + trailing

    def segment(self, sentence: str, dropout: float = 0) -> str:
        """Return the subwords of a sentence, both separated by spaces, without CRs, LFs and spaces at either end."""
        if not dropout and type(self).segment_tokens is BPE.segment_tokens and self._is_native:
            return self._native.segment(sentence)
        return " ".join(self.segment_tokens(sentence.strip(LINE_MARGIN).split(" "), dropout))

    def segment_tokens(self, tokens: Iterable[str], dropout: float = 0) -> list[str]:
        """Return the subwords of a sequence of words, all but a word's last with the separator."""
        check_dropout(dropout)
        words = [word for word in tokens if word]
        if self._is_native and not dropout:
            return self._native.segment_tokens(words)
        if self._is_native and not self._is_original_bpe:
            return self._native.segment_tokens(words, dropout, random.getrandbits(64))
        subwords: list[str] = []
        for word in words:
            pieces = [piece for part in self._isolate_glossaries(word) for piece in self._encode(part, dropout)]
            subwords += [piece + self.separator for piece in pieces[:-1]]
            subwords.append(pieces[-1])
        return subwords

    def _encode(self, word: str, dropout: float) -> Sequence[str]:
        return encode(
            word,
            self.bpe_codes,
            self.bpe_codes_reverse,
            self.vocab,
            self.separator,
            self.version,
            self.cache,
            self.glossaries_regex,
            False,
            dropout,
        )

    def _isolate_glossaries(self, word: str) -> list[str]:
        parts = [word]
        for glossary in self.glossaries:
            parts = [piece for part in parts for piece in isolate_glossary(part, glossary)]
        return parts


def _read_codes(codes: IO[Any]) -> Codes:
    codes.seek(0)
    if not isinstance(codes.read(0), str | bytes):
        return Codes(b"#version: 0.2\n")  # a mock, in subword-nmt's own tests
    content = Codes.of(codes)
    if content.header.bytes or not content.header.end_of_word:
        raise UsageError(
            f"{content.name}: codes of bytes, or with a pre-tokeniser; apply these codes with mt_scaffold.BPE"
        )
    return content


def encode(
    orig: str,
    bpe_codes: Mapping[Pair, int],
    bpe_codes_reverse: Mapping[str, Pair],
    vocab: Collection[str] | None,
    separator: str,
    version: tuple[int, ...],
    cache: MutableMapping[str, Sequence[str]],
    glossaries_regex: re.Pattern[str] | None = None,
    is_bytes: bool = False,
    dropout: float = 0,
) -> Sequence[str]:
    """Return the subwords of a word, without separators, as the codes in ``bpe_codes`` (pair → rank) segment it.

    bpe_codes_reverse: merged symbol → pair, for splitting subwords that are not in ``vocab``. version: (0, 2).
    cache: words already segmented; words segmented with dropout are not added to it. is_bytes: False, as in the
    signature of subword-nmt 0.3.9.
    """
    if is_bytes or version != BPE.version:
        raise UsageError("encode takes words of text and codes of version (0, 2); segment bytes with mt_scaffold.BPE")
    if not dropout and orig in cache:
        return cache[orig]
    if len(orig) == 1 or (glossaries_regex and glossaries_regex.match(orig)):
        return (orig,)
    symbols = [*orig[:-1], orig[-1] + END_OF_WORD]
    while True:
        # One draw for each pair of neighbours at each step, whether it can be merged or not: subword-nmt's order.
        found = [
            (bpe_codes[pair], place)
            for place, pair in enumerate(itertools.pairwise(symbols))
            if (not dropout or random.random() > dropout) and pair in bpe_codes
        ]
        if not found:
            break
        best, _ = min(found)
        symbols = _merged(symbols, [place for rank, place in found if rank == best])
    if symbols[-1] == END_OF_WORD:
        symbols.pop()
    else:
        symbols[-1] = symbols[-1].removesuffix(END_OF_WORD)
    if vocab:
        last = len(symbols) - 1
        symbols = [
            part
            for place, symbol in enumerate(symbols)
            for part in _known(symbol, bpe_codes_reverse, vocab, separator, place == last)
        ]
    if not dropout:
        cache[orig] = tuple(symbols)
    return tuple(symbols)


# A program may replace encode, as subword-nmt's own tests do; it is then called for every word.
_OWN_ENCODE = encode


def _merged(symbols: Sequence[str], places: Iterable[int]) -> list[str]:
    """Merge the pairs of symbols at these places, from the left and without overlap."""
    merged: list[str] = []
    end = 0
    for place in places:
        if place >= end:
            merged.extend(symbols[end:place])
            merged.append(symbols[place] + symbols[place + 1])
            end = place + 2
    merged.extend(symbols[end:])
    return merged


def _known(
    subword: str, pairs: Mapping[str, Pair], vocab: Collection[str], separator: str, final: bool
) -> Iterator[str]:
    """Yield a subword if it is in ``vocab`` or no pair makes it, otherwise its two parts, split in the same way.

    final: whether it ends a word.
    """
    pair = pairs.get(subword + END_OF_WORD if final else subword)
    if pair is None or (subword if final else subword + separator) in vocab:
        yield subword
        return
    left, right = pair
    yield from _known(left, pairs, vocab, separator, False)
    yield from _known(right.removesuffix(END_OF_WORD) if final else right, pairs, vocab, separator, final)


def isolate_glossary(word: str, glossary: str) -> list[str]:
    """Return the parts of a word in order, with those that match a glossary entry, a regular expression, on their own.

    >>> isolate_glossary("1934USABUSA", "USA")
    ['1934', 'USA', 'B', 'USA']
    """
    if re.match(around(glossary, "^", "$"), word) or not re.search(glossary, word):
        return [word]
    *parts, last = re.split(around(glossary, "(", ")"), word)
    return [part for part in parts if part] + ([last.strip(LINE_MARGIN)] if last else [])


def read_vocabulary(vocab_file: Text, threshold: int | None) -> set[str]:
    """Return the subwords of an open vocabulary file, or its lines, whose count reaches ``threshold``; None for all."""
    if not hasattr(vocab_file, "read"):
        vocab_file = io.StringIO("\n".join(cast(str, line).rstrip("\n") for line in vocab_file))
    return vocabulary_file.read_vocabulary(cast(IO[str], vocab_file), threshold)


def create_parser() -> argparse.ArgumentParser:
    """Return a parser of subword-nmt's options."""
    parser = argparse.ArgumentParser(description="Segment text with learned codes.")
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
