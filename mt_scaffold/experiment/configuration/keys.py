"""The keys of a configuration, as its dataclasses have them."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from mt_scaffold.experiment.configuration import Config
from mt_scaffold.experiment.configuration.language_model import LanguageModelConfig
from mt_scaffold.experiment.runtime.schema import in_words


class Key(NamedTuple):
    """A key in a section ("" at the top), with its type, limits (``bounds``) and default (MISSING if required)."""

    section: str
    name: str
    kind: Any
    limits: Mapping[str, Any]
    default: Any


def keys_of(config: type) -> Iterator[Key]:
    """Yield the keys of a configuration, section by section; those of a type that several keys have only once."""
    waiting, places = [("", config)], {config}
    for section, kind in waiting:
        hints = typing.get_type_hints(kind)
        for field in dataclasses.fields(kind):
            name = str(field.metadata.get("key", field.name))
            for inner, suffix in _dataclasses_in(hints[field.name]):
                if inner not in places:
                    places.add(inner)
                    waiting.append((f"{section}.{name}{suffix}".lstrip("."), inner))
            default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
            yield Key(section, name, hints[field.name], field.metadata, default)


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


def _dataclasses_in(kind: Any, suffix: str = "") -> Iterator[tuple[type, str]]:
    """Yield the dataclasses in a type, each with the part of its path that follows the key."""
    if dataclasses.is_dataclass(kind):
        yield typing.cast(type, kind), suffix
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (dict, list):
        yield from _dataclasses_in(inner[-1], f"{suffix}{'.NAME' if origin is dict else '[]'}")
    elif inner and origin is not Literal:
        for each in inner:
            yield from _dataclasses_in(each, suffix)
