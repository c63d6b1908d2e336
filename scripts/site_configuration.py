"""The reference page of an experiment's configuration, from the dataclasses of its schema and site_keys' texts."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from site_keys import INTRODUCTIONS, KEYS

from mt_scaffold.experiment.configuration import Models
from mt_scaffold.experiment.runtime.schema import OptionValue

_INTRODUCTION = """\
An experiment is one YAML file; `mt-scaffold init` writes one for your files, and those in `configs/` are commented. A
key that is not listed here, or a value of the wrong type or out of range, is reported with file, line and key before
anything runs. `mt-scaffold run --set SECTION.KEY=VALUE` overrides a key.
"""
_TYPES = {bool: "true or false", int: "whole number", float: "number", str: "text", Any: "anything"} | {
    Models: "text, or a list of texts"
}


def configuration_page(title: str, config: type) -> str:
    """Return the page with every key of one kind of experiment: its meaning, type, range, default and an example."""
    return "\n".join([f"# {title}", "", _INTRODUCTION, *_sections(config)])


def _sections(config: type) -> Iterator[str]:
    """Yield the sections of a configuration: the keys of the file, and once those of each dataclass in it."""
    waiting: list[tuple[str, type]] = [("", config)]
    places = {config: ""}
    while waiting:
        path, kind = waiting.pop(0)
        yield f"## `{path}`" if path else "## The keys of the file"
        yield ""
        yield from (INTRODUCTIONS[kind.__name__], "")
        for name, hint, limits, default in _keys(kind):
            for inner, suffix in _dataclasses(hint):
                if inner not in places:
                    places[inner] = f"{path}.{name}{suffix}".lstrip(".")
                    waiting.append((places[inner], inner))
            sentence, example = KEYS[kind.__name__, name]
            said = "; ".join(filter(None, [_type(hint, places) + _range(limits), default]))
            yield f"- `{name}`: {sentence} {said[0].upper()}{said[1:]}. Example: `{name}: {example}`"
        yield ""


def _keys(kind: Any) -> Iterator[tuple[str, Any, Mapping[str, Any], str]]:
    """Yield the keys of a section: name, type, limits and default."""
    if hasattr(kind, "known_keys"):  # a system, whose keys are also those of its method
        methods = kind.methods()
        for name, key in kind.known_keys().items():
            having = [f"`{each}`" for each, method in methods.items() if name in method.settings()]
            only = "" if len(having) in (0, len(methods)) else f"with {', '.join(having)}"
            default = "" if key.default is None else _shown(key.default)
            yield name, key.kind, key.limits, "; ".join(filter(None, [only, default]))
        return
    hints = typing.get_type_hints(kind)
    for entry in dataclasses.fields(kind):
        yield str(entry.metadata.get("key", entry.name)), hints[entry.name], entry.metadata, _default(entry)


def _dataclasses(kind: Any, suffix: str = "") -> Iterator[tuple[type, str]]:
    """Yield the dataclasses in a type, each with the part of its path that follows the key."""
    if dataclasses.is_dataclass(kind):
        yield typing.cast(type, kind), suffix
    inner = typing.get_args(kind)
    if typing.get_origin(kind) is dict:
        yield from _dataclasses(inner[1], f"{suffix}.NAME")
    elif typing.get_origin(kind) is list:
        yield from _dataclasses(inner[0], f"{suffix}[]")
    elif inner and typing.get_origin(kind) is not Literal:
        for each in inner:
            yield from _dataclasses(each, suffix)


def _type(kind: Any, places: dict[type, str]) -> str:
    """Return a type in words."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return f"section `{places[typing.cast(type, kind)]}`"
    if kind == OptionValue:
        return "true, false, a number, text or a list of these"
    if origin in (types.UnionType, typing.Union):
        return _type(next(each for each in inner if each is not type(None)), places)
    if origin is Literal:
        return " or ".join(f"`{choice}`" for choice in inner)
    if origin is list:
        return f"list, each: {_type(inner[0], places)}"
    if origin is tuple:
        return f"list of {len(inner)}: {', '.join(_type(each, places) for each in inner)}"
    if origin is dict:
        return f"names, each: {_type(inner[1], places)}"
    return _TYPES[kind]


def _range(limits: Mapping[str, Any]) -> str:
    """Return the values that a type is limited to, in brackets."""
    least, most = limits.get("least"), limits.get("most")
    said = [f"{least} to {most}" if most is not None else "" if least is None else f"{least} or more"]
    said.append(limits.get("pattern_says") or "")
    said.append(f"a name is {limits['key_pattern_says']}" if limits.get("key_pattern") else "")
    inside = "; ".join(filter(None, said))
    return f" ({inside})" if inside else ""


def _default(entry: dataclasses.Field[Any]) -> str:
    if entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING:
        return "**required**"
    value = entry.default if entry.default_factory is dataclasses.MISSING else entry.default_factory()
    if value is None or value == "" or dataclasses.is_dataclass(value):
        return ""
    return _shown(value)


def _shown(value: Any) -> str:
    shown = str(value).lower() if isinstance(value, bool) else str(value).replace("'", "")
    return f"default: `{shown}`"
