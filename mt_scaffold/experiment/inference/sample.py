"""A language model → text sampled from it, from the start of a document or after a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.byte_vocabulary import FIRST_ID, Vocabulary
from mt_scaffold.experiment.binarise.data_folder import codes_of, read_documents_folder
from mt_scaffold.experiment.binarise.dictionary import END_ID
from mt_scaffold.experiment.inference.language_model import LanguageModel, load_model
from mt_scaffold.options import refuse_text


@dataclass(frozen=True)
class Sample:
    """A sampled text. text: after the prompt. tokens: of that text. ended: whether the model ended the document."""

    prompt: str
    text: str
    tokens: int
    ended: bool


@dataclass(frozen=True)
class Sampling:
    """How each token is drawn.

    temperature: divides the logits; 0 takes the likeliest token. top_k: draw only from that many of the likeliest (0:
    all). top_p: draw only from the fewest of the likeliest whose probabilities sum to at least this (Holtzman et al.
    2020).
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def check(self) -> None:
        """Raise UsageError for a value out of range."""
        if self.temperature < 0:
            raise UsageError(f"--temperature {self.temperature}: must be 0 or more")
        if self.top_k < 0:
            raise UsageError(f"--top-k {self.top_k}: must be 1 or more, or 0 for all")
        if not 0 < self.top_p <= 1:
            raise UsageError(f"--top-p {self.top_p}: must be more than 0 and at most 1")


def format_samples(samples: Sequence[Sample], number: int = 1) -> str:
    """Return samples for people: each prompt with its continuation; ``number`` of each, separated by headings."""
    blocks = []
    for place, each in enumerate(samples):
        heading = f"--- prompt {place // number + 1}, sample {place % number + 1}\n"
        blocks.append((heading if len(samples) > 1 else "") + f"{each.prompt}{each.text}\n")
    return "".join(blocks)


def sample(
    checkpoint: PathLike,
    data: PathLike,
    prompts: Sequence[str] = ("",),
    *,
    codes: PathLike | None = None,
    length: int = 100,
    number: int = 1,
    sampling: Sampling = Sampling(),
    seed: int = 1,
    gpus: int = 0,
) -> list[Sample]:
    """Continue each prompt ``number`` times, by at most ``length`` tokens; an empty one starts a document.

    data: a folder of ``binarise_documents``, with the dictionary of the model. codes: those it was made with; default:
    the copy in it. The random numbers of each sample depend only on ``seed``, the prompt's place and the sample's
    number. Beyond its positions, the model sees only the last tokens, half of the positions or more.

    Returns the samples of the first prompt, then those of the next. Raises MTScaffoldError as ``load_model`` does, and
    if the codes are not those of the folder; UsageError for options out of range.
    """
    refuse_text(prompts=prompts)
    sampling.check()
    for name, value in (("--length", length), ("--number", number)):
        if value < 1:
            raise UsageError(f"{name} {value}: must be 1 or more")
    binarised = read_documents_folder(data)
    vocabulary = Vocabulary(codes_of(data) if codes is None else codes)
    if vocabulary.digest != binarised.vocabulary:
        raise MTScaffoldError(f"{vocabulary.codes}: not the codes that {data} was binarised with; give those")
    model = load_model(checkpoint, data, binarised, gpus)
    samples = []
    for place, prompt in enumerate(prompts):
        read = vocabulary.encode([prompt.encode("utf-8")])[0][:-1].tolist()
        for which in range(number):
            written = _write(model, vocabulary, read, length, sampling, [seed, place, which])
            ended = written[-1] == END_ID
            text = vocabulary.decode([*read, *written])[len(vocabulary.decode(read)) :]
            samples.append(Sample(prompt, text.decode("utf-8", "replace"), len(written) - ended, ended))
    return samples


def _write(
    model: LanguageModel, vocabulary: Vocabulary, read: list[int], length: int, sampling: Sampling, seeds: list[int]
) -> list[int]:
    """Return the ids sampled after ``read``, at most ``length``, up to and including ``</s>``."""
    import numpy
    import torch

    random = numpy.random.default_rng([each % 2**64 for each in seeds])
    allowed = torch.zeros(model.symbols, dtype=torch.bool, device=model.device)
    allowed[END_ID] = True
    allowed[FIRST_ID : FIRST_ID + len(vocabulary.tokens)] = True
    ids = [END_ID, *read]
    begin = max(0, len(ids) - model.positions)
    state: dict[Any, Any] = {}
    with torch.inference_mode():
        for _ in range(length):
            if len(ids) - begin > model.positions:
                begin, state = len(ids) - max(1, model.positions // 2), {}
            logits = _next_logits(model, ids[begin:], state)
            logits[~allowed] = -torch.inf
            ids.append(_draw(logits.double().cpu().numpy(), sampling, random))
            if ids[-1] == END_ID:
                break
    return ids[1 + len(read) :]


def _next_logits(model: LanguageModel, ids: list[int], state: dict[Any, Any]) -> Any:
    """Return the logits of the token after ``ids``; ``state`` caches the computation for earlier ones."""
    import torch

    decoder = model.model.decoder
    tokens = torch.tensor([ids], device=model.device)
    if not state and len(ids) > 1:
        # fairseq fills a state one position at a time, so the prompt is read token by token.
        for end in range(1, len(ids)):
            decoder(tokens[:, :end], incremental_state=state, features_only=True)
    features = decoder(tokens, incremental_state=state, features_only=True)[0][:, -1:]
    if getattr(decoder, "adaptive_softmax", None) is not None:
        return decoder.adaptive_softmax.get_log_prob(features, None)[0, -1]
    return decoder.output_layer(features)[0, -1].float()


def _draw(logits: Any, sampling: Sampling, random: Any) -> int:
    """Draw an id from logits (float64); those of minus infinity are never drawn."""
    import numpy

    if sampling.temperature == 0:
        return int(logits.argmax())
    order = numpy.argsort(-logits, kind="stable")
    order = order[numpy.isfinite(logits[order])]
    if sampling.top_k:
        order = order[: sampling.top_k]
    chosen = logits[order] / sampling.temperature
    weights = numpy.exp(chosen - chosen[0])
    weights /= weights.sum()
    if sampling.top_p < 1:
        kept = int(numpy.searchsorted(numpy.cumsum(weights), sampling.top_p)) + 1
        order, weights = order[:kept], weights[:kept] / weights[:kept].sum()
    drawn = int(numpy.searchsorted(numpy.cumsum(weights), random.random(), side="right"))
    return int(order[min(drawn, len(order) - 1)])
