"""mt-scaffold keys."""

from __future__ import annotations

import dataclasses

from mt_scaffold.experiment.configuration import Config
from mt_scaffold.experiment.configuration.keys import in_words, keys_of
from mt_scaffold.experiment.configuration.language_model import LanguageModelConfig


def keys(documents: bool = False) -> str:
    """Return every key of a configuration, one per line, with its type and its default.

    documents: those of language models, not of translation
    """
    lines = []
    for section, name, kind, limits, default in keys_of(LanguageModelConfig if documents else Config):
        least = limits.get("least")
        line = f"{section}.{name}: ".lstrip(".") + in_words(kind) + (f", {least} or more" if least is not None else "")
        if default is dataclasses.MISSING:
            line += "; required"
        elif not (default is None or default == "" or dataclasses.is_dataclass(default)):
            line += f"; default {str(default).lower() if isinstance(default, bool) else default}"
        lines.append(line)
    return "\n".join(lines)
