"""The reference page of an experiment's configuration, made from the dataclasses that are its schema."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from site_docstrings import as_markdown
from site_keys import said_of

from mt_scaffold.experiment.runtime.schema import OptionValue

_INTRODUCTION = """\
An experiment is one YAML file; those in `configs/` are commented. A key that is not listed here, a value of the wrong
type and a value out of range are reported with file, line and key before anything runs. On the command line,
`--set key=value` of `mt-scaffold run` overrides a key.
"""
_TYPES = {bool: "true or false", int: "whole number", float: "number", str: "text", Any: "anything"}


def configuration_page(title: str, config: type) -> str:
    """Return the page with every key of one kind of experiment: type, default, range, and what the schema says."""
    return "\n".join([f"# {title}", "", _INTRODUCTION, *_sections(config)])


def _sections(config: type) -> Iterator[str]:
    """Yield the sections of a configuration: the keys of the file, and those of each dataclass in it, once."""
    waiting: list[tuple[str, type]] = [("", config)]
    places = {config: ""}
    while waiting:
        path, kind = waiting.pop(0)
        yield f"## `{path}`" if path else "## The keys of the file"
        yield ""
        yield from (as_markdown(inspect.getdoc(kind) or ""), "")
        for name, hint, limits, default in _keys(kind):
            for inner, suffix in _dataclasses(hint):
                if inner not in places:
                    places[inner] = f"{path}.{name}{suffix}".lstrip(".")
                    waiting.append((places[inner], inner))
            meaning, example = said_of(kind.__name__, name)
            said = [_type(hint, places), *_range(limits), default]
            shown = f" Example: `{name}: {example}`" if example else ""
            yield f"`{name}`\n:   {f'{meaning} ' if meaning else ''}{'; '.join(filter(None, said))}.{shown}\n"


def _keys(kind: Any) -> Iterator[tuple[str, Any, Mapping[str, Any], str]]:
    """Yield the keys of a section: name, type, limits and default."""
    if hasattr(kind, "known_keys"):  # a system, whose keys are also those of its method
        methods = kind.methods()
        for name, key in kind.known_keys().items():
            having = [each for each, method in methods.items() if name in method.settings()]
            only = "" if len(having) in (0, len(methods)) else f"of {', '.join(having)}"
            default = "" if key.default is None else _shown(key.default)
            yield name, key.kind, key.limits, "; ".join(filter(None, [only, key.limits.get("help"), default]))
        return
    hints = typing.get_type_hints(kind)
    for entry in dataclasses.fields(kind):
        yield str(entry.metadata.get("key", entry.name)), hints[entry.name], entry.metadata, _default(entry)


def _dataclasses(kind: Any, suffix: str = "") -> Iterator[tuple[type, str]]:
    """Yield the dataclasses in a type, each with what its path has after the key."""
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
        return f"the keys of `{places[typing.cast(type, kind)]}`"
    if kind == OptionValue:
        return "true, false, a number, text or a list of those"
    if origin in (types.UnionType, typing.Union):
        return _type(next(each for each in inner if each is not type(None)), places)
    if origin is Literal:
        return " or ".join(f"`{choice}`" for choice in inner)
    if origin is list:
        return f"list of: {_type(inner[0], places)}"
    if origin is tuple:
        return f"list of {len(inner)}: {', '.join(_type(each, places) for each in inner)}"
    if origin is dict:
        return f"`NAME: value` lines, each value: {_type(inner[1], places)}"
    return _TYPES[kind]


def _range(limits: Mapping[str, Any]) -> Iterator[str]:
    if limits.get("least") is not None:
        yield f"{limits['least']} or more"
    if limits.get("most") is not None:
        yield f"{limits['most']} or less"
    if limits.get("pattern"):
        yield f"{limits['pattern_says']}"
    if limits.get("key_pattern"):
        yield f"names are {limits['key_pattern_says']}"


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
