"""A language model with the codes of its data folder: text → ids → log-probabilities of the next token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.experiment.binarise.byte_vocabulary import FIRST_ID, Vocabulary
from mt_scaffold.experiment.binarise.data_folder import codes_of, read_documents_folder
from mt_scaffold.experiment.binarise.dictionary import END_ID
from mt_scaffold.experiment.inference.language_model import LanguageModel, load_model

if TYPE_CHECKING:
    import torch


@dataclass
class _State:
    """What a model keeps of the tokens it has read, and how many those are."""

    read: int = 0
    incremental: dict[str, Any] = field(default_factory=dict)


class ScoringModel:
    """A model and its vocabulary, to score and to continue texts.

    checkpoint: fairseq's. data: a folder of ``binarise_documents`` with its dictionary and codes. gpus: as for
    ``load_model``, whose errors are raised.
    """

    def __init__(self, checkpoint: PathLike, data: PathLike, gpus: int = 0) -> None:
        self.model: LanguageModel = load_model(checkpoint, data, read_documents_folder(data), gpus)
        self.vocabulary = Vocabulary(codes_of(data))
        self._decoder = self.model.model.decoder

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without the end of a document."""
        ids, _ = self.vocabulary.encode([text.encode("utf-8", "surrogatepass")], num_workers=1)
        found: list[int] = ids[:-1].tolist()
        return found

    def decode(self, ids: Sequence[int], context: Sequence[int] = ()) -> str:
        """Return the text of ids that follow ``context``; bytes that are not UTF-8 become U+FFFD."""
        before = len(self.vocabulary.decode(context))
        return self.vocabulary.decode([*context, *ids])[before:].decode("utf-8", "replace")

    def features(self, rows: Sequence[Sequence[int]]) -> list[torch.Tensor]:
        """Return for each row of ids what the model computes at its positions, before the output layer.

        Each is positions × dimensions, with as many positions as the longest row has.
        """
        import torch

        # No position looks at a later one, so that any token does to fill up shorter rows.
        padded = torch.full((len(rows), max(map(len, rows))), END_ID)
        for number, row in enumerate(rows):
            padded[number, : len(row)] = torch.tensor(row)
        with torch.no_grad():
            return list(self._decoder(padded.to(self.model.device), features_only=True)[0])

    def log_probabilities(self, features: torch.Tensor) -> torch.Tensor:
        """Return the natural logarithms of the probabilities of the next token, in fp32.

        features: positions × dimensions. The result is positions × symbols of the dictionary.
        """
        import torch

        with torch.no_grad():
            output = self._decoder.output_layer(features[None]).float()
            scores: torch.Tensor = self._decoder.get_normalized_probs((output, None), True)
        return scores[0]

    def new_state(self) -> _State:
        """Return the state of a model that has read nothing."""
        return _State()

    def next_tokens(self, tokens: Sequence[int], state: _State) -> list[int]:
        """Read one more token of each row, and return the likeliest of those that stand for text or its end."""
        import torch

        state.read += 1
        # fairseq looks at the last column, and counts the others.
        read = torch.zeros((len(tokens), state.read), dtype=torch.long)
        read[:, -1] = torch.tensor(tokens)
        with torch.no_grad():
            features = self._decoder(
                read.to(self.model.device), incremental_state=state.incremental, features_only=True
            )[0]
            scores = self.log_probabilities(features[:, -1])
        scores[:, FIRST_ID + len(self.vocabulary.tokens) :] = -torch.inf
        scores[:, [special for special in range(FIRST_ID) if special != END_ID]] = -torch.inf
        return [int(number) for number in scores.argmax(dim=1)]
