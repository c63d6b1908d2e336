"""The options of fairseq-generate's beam search, for all engines that search as it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.runtime.schema import OptionValue, WrongValue, bounds, build

# Options that change no translation: with a value, and flags.
VALUES_WITHOUT_EFFECT = ("num-workers", "data-buffer-size", "log-format", "log-interval")
FLAGS_WITHOUT_EFFECT = ("no-progress-bar", "skip-invalid-size-inputs-valid-test")
# With BeamSearch's options alone, the last two change no translation either.
_WITHOUT_EFFECT = {*VALUES_WITHOUT_EFFECT, *FLAGS_WITHOUT_EFFECT, "no-early-stop", "max-target-positions"}
# fairseq-generate's --max-tokens if neither that nor --batch-size is given.
BATCH_TOKENS = 12000


@dataclass(frozen=True)
class BeamSearch:
    """Options of fairseq-generate's beam search, with its names and defaults.

    A translation has at most max_len_a × (subwords of the source, with ``</s>``) + max_len_b subwords, and at least
    min_len. lenpen: the exponent of the length that a score is divided by; unused if unnormalized. max_tokens,
    batch_size: limits of a batch, in subwords of the source, padding included, and in sentences. fp16: on a GPU only.
    """

    beam: int = field(default=5, metadata=bounds(least=1))
    lenpen: float = 1.0
    unkpen: float = 0.0
    max_len_a: float = field(default=0.0, metadata={**bounds(least=0), "key": "max-len-a"})
    max_len_b: int = field(default=200, metadata={**bounds(least=0), "key": "max-len-b"})
    min_len: int = field(default=1, metadata={**bounds(least=0), "key": "min-len"})
    unnormalized: bool = False
    temperature: float = 1.0
    no_repeat_ngram_size: int = field(default=0, metadata={**bounds(least=0), "key": "no-repeat-ngram-size"})
    max_source_positions: int = field(default=1024, metadata={**bounds(least=2), "key": "max-source-positions"})
    max_tokens: int | None = field(default=None, metadata={**bounds(least=1), "key": "max-tokens"})
    batch_size: int | None = field(default=None, metadata={**bounds(least=1), "key": "batch-size"})
    fp16: bool = False


def beam_search(options: Mapping[str, OptionValue]) -> BeamSearch:
    """Return the beam search that options of fairseq-generate describe.

    Raises UsageError for an option that a packed model does not support, such as sampling, or for a wrong value.
    """
    chosen = {name: value for name, value in options.items() if name not in _WITHOUT_EFFECT and value is not False}
    if "max-sentences" in chosen:
        chosen["batch-size"] = chosen.pop("max-sentences")
    try:
        search: BeamSearch = build(BeamSearch, chosen, "translate.options")
    except WrongValue as error:
        raise UsageError(f"{error}; a packed model translates by beam search with these options only") from None
    return search
