"""subword-nmt's module ``apply_bpe``: segment text with codes of either kind."""

from __future__ import annotations

import argparse
import codecs
import io
import itertools
import random
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import cached_property
from typing import IO, Any, cast

from mt_scaffold import apply
from mt_scaffold.codes import Codes, Merge
from mt_scaffold.commands.arguments import add_segmenting
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.files import AsBytes, WritableText, open_input, shown, stream_name
from mt_scaffold.options import check_dropout, check_merges, worker_count
from mt_scaffold.subword_nmt.streams import Text, add_file, add_num_workers, as_text, new_parser, refuse_bytes
from mt_scaffold.text import END_OF_WORD, LINE_MARGIN, SEPARATOR, not_utf8

Pair = tuple[str, str]


class BPE:
    """Segment text with learned codes, as subword-nmt's class of this name does.

    codes: an open codes file, read from its beginning. vocab: the subwords, with separator, that may be used.
    The other arguments, and the errors, are those of ``mt_scaffold.BPE``; ``is_bytes`` raises UsageError.

    ``vocab``, ``separator`` and ``glossaries`` may be assigned, but not changed in place.

    Dropout draws from Python's ``random``, whose seed decides. With codes of original BPE the draws are subword-nmt's,
    one by one and as slowly; with scaffold codes a single one seeds each call.
    """

    def __init__(
        self,
        codes: IO[Any],
        merges: int = -1,
        separator: str | bytes = SEPARATOR,
        vocab: Collection[str] | None = None,
        glossaries: Sequence[str] | None = None,
        is_bytes: bool = False,
    ) -> None:
        refuse_bytes(is_bytes)
        self.is_bytes = False
        self.separator = as_text(separator)
        self.vocab = vocab
        self.glossaries = glossaries or []
        self._merges = check_merges(merges)
        try:
            self.version, self._codes, found = _read_codes(codes, self._merges)
        except UnicodeDecodeError as error:
            raise apply.not_decoded(codes, stream_name(codes, "codes"), error) from None
        self._has_scaffold_tokens = any(merge.scaffold for merge in found)
        if self._has_scaffold_tokens and not self._isolates_natively:
            raise UsageError("a subclass with its own _isolate_glossaries takes codes of original BPE only")
        # A pair has its first rank. Of several that make a token, the one whose last mention comes first splits it.
        self.bpe_codes = {(merge.left, merge.right): rank for rank, merge in reversed(list(enumerate(found)))}
        self.bpe_codes_reverse = {left + right: (left, right) for left, right in self.bpe_codes}
        _ = self._native  # so that what is wrong is reported now

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name in ("vocab", "separator", "glossaries"):
            self._forget()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_native"}

    def _forget(self) -> None:
        for derived in ("_native", "glossaries_regex", "cache"):
            self.__dict__.pop(derived, None)

    @cached_property
    def cache(self) -> dict[str, Sequence[str]]:
        """Words that ``encode`` has segmented; the native core has its own."""
        return {}

    @cached_property
    def glossaries_regex(self) -> re.Pattern[str] | None:
        """What a whole glossary entry matches; None without glossaries."""
        return re.compile("^({})$".format("|".join(self.glossaries))) if self.glossaries else None

    @cached_property
    def _native(self) -> apply.BPE | None:
        """What segments words natively; None for codes of format 0.1, which only ``encode`` knows."""
        if self._codes is None:
            return None
        return apply.BPE(self._codes, self._merges, self.separator, self.vocab, self.glossaries)

    @property
    def _isolates_natively(self) -> bool:
        return type(self)._isolate_glossaries is BPE._isolate_glossaries

    @property
    def _native_now(self) -> apply.BPE | None:
        return self._native if encode is _OWN_ENCODE and self._isolates_natively else None

    def process_lines(self, filename: str, outfile: WritableText, dropout: float = 0, num_workers: int = 1) -> None:
        """Segment the file of this name, line by line, and write it to a text file. num_workers: threads.

        With dropout there is one thread, as each draw depends on those before it.
        """
        if not dropout and type(self) is BPE and self._native_now is not None:
            self._native_now.process_file(filename, AsBytes(outfile), num_workers=num_workers)
            return
        worker_count(num_workers)  # so that what is wrong is reported here, too
        offset = 0
        with open_input(filename) as lines:
            for number, line in enumerate(lines, 1):
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
        if not dropout and type(self).segment_tokens is BPE.segment_tokens and self._native_now is not None:
            return self._native_now.segment(sentence)
        return " ".join(self.segment_tokens(sentence.strip(LINE_MARGIN).split(" "), dropout))

    def segment_tokens(self, tokens: Iterable[str], dropout: float = 0) -> list[str]:
        """Return the subwords of a sequence of words, all but a word's last with the separator."""
        check_dropout(dropout)
        words = [word for word in tokens if word]
        if not dropout and self._native_now is not None:
            return self._native_now.segment_tokens(words)
        if self._has_scaffold_tokens and self._native_now is not None:
            return self._native_now.segment_tokens(words, dropout, random.getrandbits(64))
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
            self.is_bytes,
            dropout,
        )

    def _isolate_glossaries(self, word: str) -> list[str]:
        parts = [word]
        for glossary in self.glossaries:
            parts = [piece for part in parts for piece in isolate_glossary(part, glossary)]
        return parts


def _read_codes(codes: IO[Any], merges: int) -> tuple[tuple[int, int], Codes | None, list[Merge]]:
    """Return the version of a codes file, its content where the core can read that version, and its first merges."""
    name = stream_name(codes, "codes")
    codes.seek(0)
    if isinstance(codes.read(0), bytes):
        codes = cast(IO[str], codecs.getreader("utf-8")(codes))
    first_line = codes.readline()
    versioned = first_line.startswith("#version:")
    if versioned and first_line.split() != ["#version:", "0.1"]:
        content = Codes((first_line + codes.read()).encode("utf-8"), name)
        return (0, 2), content, content.first(merges)
    if not versioned:
        codes.seek(0)
    lines = codes.read().rstrip("\n").split("\n")
    used = itertools.islice(enumerate(lines, 2 if versioned else 1), None if merges == -1 else merges)
    return (0, 1), None, [_merge(line, f"{name}: line {number}") for number, line in used]


def _merge(line: str, place: str) -> Merge:
    symbols = line.strip(LINE_MARGIN).split(" ")
    if len(symbols) != 2:
        raise MTScaffoldError(f"{place}: expected two symbols with one space between them")
    return Merge(symbols[0], symbols[1])


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

    bpe_codes_reverse: merged symbol → pair, by which subwords that ``vocab`` lacks are split. version: of the codes,
    (0, 1) or (0, 2). cache: words already segmented; words segmented with dropout are not added to it.
    """
    refuse_bytes(is_bytes)
    if not dropout and orig in cache:
        return cache[orig]
    if len(orig) == 1 or (glossaries_regex and glossaries_regex.match(orig)):
        return (orig,)
    symbols = [*orig, END_OF_WORD] if version == (0, 1) else [*orig[:-1], orig[-1] + END_OF_WORD]
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
        symbols = check_vocab_and_split(symbols, bpe_codes_reverse, vocab, separator)
    if not dropout:
        cache[orig] = tuple(symbols)
    return tuple(symbols)


def _merged(symbols: Sequence[str], places: Iterable[int]) -> list[str]:
    """Merge the pairs of symbols at these places, from the left and without overlap."""
    merged: list[str] = []
    end = 0
    for place in places:
        if place >= end:
            merged += [*symbols[end:place], symbols[place] + symbols[place + 1]]
            end = place + 2
    return [*merged, *symbols[end:]]


# A program may replace encode, as subword-nmt's own tests do; it is then called for every word.
_OWN_ENCODE = encode


def check_vocab_and_split(
    orig: Sequence[str], bpe_codes: Mapping[str, Pair], vocab: Collection[str], separator: str
) -> list[str]:
    """Return the subwords of a word, with those that ``vocab`` lacks split as by ``recursive_split``."""
    finals = [False] * (len(orig) - 1) + [True]
    return [
        part
        for subword, final in zip(orig, finals, strict=True)
        for part in _known(subword, bpe_codes, vocab, separator, final)
    ]


def recursive_split(
    segment: str, bpe_codes: Mapping[str, Pair], vocab: Collection[str], separator: str, final: bool = False
) -> Iterator[str]:
    """Yield the two parts of a subword, split further until ``vocab`` has them or nothing makes them.

    bpe_codes: merged symbol → pair (``bpe_codes_reverse``). final: whether the subword ends a word.
    """
    pair = bpe_codes.get(segment + END_OF_WORD if final else segment)
    if pair is None:
        yield segment
        return
    left, right = pair
    yield from _known(left, bpe_codes, vocab, separator, False)
    yield from _known(right.removesuffix(END_OF_WORD) if final else right, bpe_codes, vocab, separator, final)


def _known(
    subword: str, bpe_codes: Mapping[str, Pair], vocab: Collection[str], separator: str, final: bool
) -> Iterator[str]:
    if (subword if final else subword + separator) in vocab:
        yield subword
    else:
        yield from recursive_split(subword, bpe_codes, vocab, separator, final)


def read_vocabulary(vocab_file: Text, threshold: int | None) -> set[str]:
    """Return the subwords of an open vocabulary file, or its lines, whose count reaches ``threshold``; None for all."""
    if not hasattr(vocab_file, "read"):
        vocab_file = io.StringIO("\n".join(line.rstrip("\n") for line in vocab_file))
    return apply.read_vocabulary(cast(IO[str], vocab_file), threshold)


def isolate_glossary(word: str, glossary: str, is_bytes: bool = False) -> list[str]:
    """Return the parts of a word in order, with those that match a glossary entry, a regular expression, on their own.

    >>> isolate_glossary("1934USABUSA", "USA")
    ['1934', 'USA', 'B', 'USA']
    """
    refuse_bytes(is_bytes)
    if re.match(f"^{glossary}$", word) or not re.search(glossary, word):
        return [word]
    *parts, last = re.split(f"({glossary})", word)
    return [part for part in parts if part] + ([last.strip(LINE_MARGIN)] if last else [])


def get_byte_mode(code_file_name: str) -> bool:
    """Return whether a codes file says that it is of byte-level BPE, which ``BPE`` refuses."""
    with open(code_file_name, "rb") as codes:
        return codes.readline().endswith(b"byte\n")


def create_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser] | None = None,
) -> argparse.ArgumentParser:
    """Return a parser of subword-nmt's options, on its own or as a command of another parser."""
    parser = new_parser("apply-bpe", "Segment text with learned codes.", subparsers)
    add_file(parser, "--input", "-i", help="input text (default: standard input)")
    add_file(parser, "--codes", "-c", required=True, help="codes file")
    add_file(parser, "--output", "-o", mode="w", help="output text (default: standard output)")
    add_file(parser, "--vocabulary", help="vocabulary; subwords it lacks are split further")
    add_segmenting(parser)
    add_num_workers(parser)
    return parser


if __name__ == "__main__":
    from mt_scaffold.subword_nmt.subword_nmt import main

    main("apply-bpe")
