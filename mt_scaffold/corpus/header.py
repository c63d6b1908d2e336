"""The header of codes files and of count files: the kind of symbols, and how text becomes words before merging."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mt_scaffold.corpus.pretokenise import Pretokeniser


class CodesHeader(NamedTuple):
    """The first line of a codes file: the kind of its symbols, how text becomes words, and the kind of merging.

    symbols: "characters" (code points) or "bytes".
    pretokeniser: "spaces" for words between spaces, the last symbol of each with ``</w>``; "gpt2", "cl100k", "o200k",
        "metaspace", "metaspace-runs" or a regular expression for symbols that are bytes, without a mark at the end of
        a word.
    split_digits: whether every number character is a separate word, whatever the pre-tokeniser does.
    picky: whether the codes are of PickyBPE: merges and splits are applied in the order of the file.
    """

    symbols: str = "characters"
    pretokeniser: str = "spaces"
    split_digits: bool = False
    picky: bool = False

    @property
    def bytes(self) -> bool:
        """Whether symbols are bytes."""
        return self.symbols == "bytes"

    @property
    def end_of_word(self) -> bool:
        """Whether the last symbol of a word carries ``</w>``."""
        return self.pretokeniser == "spaces"

    @classmethod
    def of_options(
        cls, pretokenise: str = "spaces", split_digits: bool = False, byte_level: bool = False
    ) -> CodesHeader:
        """Return the header of codes that are learned with these options, which are those of ``learn_bpe``.

        Raises UsageError for options that exclude each other, and for what is neither a pre-tokeniser nor a pattern.
        """
        header = cls("bytes" if byte_level or pretokenise != "spaces" else "characters", pretokenise, split_digits)
        header.make_pretokeniser()  # report errors now
        return header

    def make_pretokeniser(self) -> Pretokeniser | None:
        """Return the pre-tokeniser; None for words between spaces. Raises as Pretokeniser does."""
        if self.end_of_word and not self.split_digits:
            return None
        from mt_scaffold.corpus.pretokenise import pretokeniser_of  # takes longer than segmenting a short text

        return pretokeniser_of(self.pretokeniser, self.split_digits)

    @property
    def of_words(self) -> CodesHeader:
        """The header without the algorithm: the same for all codes with the same words and symbols."""
        return self._replace(picky=False)

    @property
    def for_core(self) -> tuple[bool, str, bool]:
        """The header without the algorithm, as the native core takes it."""
        return self.bytes, self.pretokeniser, self.split_digits


# The header of subword-nmt's format 0.2.
CHARACTERS = CodesHeader()
