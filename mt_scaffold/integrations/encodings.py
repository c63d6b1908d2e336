"""The word and the characters of each token of a text, as ``BatchEncoding`` of transformers wants them per row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from mt_scaffold.cached import cached_property

# The characters of each token, and its word.
Located = tuple[list[tuple[int, int]], list[int | None]]


class Encoding:
    """One row, with the interface of ``tokenizers.Encoding``; each list has an item per token.

    n_sequences: 2 for a pair. sequence_ids: 0 or 1 for a token of the first or second text, None outside the texts
    (special tokens around them, padding). locate: returns offsets, the character span of each token in its text, or
    (0, 0); and word_ids, the number of its word in its text, or None. It is called once either is first needed.
    """

    def __init__(
        self,
        ids: list[int],
        tokens: list[str],
        n_sequences: int,
        sequence_ids: list[int | None],
        type_ids: list[int],
        special_tokens_mask: list[int],
        attention_mask: list[int],
        locate: Callable[[], Located],
    ) -> None:
        self.ids, self.tokens, self.n_sequences, self.sequence_ids = ids, tokens, n_sequences, sequence_ids
        self.type_ids, self.special_tokens_mask, self.attention_mask = type_ids, special_tokens_mask, attention_mask
        self._locate: Callable[[], Located] | None = locate

    @cached_property
    def _located(self) -> Located:
        assert self._locate is not None
        return self._locate()

    def __getstate__(self) -> dict[str, object]:
        # So that a worker process does not send the tokenizer along.
        return {**self.__dict__, "_located": self._located, "_locate": None}

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """The character span of each token."""
        return self._located[0]

    @property
    def word_ids(self) -> list[int | None]:
        """The word of each token."""
        return self._located[1]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def words(self) -> list[int | None]:
        """The same as ``word_ids``."""
        return self.word_ids

    @property
    def overflowing(self) -> list[Encoding]:
        """Always empty: overflowing tokens are in separate rows."""
        return []

    def token_to_sequence(self, token: int) -> int | None:
        """Return the sequence of a token; None outside the texts."""
        return self.sequence_ids[token] if token < len(self) else None

    def token_to_word(self, token: int) -> int | None:
        """Return the number of a token's word in its sequence."""
        return self.word_ids[token] if token < len(self) else None

    def token_to_chars(self, token: int) -> tuple[int, int] | None:
        """Return the character span of a token in its sequence."""
        return None if self.token_to_sequence(token) is None else self.offsets[token]

    def char_to_token(self, place: int, sequence: int = 0) -> int | None:
        """Return the first token that contains the character; None for spaces between words."""
        for token in self._of(sequence):
            begin, end = self.offsets[token]
            if begin <= place < end:
                return token
        return None

    def char_to_word(self, place: int, sequence: int = 0) -> int | None:
        """Return the word that contains the character."""
        token = self.char_to_token(place, sequence)
        return None if token is None else self.word_ids[token]

    def word_to_tokens(self, word: int, sequence: int = 0) -> tuple[int, int] | None:
        """Return the token span of a word, first and one past the last; None if the row has no token of the word."""
        tokens = [token for token in self._of(sequence) if self.word_ids[token] == word]
        return (tokens[0], tokens[-1] + 1) if tokens else None

    def word_to_chars(self, word: int, sequence: int = 0) -> tuple[int, int] | None:
        """Return the character span of a word."""
        tokens = self.word_to_tokens(word, sequence)
        return None if tokens is None else (self.offsets[tokens[0]][0], self.offsets[tokens[1] - 1][1])

    def _of(self, sequence: int) -> Iterator[int]:
        return (token for token, each in enumerate(self.sequence_ids) if each == sequence)


class Encodings(Sequence[Encoding]):
    """The encodings of a batch, each made on first access: most programs use only the ids."""

    def __init__(self, count: int, make: Callable[[int], Encoding]) -> None:
        self._made: list[Encoding | None] = [None] * count
        self._make = make

    def __len__(self) -> int:
        return len(self._made)

    @overload
    def __getitem__(self, number: int) -> Encoding: ...
    @overload
    def __getitem__(self, number: slice) -> list[Encoding]: ...
    def __getitem__(self, number: int | slice) -> Encoding | list[Encoding]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        found = self._made[number]
        if found is None:
            found = self._made[number] = self._make(number % len(self))
        return found

    def __reduce__(self) -> tuple[object, ...]:
        return list, (list(self),)
