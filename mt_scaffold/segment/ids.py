"""Text ⇄ ids: the ids of byte-level codes, special tokens, decoding. ``BPE`` inherits it."""

from __future__ import annotations

import codecs
import operator
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Literal

from mt_scaffold import _core
from mt_scaffold.errors import UsageError
from mt_scaffold.options import check_index, check_indices, worker_count
from mt_scaffold.segment.draw import Draw
from mt_scaffold.segment.native import Native

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from mt_scaffold.segment.numbering import Numbering

    # Integers, as a list or tuple, or as anything with a buffer of them: a NumPy array, an ``array.array``.
    Ids = Sequence[int] | NDArray[numpy.integer[Any]]

# Special tokens by name, or all of them.
Some = Collection[str] | Literal["all"]

# The defaults of a call, each a single object: comparing identity is the fastest way to recognise them.
_FIRST, _NONE, _ALL = 0, (), "all"


class Special(IntEnum):
    """How a call treats a special token in a text: as text, as the token, or as an error."""

    TEXT = 0
    ALLOWED = 1
    REFUSED = 2


class TokenIds:
    """The half of ``BPE`` that gives ids; every method raises MTScaffoldError for codes without a pre-tokeniser.

    Ids are numbered in this order: the 256 bytes, the normal merged tokens by the rank of the first merge that makes
    them, the special tokens as given, padding. Scaffold tokens have no ids. Imported codes (``CODES.manifest.json``)
    have the ids and special tokens of the program that they come from; further special tokens follow.

    The tokens of a text concatenate to the text: ``decode_bytes(encode(x)) == x`` for any bytes.
    """

    _native: Native

    @property
    def numbering(self) -> Numbering | None:
        """The ids of imported codes; None for others, whose tokens are numbered by rank."""
        return self._native.numbering

    @property
    def ids_in_core(self) -> _core.Ids:
        """The core's encoder and decoder."""
        return self._native.ids

    @property
    def n_vocab(self) -> int:
        """The number of ids, special tokens and padding included."""
        return self._native.ids.n_vocab

    @property
    def tokens(self) -> list[bytes]:
        """The bytes of each id: the UTF-8 of a special token, none for padding."""
        return self._native.tokens

    @property
    def special_tokens(self) -> dict[str, int]:
        """The id of each special token."""
        return self._native.special_tokens

    # Not keyword-only, as Python looks their defaults up at each call: a tenth of the time that a sentence takes.
    def encode(
        self,
        text: str | bytes,
        dropout: float = 0,
        seed: int | None = None,
        index: int = _FIRST,
        allowed_special: Some = _NONE,
        disallowed_special: Some = _ALL,
    ) -> list[int]:
        """Return the ids of a text, which may be any bytes; a text is a document, line ends included.

        dropout, seed, index: as for ``segment``.
        allowed_special: the special tokens that become their id wherever the text spells them out, or "all". Of several
            that match at one place, the longest does.
        disallowed_special: those that the text must not hold, or "all" for all that are not allowed. A special token
            that is neither is ordinary text; with ``disallowed_special=()`` none is refused.

        Raises SpecialTokenError, a ValueError, for a disallowed special token in the text; MTScaffoldError for a lone
        surrogate; UsageError for a probability or index out of range and for a name that is not a special token.

        >>> bpe = BPE(b"#version: 0.3 bytes gpt2\\na n\\nb an\\n", special_tokens=["<|end|>"])
        >>> bpe.encode("banana<|end|>", allowed_special="all")
        [257, 256, 97, 258]
        """
        if not dropout and allowed_special is _NONE and disallowed_special is _ALL and index is _FIRST:
            return self._native.encode_plain(text)
        chosen = self._chosen(dropout, seed, index, allowed_special, disallowed_special)
        return self._native.ids.encode(text, *chosen)

    def encode_to_numpy(
        self,
        text: str | bytes,
        dropout: float = 0,
        seed: int | None = None,
        index: int = _FIRST,
        allowed_special: Some = _NONE,
        disallowed_special: Some = _ALL,
    ) -> NDArray[numpy.uint32]:
        """Return the ids of a text as an array (uint32), without an object per id; otherwise as ``encode``.

        Needs NumPy, and is faster than ``encode`` for texts of more than about 20 ids.

        >>> BPE(b"#version: 0.3 bytes gpt2\\na n\\nb an\\n").encode_to_numpy("banana").tolist()
        [257, 256, 97]
        """
        if not dropout and allowed_special is _NONE and disallowed_special is _ALL and index is _FIRST:
            return self._native.encode_plain_array(text)
        chosen = self._chosen(dropout, seed, index, allowed_special, disallowed_special)
        return self._native.ids.encode_array(text, *chosen)

    def _chosen(
        self,
        dropout: float,
        seed: int | None,
        index: int,
        allowed_special: Some,
        disallowed_special: Some,
    ) -> tuple[bytes, Draw | None, int]:
        """Return the core's arguments for one text: the states of special tokens, the draw and the index."""
        special = self.special_states(allowed_special, disallowed_special)
        check_index(index)
        if not dropout:
            return special, None, 0
        return special, Draw("dropout", dropout, seed), index

    def encode_batch(
        self,
        texts: Sequence[str] | Sequence[bytes],
        *,
        dropout: float = 0,
        seed: int | None = None,
        epoch: int = 0,
        indices: Sequence[int] | None = None,
        num_workers: int | None = None,
        allowed_special: Some = (),
        disallowed_special: Some = "all",
    ) -> tuple[NDArray[numpy.uint32], NDArray[numpy.int64]]:
        """Encode many texts in one call of the core, on several threads and without an object per id.

        dropout, seed, epoch, indices: a text's ids depend only on (seed, epoch, its index), the index
            being its position unless ``indices`` are given; with epoch 0 they are those of ``encode``.
        num_workers: threads, as for ``count_words``; the result is the same for any number.

        Returns the ids of all texts, one after the other (uint32), and the offset of each text (int64, one more than
        there are texts): text i has ``ids[offsets[i]:offsets[i + 1]]``. Needs NumPy. Raises as ``encode`` does.

        >>> ids, offsets = BPE(b"#version: 0.3 bytes gpt2\\na n\\nb an\\n").encode_batch(["banana", "", "an"])
        >>> ids.tolist(), offsets.tolist()
        ([257, 256, 97, 256], [0, 3, 3, 4])
        """
        import numpy

        if isinstance(texts, str | bytes):
            raise UsageError("encode_batch takes a list of texts; pass a single one to encode")
        chosen = check_indices(indices, len(texts))
        draw = Draw("dropout", dropout, seed, epoch)
        special = self.special_states(allowed_special, disallowed_special)
        ids, offsets = self._native.ids.encode_batch(texts, special, chosen, draw, worker_count(num_workers))
        return numpy.frombuffer(ids, numpy.uint32), numpy.frombuffer(offsets, numpy.int64)

    def decode_bytes(self, ids: Ids) -> bytes:
        """Return the text of ids as bytes: any ids below ``n_vocab``, in any order; padding has no bytes.

        Raises MTScaffoldError for an id out of range, with its position.

        >>> BPE(b"#version: 0.3 bytes gpt2\\na n\\nb an\\n").decode_bytes([257, 256, 97])
        b'banana'
        """
        return self._native.ids.decode(ids)

    def decode(self, ids: Ids, errors: str = "replace") -> str:
        """Return the text of ids; ``errors``, as for ``bytes.decode``, is for bytes that are not UTF-8.

        Raises as ``decode_bytes`` does; with ``errors="strict"`` UnicodeDecodeError too.
        """
        return self._native.ids.decode(ids).decode("utf-8", errors)

    def decode_stream(self, ids: Iterable[int], errors: str = "replace") -> Iterator[str]:
        """Return an iterator over the text of ids that arrive one by one, such as those that a model samples.

        It yields text as soon as it is certain: bytes that are only a part of a character wait for the rest.
        Concatenated, the texts are ``decode(ids)``. errors: as for ``bytes.decode``. Raises as ``decode_bytes`` does.

        >>> from mt_scaffold import BPE
        >>> bpe = BPE(b"#version: 0.3 bytes gpt2\\na n\\nb an\\n")
        >>> list(bpe.decode_stream([0xC3, 0xA4, 257]))
        ['ä', 'ban']
        """
        return _decoded_pieces(IncrementalDecoder(self, errors), ids)

    def decode_with_offsets(self, ids: Ids) -> tuple[str, list[int]]:
        """Return the text of ids, and for each the position of the first character that holds a byte of it.

        Bytes that are not UTF-8 become U+FFFD as in ``decode``. An id without bytes has the position of the next byte.

        >>> BPE(b"#version: 0.3 bytes gpt2\\na n\\nb an\\n").decode_with_offsets([257, 256, 97])
        ('banana', [0, 3, 5])
        """
        data, starts = self._native.ids.decode_with_starts(ids)
        if data.isascii():
            return data.decode("ascii"), starts
        text, characters = _characters(data)
        characters.append(len(text))
        return text, [characters[start] for start in starts]

    def special_states(self, allowed: Some, disallowed: Some) -> bytes:
        """Return the treatment of each special token, a byte each (``Special``), as the core takes it."""
        special = self._native.special
        if not special:
            _check_names(allowed, {})
            _check_names(disallowed, {})
            return b""
        if not allowed and disallowed == "all":
            return bytes([Special.REFUSED]) * len(special)
        taken = self.special_tokens if allowed == "all" else frozenset(_check_names(allowed, self.special_tokens))
        if disallowed == "all":
            return bytes(Special.ALLOWED if token in taken else Special.REFUSED for token in special)
        refused = frozenset(_check_names(disallowed, self.special_tokens))
        return bytes(
            Special.REFUSED if each in refused else Special.ALLOWED if each in taken else Special.TEXT
            for each in special
        )


class IncrementalDecoder:
    """Decodes ids that arrive one by one or several at a time, without ever returning a part of a character.

    bpe: codes with a pre-tokeniser. errors: for bytes that are not UTF-8, as for ``bytes.decode``.

    >>> from mt_scaffold import BPE
    >>> decoder = IncrementalDecoder(BPE(b"#version: 0.3 bytes gpt2\\na n\\nb an\\n"))
    >>> decoder.decode([0xC3]), decoder.decode([0xA4, 257])
    ('', 'äban')
    """

    def __init__(self, bpe: TokenIds, errors: str = "replace") -> None:
        self._bpe = bpe
        in_text = () if bpe.numbering is None else bpe.numbering.after_prefix
        self._special = {number for token, number in bpe.special_tokens.items() if token not in in_text}
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors)
        # The first id of the text: the bytes of the next depend on whether there is one.
        self._first: list[int] = []

    def decode(self, ids: Ids, final: bool = False) -> str:
        """Return the text that has become certain; final: no ids follow. Raises as ``BPE.decode_bytes`` does."""
        given = [operator.index(number) for number in ids]
        before = self._first
        data = self._bpe.decode_bytes([*before, *given])[len(self._bpe.decode_bytes(before)) :]
        tokens = self._bpe.tokens  # those of padding are empty
        self._first = before or [number for number in given if tokens[number] and number not in self._special][:1]
        text = self._decoder.decode(data, final)
        if final:
            self._first = []
            self._decoder.reset()
        return text


def _decoded_pieces(decoder: IncrementalDecoder, ids: Iterable[int]) -> Iterator[str]:
    """Yield the text of ids as it becomes certain, never an empty string; at their end also an incomplete character."""
    for number in ids:
        if text := decoder.decode([number]):
            yield text
    if text := decoder.decode([], final=True):
        yield text


def _check_names(tokens: Some, known: Collection[str]) -> Collection[str]:
    if tokens == "all":
        return tokens
    if isinstance(tokens, str):
        raise UsageError(f"special tokens are a set of them, or 'all', not the string '{tokens}'")
    unknown = [token for token in tokens if token not in known]
    if unknown:
        raise UsageError(f"'{unknown[0]}' is not a special token; pass special_tokens=[...] to BPE")
    return tokens


def check_special_tokens(tokens: Iterable[str]) -> list[str]:
    """Return special tokens as a list; UsageError for an empty, a repeated or a malformed one."""
    if isinstance(tokens, str):
        raise UsageError(f"special_tokens takes a list of tokens, not the string '{tokens}'")
    listed = list(tokens)
    seen: set[str] = set()
    for number, token in enumerate(listed):
        if not isinstance(token, str):
            raise UsageError(f"special tokens are strings, not a {type(token).__name__}: {token!r}")
        if not token:
            raise UsageError(f"special token {number + 1} is empty")
        if token in seen:
            raise UsageError(f"duplicate special token '{token}'")
        seen.add(token)
        try:
            token.encode("utf-8")
        except UnicodeEncodeError:
            raise UsageError(f"the special token {token!a} holds a lone surrogate; remove it") from None
    return listed


def _characters(data: bytes) -> tuple[str, list[int]]:
    """Return the text, with U+FFFD for what is not UTF-8, and the position of each byte's character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    parts, characters, length = [], [], 0
    for byte in data:
        part = decoder.decode(bytes((byte,)))
        pending = bool(decoder.getstate()[0])
        parts.append(part)
        length += len(part)
        characters.append(length - (not pending))
    parts.append(decoder.decode(b"", final=True))
    return "".join(parts), characters
