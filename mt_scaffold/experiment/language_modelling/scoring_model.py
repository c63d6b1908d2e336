"""A checkpoint with the codes of its data folder: text → ids → log-probabilities of the next token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mt_scaffold.experiment.configuration.systems import SPECIAL_SYMBOLS
from mt_scaffold.experiment.dictionary import END_ID

if TYPE_CHECKING:
    import torch

    from mt_scaffold.experiment.language_modelling.vocabulary import Vocabulary


_PADDING_ID = SPECIAL_SYMBOLS.index("<pad>")


@dataclass
class _State:
    """What a model keeps of the tokens it has read, and how many those are."""

    read: int = 0
    incremental: dict[str, Any] = field(default_factory=dict)


class ScoringModel:
    """A model of fairseq's that predicts the next token, without gradients and dropout.

    model: a FairseqLanguageModel. vocabulary: the tokens that it was trained on. max_positions: tokens that it reads
    at most, the first ``</s>`` included. symbols: of the dictionary.
    """

    end = END_ID

    def __init__(
        self, model: Any, vocabulary: Vocabulary, max_positions: int, symbols: int, device: torch.device
    ) -> None:
        self.vocabulary, self.max_positions, self.symbols, self.device = vocabulary, max_positions, symbols, device
        self._decoder = model.eval().to(device).decoder

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without the end of a document."""
        ids, _ = self.vocabulary.encode([text.encode("utf-8", "surrogatepass")])
        return [int(number) for number in ids[:-1]]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids; bytes that are not UTF-8 become U+FFFD."""
        return self.vocabulary.decode(ids).decode("utf-8", "replace")

    def features(self, rows: Sequence[Sequence[int]]) -> list[torch.Tensor]:
        """Return for each row of ids what the model computes at its positions, before the output layer.

        Each is positions × dimensions, with as many positions as the longest row has.
        """
        import torch

        # No position looks at a later one, so that any token does to fill up shorter rows.
        padded = torch.full((len(rows), max(map(len, rows))), self.end)
        for number, row in enumerate(rows):
            padded[number, : len(row)] = torch.tensor(row)
        with torch.no_grad():
            return list(self._decoder.extract_features(padded.to(self.device), None)[0])

    def log_probabilities(self, features: torch.Tensor) -> torch.Tensor:
        """Return the natural logarithms of the probabilities of the next token, in fp32.

        features: positions × dimensions. The result is positions × symbols of the dictionary.
        """
        import torch

        with torch.no_grad():
            output = self._decoder.output_layer(features[None])
            scores: torch.Tensor = self._decoder.get_normalized_probs((output, None), True)
        return scores[0].float()

    def new_state(self) -> _State:
        """Return the state of a model that has read nothing."""
        return _State()

    def next_tokens(self, tokens: Sequence[int], state: _State) -> list[int]:
        """Read one more token of each row, and return the likeliest next ones; never padding."""
        import torch

        state.read += 1
        # fairseq looks at the last column, and counts the others.
        read = torch.zeros((len(tokens), state.read), dtype=torch.long)
        read[:, -1] = torch.tensor(tokens)
        with torch.no_grad():
            features, _ = self._decoder.extract_features(
                read.to(self.device), None, incremental_state=state.incremental
            )
            scores = self._decoder.get_normalized_probs((self._decoder.output_layer(features), None), True)[:, -1]
            scores[:, _PADDING_ID] = -torch.inf
            return [int(number) for number in scores.argmax(dim=1)]
