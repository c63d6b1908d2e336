"""The options of the commands that learn: those of the methods, from their settings."""

from __future__ import annotations

import argparse
import typing
from collections.abc import Mapping
from typing import Any

from mt_scaffold.errors import UsageError
from mt_scaffold.methods import make_method, methods
from mt_scaffold.methods.base import Method

Methods = Mapping[str, type[Method[Any]]]


def add_method(parser: argparse.ArgumentParser, command: str = "learn-bpe") -> None:
    """Add ``--algorithm`` and the settings of every method that a command learns; ``given_method`` reads them."""
    kinds = methods(command)
    default, *_ = kinds
    parser.add_argument(
        "--algorithm", choices=tuple(kinds), default=default, help="what to learn (default: %(default)s)"
    )
    groups = {}
    for name in dict.fromkeys(name for kind in kinds.values() for name in kind.settings()):
        having = {each: kind for each, kind in kinds.items() if name in kind.settings()}
        title = "options of all algorithms" if len(having) == len(kinds) else f"options of {' and '.join(having)}"
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        first = next(iter(having.values()))
        entry = first.settings()[name]
        flags = [f"--{name.replace('_', '-')}", *([f"-{entry.metadata['short']}"] if entry.metadata["short"] else [])]
        # None: not given.
        options: dict[str, Any] = {"default": None, "help": _help(name, having)}
        hint = typing.get_type_hints(first)[name]
        scalar = next(each for each in (hint, *typing.get_args(hint)) if each in (bool, int, float))
        if scalar is bool:
            options["action"] = "store_true"
        else:
            options |= {"metavar": entry.metadata["metavar"], "type": scalar}
        groups[title].add_argument(*flags, **options)


def _help(name: str, having: Methods) -> str:
    """Return the help of a setting, for each method if they differ."""
    meanings: dict[str, list[str]] = {}
    for method, kind in having.items():
        meanings.setdefault(kind.settings()[name].metadata["help"], []).append(method)
    if len(meanings) > 1:
        text = ", ".join(f"{meaning} ({', '.join(those)})" for meaning, those in meanings.items())
    else:
        (text,) = meanings
    default = next(iter(having.values())).settings()[name].default
    return f"{text} (default: {default})" if type(default) in (int, float) else text


def given_settings(options: argparse.Namespace, kinds: Methods) -> dict[str, Any]:
    """Return the settings that were given, by name."""
    names = dict.fromkeys(name for kind in kinds.values() for name in kind.settings())
    return {name: value for name in names if (value := getattr(options, name)) is not None}


def given_method(options: argparse.Namespace, command: str = "learn-bpe") -> Method[Any]:
    """Return the method of the options of ``add_method``; raise UsageError, with the option, for another's setting."""
    kinds = methods(command)
    settings = given_settings(options, kinds)
    for name in settings:
        try:
            kinds[options.algorithm].check_setting(name)
        except UsageError as error:
            raise UsageError(f"--{name.replace('_', '-')}: {error}") from None
    return make_method(options.algorithm, **settings)
