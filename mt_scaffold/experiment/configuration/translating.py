"""The section translate of an experiment configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mt_scaffold.experiment.configuration.training import OPTION, OPTION_SAYS
from mt_scaffold.experiment.runtime.schema import OptionValue, WrongValue, bounds

Engine = Literal["fairseq", "ctranslate2"]
# The types in which CTranslate2 stores parameters.
Quantization = Literal[
    "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16", "float32"
]


@dataclass(frozen=True)
class Translate:
    """How test sets are translated: the engine, and plain fairseq-generate options, as in Train.

    ``engine: ctranslate2`` converts each model and translates with CTranslate2, which stores parameters in the type
    ``quantization`` (default: float32). Options that it does not support are refused.
    """

    engine: Engine = "fairseq"
    quantization: Quantization | None = None
    options: dict[str, OptionValue] = field(
        default_factory=dict, metadata=bounds(key_pattern=OPTION, key_pattern_says=OPTION_SAYS)
    )


def check_translating(translate: Translate) -> None:
    """Raise WrongValue if values of the section contradict each other."""
    if translate.quantization is not None and translate.engine != "ctranslate2":
        raise WrongValue("translate.quantization", "only for engine: ctranslate2; add that, or remove this")
