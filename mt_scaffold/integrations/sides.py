"""Text ⇄ subwords with ids, for one side of a translation: the basis of tokenizers for other libraries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike, read_file, shown
from mt_scaffold.corpus.symbols import read_symbol, symbol_name
from mt_scaffold.corpus.text import END_OF_WORD, SEPARATOR, bytes_to_notation, decode
from mt_scaffold.corpus.vocabulary_file import SPECIAL_SYMBOLS, read_dictionary
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.options import refuse_text
from mt_scaffold.segment.apply import BPE
from mt_scaffold.segment.draw import Draw
from mt_scaffold.segment.numbering import Numbering, numbering_of, ordinary_tokens

if TYPE_CHECKING:
    from mt_scaffold.integrations.rows import Encoded


def _index_of(text: str, epoch: int) -> int:
    """Return the index of a text in an epoch: a digest, so that it depends on neither batches nor workers."""
    key = epoch.to_bytes(8, "little")
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest())


class Side(Protocol):
    """The codes and vocabulary of one side.

    tokens: the token of each id. ids: the id of each token. no_spans: the kind of codes for which ``encode`` cannot
    locate tokens in their texts; None if it can.
    """

    codes: Codes
    tokens: list[str]
    ids: dict[str, int]
    no_spans: str | None

    def subwords(self, text: str, draw: Draw, split_special: bool = False) -> list[str]:
        """Return the tokens of a text, some of which may have no id; split_special: as in ``ByteSide.encode``."""
        ...

    def encode(self, texts: Sequence[str], draw: Draw, unknown: int) -> Encoded:
        """Return the ids of texts, ``unknown`` for tokens without one, and the functions that locate them."""
        ...

    def text(self, tokens: Sequence[str]) -> str:
        """Return the text of tokens: the inverse of ``subwords``."""
        ...


# The separator for the core. No word contains a space, so one that is spelt like the separator of the tokens is a word
# like any other.
_BETWEEN = " "


class CharacterSide:
    """Codes of code points, with a vocabulary that gives ids to their subwords.

    tokens: as ``apply-bpe`` prints them, with the separator. split_unknown: split subwords that are not among the
    tokens further, as ``apply-bpe --vocabulary`` does.
    """

    no_spans: str | None = None

    def __init__(
        self,
        codes: Codes,
        tokens: list[str],
        merges: int = -1,
        separator: str = SEPARATOR,
        glossaries: Sequence[str] | None = None,
        split_unknown: bool = False,
    ) -> None:
        self.codes = codes
        self.tokens = tokens
        self.ids = _numbered(tokens, codes.name)
        self._separator = separator
        vocab = [form for token in tokens for form in self._known_as(token)] if split_unknown else None
        self._bpe = BPE(codes, merges, _BETWEEN, vocab, glossaries)

    def _known_as(self, token: str) -> list[str]:
        """Return the core's subwords that a token of the vocabulary may denote: word-final ones or others."""
        text, inside = read_symbol(token, self._separator)
        return [token, text + _BETWEEN] if inside else [text]

    def subwords(self, text: str, draw: Draw, split_special: bool = False) -> list[str]:
        return self._shown(self._segmented(text, draw))

    def _segmented(self, text: str, draw: Draw) -> list[str]:
        """Return the characters of each subword, and "" after each that is not word-final."""
        # The epoch is part of the index.
        line = self._bpe.segment(text, draw.amount, draw.seed, _index_of(text, draw.epoch) if draw else 0)
        return line.split(" ") if line else []

    def _shown(self, segmented: list[str]) -> list[str]:
        ends = zip(segmented, [*segmented[1:], "another word"], strict=False)
        return [self._name(piece, inside=not after) for piece, after in ends if piece]

    def _name(self, piece: str, inside: bool) -> str:
        """Return the token of a subword; vocabularies of surface forms have no separate name for a word ``foo@@``."""
        name = symbol_name(piece, inside, self._separator)
        return name if inside or name in self.ids else piece

    def encode(self, texts: Sequence[str], draw: Draw, unknown: int) -> Encoded:
        import numpy

        from mt_scaffold.integrations.rows import Encoded, word_spans

        ids: list[int] = []
        offsets = [0]
        segmented = [self._segmented(text, draw) for text in texts]
        for each in segmented:
            ids += [self.ids.get(subword, unknown) for subword in self._shown(each)]
            offsets.append(len(ids))

        def spans(number: int) -> Any:
            return word_spans(texts[number], list(filter(None, segmented[number])))

        def words(number: int) -> Any:
            found = spans(number)
            # Words are separated by spaces, subwords within a word are not.
            return numpy.cumsum(numpy.append([False], found[1:, 0] > found[:-1, 1])[: len(found)])

        return Encoded(numpy.array(ids, numpy.int64), numpy.array(offsets, numpy.int64), spans, words)

    def text(self, tokens: Sequence[str]) -> str:
        parts = []
        for token in tokens:
            text, inside = read_symbol(token.removesuffix(" "), self._separator)
            parts.append(text if inside else text + " ")
        return "".join(parts).rstrip(" ")


class ByteSide:
    """Codes with a pre-tokeniser, with the ids of ``BPE.encode``; tokens are in GPT-2's notation."""

    no_spans: str | None = None

    def __init__(self, codes: Codes, merges: int = -1, numbering: Numbering | None = None) -> None:
        self.codes = codes
        self._merges = merges
        self._numbering, self._special, self._found = numbering, list[str](), tuple[str, ...]()
        self._made: BPE | None = None
        self.tokens = self._listed(merges)
        self.ids = _numbered(self.tokens, codes.name)

    def __getstate__(self) -> dict[str, Any]:
        # The pickle must not change with the first call: datasets names cached results by it.
        return {**self.__dict__, "_made": None}

    def _listed(self, merges: int) -> list[str]:
        return byte_tokens(self.codes, merges)

    @property
    def _bpe(self) -> BPE:
        # Made on first use, since tokens are often added one by one.
        if self._made is None:
            self._made = BPE(self.codes, self._merges, numbering=self._numbering, special_tokens=self._special)
        return self._made

    def find(self, tokens: Mapping[str, int]) -> bool:
        """Find these tokens, and no others, in text from now on; those that the codes do not know get these ids.

        Returns whether this is possible: the ids must follow those of the codes. Otherwise no token is found.
        """
        following = list(tokens.values()) == list(range(len(self.tokens), len(self.tokens) + len(tokens)))
        self._special = list(tokens) if following else []
        self._found, self._made = tuple(self._special), None
        return following

    def subwords(self, text: str, draw: Draw, split_special: bool = False) -> list[str]:
        names = self._bpe.tokens
        ids = self.encode([text], draw, -1, split_special=split_special).ids
        return [self.tokens[number] if number < len(self.tokens) else names[number].decode() for number in ids]

    def encode(self, texts: Sequence[str], draw: Draw, unknown: int, *, split_special: bool = False) -> Encoded:
        """Return the ids of texts; split_special: treat special tokens in them as ordinary text."""
        import numpy

        from mt_scaffold.integrations.rows import Encoded

        bpe = self._bpe
        special: dict[str, Any] = {"allowed_special": () if split_special else self._found, "disallowed_special": ()}
        if len(texts) == 1 and not draw:
            ids = bpe.encode_to_numpy(texts[0], **special)
            offsets = numpy.array([0, len(ids)], numpy.int64)
        else:
            indices = [_index_of(text, draw.epoch) for text in texts] if draw else None
            ids, offsets = bpe.encode_batch(texts, dropout=draw.amount, seed=draw.seed, indices=indices, **special)

        def spans(number: int) -> Any:
            return self._spans(bpe, texts[number], ids[offsets[number] : offsets[number + 1]])

        def words(number: int) -> Any:
            return self._words(bpe, texts[number], ids[offsets[number] : offsets[number + 1]])

        return Encoded(ids, offsets, spans, words)

    def _spans(self, bpe: BPE, text: str, ids: Any) -> Any:
        from mt_scaffold.integrations.rows import byte_spans

        return byte_spans(text, _sizes(bpe, ids))

    def _words(self, bpe: BPE, text: str, ids: Any) -> Any:
        """Return the number of each token's word, of the pre-tokeniser; special tokens are words."""
        import numpy

        data = text.encode("utf-8")
        special = numpy.isin(ids, list(bpe.special_tokens.values()))
        pretokeniser = self.codes.header.make_pretokeniser()
        assert pretokeniser is not None
        sizes = _sizes(bpe, ids)
        ends = numpy.cumsum(sizes)
        starts = ends - sizes
        begins, place = list[int](), 0
        # Special tokens are cut out before pre-tokenisation.
        for begin, end in [*zip(starts[special].tolist(), ends[special].tolist(), strict=True), (len(data), 0)]:
            for word in pretokeniser.split(data[place:begin]):
                begins.append(place)
                place += len(word)
            if end:
                begins.append(begin)
                place = end
        return numpy.searchsorted(begins, starts, "right") - 1

    def text(self, tokens: Sequence[str]) -> str:
        return self._bpe.decode([self.ids[token] for token in tokens])


class ImportedSide(ByteSide):
    """Imported codes, with the ids of the program that they come from.

    tokens: as with other codes of bytes; special tokens as they are spelled, and ``<id N>`` for an id that has no
    token, or only one that another id has.
    """

    def __init__(self, codes: Codes, numbering: Numbering, merges: int = -1) -> None:
        self.numbering = numbering
        super().__init__(codes, merges, numbering)
        if numbering.spaces is not None or numbering.unknown is not None:
            self.no_spans = "codes that add spaces to a text or have an id for unknown bytes"

    def _listed(self, merges: int) -> list[str]:
        return _imported_tokens(self.codes, self.numbering)

    def find(self, tokens: Mapping[str, int]) -> bool:
        self._numbering = replace(self.numbering, special={**self.numbering.special, **tokens})
        self._found, self._made = tuple(tokens), None
        return True

    def text(self, tokens: Sequence[str]) -> str:
        special = self._bpe.special_tokens
        return self._bpe.decode([self.ids.get(token, special.get(token, -1)) for token in tokens])


def _sizes(bpe: BPE, ids: Any) -> Any:
    """Return the number of bytes of each token."""
    import numpy

    tokens = bpe.tokens
    return numpy.array([len(tokens[number]) for number in ids], numpy.int64)


def byte_tokens(codes: Codes, merges: int = -1) -> list[str]:
    """Return the token of each id of codes with a pre-tokeniser (``TokenIds``), as a codes file writes it.

    >>> byte_tokens(Codes(b"#version: 0.3 bytes gpt2\\na n\\nb an\\n"))[-2:]
    ['an', 'ban']
    """
    tokens = [bytes_to_notation(bytes((byte,))) for byte in range(256)]
    return list(dict.fromkeys([*tokens, *(merge.token for merge in codes.first(merges) if merge.normal)]))


def _imported_tokens(codes: Codes, numbering: Numbering) -> list[str]:
    """Return the token of each id; the ids of special tokens and of text take precedence."""
    tokens: dict[int, str] = {}
    listed = [
        *((number, token) for token, number in numbering.special.items()),
        *zip(numbering.ids, ordinary_tokens(codes), strict=True),
        *((number, bytes_to_notation(token)) for number, token in numbering.others.items()),
    ]
    taken = set[str]()
    for number, token in listed:
        if number >= 0 and number not in tokens and token not in taken:
            tokens[number] = token
            taken.add(token)
    # No token of codes contains a space, so these names are free.
    return [tokens.get(number, f"<id {number}>") for number in range(numbering.n_vocab)]


def code_tokens(codes: Codes, special: Sequence[str], merges: int = -1, separator: str = SEPARATOR) -> list[str]:
    """Return a vocabulary of code points made from the codes alone: special tokens, then all subwords of the codes.

    A character that is in no merge is not among them.
    """
    refuse_text(special=special)
    # Without duplicates: a word that ends in the separator looks like a subword within a word.
    return _apart(special, list(dict.fromkeys(BPE(codes, merges, separator).surface_forms())))


def read_tokens(path: PathLike) -> list[str]:
    """Read the token of each id from ``vocabulary.json``, a list, or from a fairseq dictionary (any other name).

    Raises MTScaffoldError if the file cannot be read or is neither.
    """
    if not str(path).endswith(".json"):
        return _apart(SPECIAL_SYMBOLS, [form for form, _ in read_dictionary(path)])
    try:
        tokens = json.loads(decode(read_file(path), shown(path)))
    except json.JSONDecodeError as error:
        raise MTScaffoldError(f"{shown(path)}: line {error.lineno}: not JSON: {error.msg}") from None
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise MTScaffoldError(f"{shown(path)}: expected a list of tokens in the order of their ids")
    return tokens


def side_of(
    codes_file: PathLike,
    vocab_file: PathLike | None,
    special: Sequence[str],
    *,
    merges: int = -1,
    separator: str = SEPARATOR,
    glossaries: Sequence[str] | None = None,
    split_unknown: bool = False,
    ids_file: PathLike | None = None,
) -> Side:
    """Return one side from its files.

    vocab_file: as for ``read_tokens``; None makes the vocabulary from the codes, with ``special`` first for codes of
    code points. ids_file: the ids of imported codes; None for those next to the codes.

    Raises UsageError for codes of bytes with ``</w>``, for options that codes of bytes do not support, and for
    glossaries without a vocabulary; otherwise as ``BPE`` and ``read_tokens`` do.
    """
    refuse_text(glossaries=glossaries)
    codes = Codes.read(codes_file)
    if not codes.header.bytes:
        if glossaries and vocab_file is None:
            raise UsageError(f"{codes.name}: codes do not list what glossaries isolate; pass a vocabulary that does")
        tokens = code_tokens(codes, special, merges, separator) if vocab_file is None else read_tokens(vocab_file)
        return CharacterSide(codes, tokens, merges, separator, glossaries, split_unknown)
    if codes.header.end_of_word:
        raise UsageError(f"{codes.name}: codes of bytes with {END_OF_WORD} have no ids; learn codes with --pretokenise")
    if vocab_file is not None or glossaries or split_unknown or separator != SEPARATOR:
        raise UsageError(
            f"{codes.name}: codes of bytes define their own ids; omit the vocabulary, glossaries, split_unknown and "
            "the separator"
        )
    numbering = numbering_of(codes) if ids_file is None else Numbering.read(ids_file, codes)
    return ByteSide(codes, merges) if numbering is None else ImportedSide(codes, numbering, merges)


def _apart(special: Sequence[str], forms: Sequence[str]) -> list[str]:
    """Return tokens by id; a subword that is spelled like a special token gets a space, which no other contains."""
    return [*special, *(form + " " * (form in special) for form in forms)]


def _numbered(tokens: Sequence[str], name: str) -> dict[str, int]:
    ids = {token: number for number, token in enumerate(tokens)}
    if len(ids) < len(tokens):
        twice = next(token for number, token in enumerate(tokens) if ids[token] != number)
        raise MTScaffoldError(f"the vocabulary for {name} has '{twice}' twice")
    return ids
