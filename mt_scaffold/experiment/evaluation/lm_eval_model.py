"""The ``hf`` model of lm-evaluation-harness (``lm_eval``) for checkpoints of fairseq."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from lm_eval.models.huggingface import HFLM

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.inference.export_transformers import export_transformers
from mt_scaffold.experiment.inference.language_model import device_of

_AT_ONCE = 16
_MOST_GENERATED = 256


class HarnessModel(HFLM):  # type: ignore[misc]
    """A language model as the harness runs it, in fp32.

    checkpoint: of an architecture of transformers; it is exported first. data: the folder that it was trained on, or
    one with the same dictionary and codes. batch_size: requests at once. gpus: 1 requires a GPU; with 0, one is used if
    available.

    Unlike ``hf``, it scores a continuation that merges into its context by itself, refuses one that is longer than the
    model's positions (UsageError), starts rolling likelihoods from one ``<|endoftext|>``, not two, and generates at
    most half of the model's positions.
    """

    def __init__(self, checkpoint: PathLike, data: PathLike, batch_size: int | None = None, gpus: int = 0) -> None:
        # Registers our tokenizer.
        import mt_scaffold.integrations.transformers  # noqa: F401

        if batch_size is not None and batch_size < 1:
            raise UsageError(f"the batch size must be a positive number, not {batch_size}")
        device = str(device_of(gpus))
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "model"
            export_transformers(checkpoint, data, folder)
            super().__init__(str(folder), dtype="float32", batch_size=batch_size or _AT_ONCE, device=device)

    @property
    def max_gen_toks(self) -> int:
        """The number of tokens to generate if a task does not set it."""
        return min(_MOST_GENERATED, max(1, int(self.max_length) // 2))

    def _encode_pair(self, context: str, continuation: str) -> tuple[list[int], list[int]]:
        before, after = super()._encode_pair(context, continuation)
        if not after and continuation:
            # Both together have no more tokens than the context alone, which would leave the choice without any.
            return before, self.tok_encode(continuation, add_special_tokens=False)
        return before, after

    def is_cut(self, arguments: Sequence[Any]) -> bool:
        """Return whether the prompt of a request is too long for the model, which then does not read its beginning."""
        if len(arguments) == 1:
            return False  # a rolling likelihood: the text is read in windows
        context, more = arguments[0], arguments[1]
        if isinstance(more, str):
            before, after = self._encode_pair(context, more) if context else ([], [])
            return len(before) + len(after) > int(self.max_length) + 1
        room = int(self.max_length) - int(more.get("max_gen_toks", self.max_gen_toks))
        return len(self.tok_encode(context)) > room

    def _loglikelihood_tokens(
        self, requests: Sequence[tuple[Any, list[int], list[int]]], *rest: Any, **named: Any
    ) -> Any:
        for request, _, after in requests:
            if len(after) > self.max_length:
                raise UsageError(
                    f"a continuation of {len(after)} tokens does not fit into the model's {self.max_length} positions; "
                    f"use a task with shorter ones (it begins {str(request[-1])[:40]!r})"
                )
        return super()._loglikelihood_tokens(requests, *rest, **named)

    def loglikelihood_rolling(self, requests: Any, disable_tqdm: bool = False) -> list[float]:
        """Return the natural logarithm of the probability of each text, without the end of the document."""
        with mock.patch.object(self, "add_bos_token", False):
            found: list[float] = super().loglikelihood_rolling(requests, disable_tqdm)
        return found
