"""Command lines from signatures: an argument of a function is an option, and its line in the docstring the help."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import os
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Union

# The line of a docstring that explains one argument, or several.
_MEANING = re.compile(r"(\w+(?:, \w+)*): +(.*)")


@dataclass(frozen=True)
class Option:
    """How the command line shows an argument, as ``Annotated[type, Option(...)]``, if not as its type implies.

    metavar: the placeholder of its value. short: the short form, such as ``-o``. help: the help, for a type that
    several functions share; a line in the docstring takes precedence. name: the option's name, if not the argument's.
    choices: the accepted values, if the type is not a ``Literal`` of them. convert: what makes a value of the text, if
    not the type. nargs: how many values, if not as many as the type has. repeated: give the option once for each value
    of a sequence, not once for all. positional: an argument without a name, such as the options of another program.
    hidden: not on the command line.
    """

    metavar: str | None = None
    short: str | None = None
    help: str = ""
    name: str | None = None
    choices: Collection[str] | None = None
    convert: Callable[[str], Any] | None = None
    nargs: str | None = None
    repeated: bool = False
    positional: bool = False
    hidden: bool = False


# Types that many functions share.
_Path = str | os.PathLike[str]
File = Annotated[_Path, Option("FILE")]
Folder = Annotated[_Path, Option("FOLDER")]
Name = Annotated[str, Option("NAME")]
Prefix = Annotated[_Path, Option("PREFIX")]
OutputFile = Annotated[_Path, Option("FILE", "-o")]
OutputFolder = Annotated[_Path, Option("FOLDER", "-o")]
# For functions that run fairseq or sacremoses.
Workers = Annotated[int, Option(help="threads, -1: all cores")]
HIDDEN = Option(hidden=True)
CODES = Option("PATH", "-c", help="codes file (from learn-bpe)")
MERGES = Option("INT", "-m", help="use only the first INT merges (default: all)")
SPECIAL = Option("TOKEN", name="special", help="special tokens, whose ids follow those of the codes")
SUBWORD_END = Option("STR", "-s", help="the ending of every subword but a word's last (default: '@@')")


class _Argument(NamedTuple):
    """An argument of a function; shape: how many values of the type at each level of nesting, outermost first."""

    name: str
    kind: Any
    default: object
    type: Any
    shape: list[str | int]
    option: Option

    @property
    def flags(self) -> list[str]:
        name = self.option.name or self.name
        return [f"--{name.replace('_', '-')}", *filter(None, [self.option.short])]

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


def add_arguments(parser: argparse.ArgumentParser, function: Callable[..., object], leading: int = 0) -> None:
    """Declare the arguments of a function, except its first ``leading``, as those of a command.

    Positional-only arguments are positional on the command line too; all others are options, optional if they have a
    default or may be None: for ``bool`` a flag, which negates a default of True, one or more values for a sequence, N
    for a tuple of N, one of its values for a ``Literal``; of a sequence of sequences, the option may be repeated. The
    fields of a dataclass are options as well. The docstring's paragraphs between its first line and the lines ``name:
    meaning`` become the description, and those lines the help, with the default added if they do not mention it; what
    follows them is for programs.
    """
    if prose := _docstring(function)[0]:
        parser.description = prose
    _declare(parser, function, leading)


def _declare(parser: argparse.ArgumentParser, function: Callable[..., object], leading: int = 0) -> None:
    meanings = _docstring(function)[1]
    for each in _arguments(function, leading):
        if dataclasses.is_dataclass(each.type):
            _declare(parser, typing.cast(Callable[..., object], each.type))
        else:
            _add(parser, each, meanings.get(each.name, each.option.help))


def bind(function: Callable[..., object], options: argparse.Namespace, *leading: object) -> inspect.BoundArguments:
    """Return the arguments for a call of ``function``: ``leading``, then what ``add_arguments`` has declared."""
    bound = inspect.signature(function).bind_partial(*leading)
    for each in _arguments(function, len(leading)):
        if dataclasses.is_dataclass(each.type):
            settings = typing.cast(Callable[..., object], each.type)
            fields = bind(settings, options)
            bound.arguments[each.name] = settings(*fields.args, **fields.kwargs)
        else:
            bound.arguments[each.name] = getattr(options, each.name)
    return bound


def call(function: Callable[..., Any], options: argparse.Namespace) -> Any:
    """Call a function with the options that ``add_arguments`` has declared."""
    bound = bind(function, options)
    return function(*bound.args, **bound.kwargs)


def summary(function: Callable[..., object]) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(function) or "").partition("\n")[0]


def _arguments(function: Callable[..., object], leading: int = 0) -> Iterator[_Argument]:
    hints = typing.get_type_hints(function, include_extras=True)
    for parameter in list(inspect.signature(function).parameters.values())[leading:]:
        kind, shape, option = _understood(hints[parameter.name])
        default = parameter.default
        if default is parameter.empty and type(None) in typing.get_args(_without_option(hints[parameter.name])):
            default = None
        if not option.hidden:
            yield _Argument(parameter.name, parameter.kind, default, kind, shape, option)


def _without_option(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


def _understood(hint: Any) -> tuple[Any, list[str | int], Option]:
    """Return the type of each value, how many there are, and how they are shown."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        kind, shape, option = _understood(inner[0])
        return kind, shape, next((note for note in inner[1:] if isinstance(note, Option)), option)
    if origin in (Union, types.UnionType):
        rest = [each for each in inner if each is not type(None)]
        # A value of one of several types, such as a path, is given as text.
        return _understood(rest[0]) if len(rest) == 1 else (int if int in rest else str, [], Option())
    if origin in (Iterable, Sequence, tuple):
        kind, shape, option = _understood(inner[0])
        return kind, [len(inner) if origin is tuple else "+", *shape], option
    return hint, [], Option()


def _docstring(function: Callable[..., object]) -> tuple[str, Mapping[str, str]]:
    """Return a docstring's paragraphs between the first line and the arguments, and its line on each by name."""
    names = inspect.signature(function).parameters.keys()
    meanings: dict[str, str] = {}
    prose, current = [""], list[str]()
    for line in (inspect.getdoc(function) or "").replace("``", "").splitlines():
        found = _MEANING.match(line)
        if found and names >= {*found[1].split(", ")}:
            current = found[1].split(", ")
            meanings |= dict.fromkeys(current, found[2])
        elif not line:
            current = []
            prose.append("")
        elif current:
            meanings |= {name: f"{meanings[name]} {line.strip()}" for name in current}
        elif not meanings:
            prose[-1] += f"{line}\n"
    return "\n\n".join(each.strip() for each in prose[1:] if each), meanings


def _add(parser: argparse.ArgumentParser, argument: _Argument, meaning: str) -> None:
    kind, option, default = argument.type, argument.option, argument.default
    shape = list(argument.shape)
    settings: dict[str, Any] = {"metavar": option.metavar, "choices": option.choices}
    # A default of zero is worth showing, but not one that means "not given".
    shown = not argument.required and kind is not bool and default not in (None, "", ())
    if shown and "default" not in meaning:
        meaning = f"{meaning} (default: {default})"
    settings["help"] = meaning.replace("%", "%%")
    if typing.get_origin(kind) is Literal:
        settings["choices"] = typing.get_args(kind)
    elif kind in (int, float):
        settings |= {"type": kind, "metavar": option.metavar or "N"}
    if option.convert is not None:
        settings["type"] = option.convert
    if option.positional or argument.kind is inspect.Parameter.POSITIONAL_ONLY:
        if shape:
            settings["nargs"] = shape[0] if argument.required or shape[0] != "+" else "*"
        if not argument.required:
            settings["default"] = default
        # nargs="?" would not take several of them on both sides of an option.
        parser.add_argument(argument.name, **settings).required = argument.required
    elif kind is bool:
        action = "store_false" if default else "store_true"
        parser.add_argument(*argument.flags, dest=argument.name, action=action, help=settings["help"])
    else:
        if len(shape) > 1 or option.repeated:
            settings["action"] = "append"
            del shape[0]
            default = [*default] if isinstance(default, tuple) else default
        if shape:
            settings["nargs"] = option.nargs or shape[0]
        settings |= {"required": True} if argument.required else {"default": default}
        parser.add_argument(*argument.flags, dest=argument.name, **settings)
