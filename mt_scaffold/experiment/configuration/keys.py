"""The keys of a configuration, as its dataclasses have them."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from mt_scaffold.experiment.runtime.schema import OptionValue

_TYPES = {bool: "true or false", int: "whole number", float: "number", str: "text", OptionValue: "option of fairseq"}


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


def in_words(kind: Any) -> str:
    """Return a type as users read it."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return "section"
    if kind in _TYPES:
        return _TYPES[kind]
    if origin in (types.UnionType, typing.Union):
        return in_words(next(each for each in inner if each is not type(None)))
    if origin is Literal:
        return " or ".join(map(str, inner))
    if origin in (list, dict):
        return f"{'list' if origin is list else 'names'}, each: {in_words(inner[-1])}"
    return "text or a list"
