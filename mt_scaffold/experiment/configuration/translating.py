"""The section translate of an experiment configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

from mt_scaffold.experiment.configuration.training import OPTION, OPTION_SAYS
from mt_scaffold.experiment.runtime.schema import OptionValue, bounds


@dataclass(frozen=True)
class Translate:
    """How test sets are translated: plain fairseq-generate options, as in Train."""

    options: dict[str, OptionValue] = field(
        default_factory=dict, metadata=bounds(key_pattern=OPTION, key_pattern_says=OPTION_SAYS)
    )
