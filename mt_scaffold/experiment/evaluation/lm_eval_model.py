"""A language model of this project as lm-evaluation-harness (``lm_eval``) runs it: likelihoods and greedy generation.

Importing this module registers it there as ``mt_scaffold``, with the model arguments ``checkpoint=...,data=...``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.utils import get_rolling_token_windows

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.binarise.dictionary import END_ID
from mt_scaffold.experiment.evaluation.scoring_model import ScoringModel

# Log-probabilities in memory at once: 256 MB in fp32.
_MOST_LOGITS = 1 << 26
_MOST_GENERATED = 256


@register_model("mt_scaffold")
class HarnessModel(TemplateLM):  # type: ignore[misc]
    """A checkpoint of fairseq's transformer_lm, with the codes and the dictionary in its data folder.

    Every text starts after ``</s>``, as the documents of the training do. A request that is longer than the model's
    positions loses its beginning. A context and its continuation are encoded together, as the harness does for
    Hugging Face's models: the continuation is what follows as many tokens as the context alone has. Its spaces at the
    end count as the continuation's.

    checkpoint: fairseq's. data: the folder that it was trained on, or one with the same dictionary and codes.
    batch_size: requests at once; 16 by default. gpus: 1 insists on a GPU; otherwise one is used where there is one.
    """

    def __init__(
        self,
        checkpoint: PathLike,
        data: PathLike,
        batch_size: int | str | None = None,
        gpus: int = 0,
        device: str | None = None,
        max_batch_size: int | None = None,
    ) -> None:
        super().__init__()
        if device not in (None, "cpu", "cuda"):
            raise UsageError(
                f"device {device}: the model is on the GPU that PyTorch sees first, or on the CPU; omit it"
            )
        self.model = ScoringModel(checkpoint, data, int(gpus) or int(device == "cuda"))
        self.batch_size = _batch_size(batch_size)
        self._device = self.model.model.device

    @property
    def eot_token_id(self) -> int:
        """The end of a document, which is also the beginning of the next."""
        return END_ID

    @property
    def max_length(self) -> int:
        """The positions of the model."""
        return self.model.model.positions

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **options: object) -> list[int]:
        """Return the ids of a text, after that of ``</s>`` unless ``add_special_tokens`` is false."""
        ids = self.model.encode(string)
        return ids if add_special_tokens is False else [self.eot_token_id, *ids]

    def _encode_pair(self, context: str, continuation: str) -> tuple[list[int], list[int]]:
        before, after = super()._encode_pair(context, continuation)
        if not after and continuation:
            # Together they have no more tokens than the context alone: the choice would have no likelihood.
            return before, self.tok_encode(continuation, add_special_tokens=False)
        return before, after

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """Return for each (context, continuation) the natural logarithm of its probability, and whether it is greedy.

        An empty continuation has probability 1.
        """
        pairs = []
        for context, continuation in (request.args for request in requests):
            if context:
                pairs.append(((context, continuation), *self._encode_pair(context, continuation)))
            else:
                ids = self.tok_encode(continuation, add_special_tokens=False)
                pairs.append(((context, continuation), [self.prefix_token_id], ids))
        return self._loglikelihood_tokens(pairs)

    def _loglikelihood_tokens(
        self, requests: Sequence[tuple[Any, list[int], list[int]]], **options: object
    ) -> list[tuple[float, bool]]:
        rows = [(before + after)[-(self.max_length + 1) :] for _, before, after in requests]
        predicted = [min(len(after), self.max_length) for _, _, after in requests]
        for (request, _, after), count in zip(requests, predicted, strict=True):
            if count < len(after):
                raise UsageError(
                    f"a continuation of {len(after)} tokens does not fit into the model's {self.max_length} positions; "
                    f"use a task with shorter ones (it begins {str(request[-1])[:40]!r})"
                )
        found: list[tuple[float, bool]] = [(0.0, True)] * len(rows)
        # The longest first: a batch that does not fit into memory is met at once.
        order = sorted((row for row in range(len(rows)) if predicted[row]), key=lambda row: -len(rows[row]))
        for batch in _batches(order, self.batch_size):
            for row, result in zip(
                batch, self._likelihoods([rows[r] for r in batch], [predicted[r] for r in batch]), strict=True
            ):
                found[row] = result
        for (request, _, _), result in zip(requests, found, strict=True):
            if request is not None:
                self.cache_hook.add_partial("loglikelihood", request, result)
        return found

    def _likelihoods(self, rows: Sequence[list[int]], predicted: Sequence[int]) -> Iterator[tuple[float, bool]]:
        """Yield the likelihood of the last ``predicted`` tokens of each row, given those before them."""
        targets = [row[-count:] for row, count in zip(rows, predicted, strict=True)]
        features = self.model.features([row[:-1] for row in rows])
        for row, target, states in zip(rows, targets, features, strict=True):
            states = states[len(row) - 1 - len(target) : len(row) - 1]
            total, greedy = 0.0, True
            step = max(1, _MOST_LOGITS // self.model.model.symbols)
            for start in range(0, len(target), step):
                scores = self.model.log_probabilities(states[start : start + step])
                wanted = torch.tensor(target[start : start + step], device=scores.device)
                total += scores.gather(1, wanted[:, None]).double().sum().item()
                greedy = greedy and bool((scores.argmax(dim=1) == wanted).all())
            yield total, greedy

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """Return the natural logarithm of the probability of each text after ``</s>``, without the end of the document.

        A text that is longer than the model's positions is cut as the harness cuts it: windows that share only one
        token, the last of them extended to the left to its full length.
        """
        windows, owners = [], []
        for number, (text,) in enumerate(request.args for request in requests):
            ids = self.tok_encode(text, add_special_tokens=False)
            for before, after in get_rolling_token_windows(ids, self.prefix_token_id, self.max_length, 1):
                windows.append((None, before[: len(before) - len(after) + 1], after))
                owners.append(number)
        totals = [0.0] * len(requests)
        for number, (score, _) in zip(owners, self._loglikelihood_tokens(windows), strict=True):
            totals[number] += score
        for request, total in zip(requests, totals, strict=True):
            self.cache_hook.add_partial("loglikelihood_rolling", request.args, total)
        return totals

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Return the greedy continuation of each context, up to the first of its stop strings or the end of a document.

        The request's ``until`` and ``max_gen_toks`` count. The context loses its beginning where the model's positions
        do not hold both. Raises UsageError for a request to sample.
        """
        prepared = [self._generation(*request.args) for request in requests]
        found = [""] * len(requests)
        for batch in _batches(sorted(range(len(prepared)), key=lambda row: -len(prepared[row][0])), self.batch_size):
            for row, text in zip(batch, self._generate([prepared[row] for row in batch]), strict=True):
                found[row] = text
        for request, text in zip(requests, found, strict=True):
            self.cache_hook.add_partial("generate_until", request.args, text)
        return found

    def _generation(self, context: str, options: dict[str, Any]) -> tuple[list[int], int, list[str]]:
        """A context, how many tokens follow it at most, and the strings that end it."""
        if options.get("do_sample") and options.get("temperature", 1):
            raise UsageError(
                "the task asks for samples (do_sample), and this adapter generates greedily; set it to false"
            )
        until = options.get("until") or []
        wanted = int(options.get("max_gen_toks", options.get("max_tokens", _MOST_GENERATED)))
        # A model with few positions keeps half of them for the context.
        most = min(wanted, max(1, self.max_length // 2))
        ids = self.tok_encode(context)[-(self.max_length - most + 1) :]
        return ids, most, [until] if isinstance(until, str) else list(until)

    def _generate(self, rows: Sequence[tuple[list[int], int, list[str]]]) -> list[str]:
        """Generate in step, every row forced along its own context first: no padding comes before a token."""
        texts: list[str | None] = [None] * len(rows)
        tokens = [list(ids) for ids, _, _ in rows]
        state = self.model.new_state()
        for position in itertools.count():
            following = self.model.next_tokens([row[position] for row in tokens], state)
            for number, (context, most, until) in enumerate(rows):
                row = tokens[number]
                if len(row) > position + 1:
                    continue
                # A row that has ended is fed anything, until the last one ends.
                token = self.eot_token_id if texts[number] is not None else following[number]
                row.append(token)
                if texts[number] is None:
                    ended = token == self.eot_token_id
                    text = self.model.decode(row[len(context) : -1 if ended else None], context)
                    cut = min((place for stop in until if stop and (place := text.find(stop)) >= 0), default=None)
                    if ended or cut is not None or len(row) - len(context) >= most:
                        texts[number] = text[:cut]
            if None not in texts:
                break
        return [text or "" for text in texts]


def _batches(order: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(order), size):
        yield order[start : start + size]


def _batch_size(given: int | str | None) -> int:
    """The requests at once; the harness' ``auto`` is 16."""
    try:
        size = 16 if given is None or str(given).startswith("auto") else int(given)
    except ValueError:
        size = 0
    if size < 1:
        raise UsageError(f"the batch size must be a positive number, not {given}")
    return size
