"""The core's objects of a ``BPE``, which cannot be pickled or copied, only made again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mt_scaffold import _core
from mt_scaffold.cached import cached_property
from mt_scaffold.codes import Codes
from mt_scaffold.corpus.glossaries import GlossaryIsolator
from mt_scaffold.corpus.text import as_bytes
from mt_scaffold.errors import MTScaffoldError, UsageError

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from mt_scaffold.segment.numbering import Numbering


class Native:
    """The core's objects with these codes and settings, and the values that are computed from them once.

    The arguments are those of ``BPE``, as it checks them.
    """

    def __init__(
        self,
        codes: Codes,
        merges: int,
        separator: str,
        vocab: Sequence[str] | None,
        glossaries: Sequence[str] | None,
        special_tokens: Sequence[str],
        pad_vocab_to: int,
        numbering: Numbering | None,
    ) -> None:
        self._codes, self._merges = codes, merges
        self._given_special, self._multiple, self._given_numbering = special_tokens, pad_vocab_to, numbering
        vocabulary = None if vocab is None else {as_bytes(subword) for subword in vocab}
        self.segmenter = _core.Segmenter(codes.text, separator, codes.name, merges, vocabulary)
        self.isolate: GlossaryIsolator[str] | GlossaryIsolator[bytes] | None = None
        if glossaries and codes.header.bytes:
            self.isolate = GlossaryIsolator([as_bytes(glossary) for glossary in glossaries])
        elif glossaries:
            self.isolate = GlossaryIsolator(glossaries)
        pretokeniser = codes.header.make_pretokeniser()
        self.pretokeniser = None if pretokeniser is None else pretokeniser.core
        self.applier = _core.Applier(self.segmenter, self.isolate, pretokeniser=self.pretokeniser)
        # Looked up once: a call for one sentence takes a microsecond.
        self.spaced, self.segment_plain = codes.header.end_of_word, self.applier.segment_plain
        # How imported codes prepare text.
        self.spaces = None if self._imported is None else self._imported.spaces

    @cached_property
    def special(self) -> list[str]:
        """The special tokens: those of imported codes, then those given."""
        numbered = {} if self.numbering is None else self.numbering.special
        return list(dict.fromkeys([*numbered, *self._given_special]))

    @cached_property
    def _imported(self) -> Numbering | None:
        if self._codes.header.end_of_word:
            return None
        if self._given_numbering is not None or self._codes.manifest is None:
            return self._given_numbering
        from mt_scaffold.segment.numbering import numbering_of  # takes longer than segmenting a short text

        return numbering_of(self._codes)

    @property
    def numbering(self) -> Numbering | None:
        """The ids of imported codes; None for others, whose tokens are numbered by rank."""
        if self._imported is not None and self._merges != -1:
            raise UsageError(f"{self._codes.name}: imported codes have ids for all of their merges; omit --merges")
        return self._imported

    @cached_property
    def ids(self) -> _core.Ids:
        """The core's encoder and decoder."""
        codes = self._codes
        if codes.header.end_of_word:
            raise MTScaffoldError(
                f"{codes.name}: only codes of bytes after a pre-tokeniser have ids; learn them with learn-bpe "
                "--pretokenise"
            )
        assert self.pretokeniser is not None
        numbering = self.numbering
        if numbering is None:
            return _core.Ids(self.segmenter, self.pretokeniser, self.special, self._multiple)
        special = dict(numbering.special)
        for token in self.special:
            special.setdefault(token, numbering.n_vocab + len(special) - len(numbering.special))
        return _core.Ids(self.segmenter, self.pretokeniser, self.special, self._multiple, **numbering.for_core(special))

    @cached_property
    def tokens(self) -> list[bytes]:
        """The bytes of each id."""
        return self.ids.tokens()

    @cached_property
    def special_tokens(self) -> dict[str, int]:
        """The id of each special token."""
        return dict(zip(self.special, self.ids.special_ids, strict=True))

    @cached_property
    def encode_plain(self) -> Callable[[str | bytes], list[int]]:
        """The core's function for one text, without special tokens and dropout."""
        return self.ids.encode_plain

    @cached_property
    def encode_plain_array(self) -> Callable[[str | bytes], NDArray[numpy.uint32]]:
        """The same, which returns an array."""
        return self.ids.encode_plain_array
