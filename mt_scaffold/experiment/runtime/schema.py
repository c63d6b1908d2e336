"""Convert plain data from YAML or JSON to dataclasses, and check it.

A dataclass is its own schema: the keys are the names of its fields, with the field's type and the range in its metadata
(``bounds``). A value that does not fit raises WrongValue with its dotted key.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from mt_scaffold.errors import MTScaffoldError, UsageError, printable
from mt_scaffold.removed import VALUES, instead_of_key, without_removed_keys

# The value of a fairseq option.
OptionValue = bool | int | float | str | list[int | float | str]


class WrongValue(Exception):
    """A value that does not fit the schema; ``key`` is its dotted key."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"{key}: {message}" if key else message)
        self.key = key


class Pattern(NamedTuple):
    """A regular expression for text, and its meaning in words."""

    regex: str
    says: str


# fairseq adds the number of an epoch to the seed, and NumPy takes 32 bits.
_MOST_SEED = 4_000_000_000


def check_seed(seed: int) -> int:
    """Return the random seed of a training; raise UsageError if NumPy would refuse it, in some epoch or in all."""
    if not 0 <= seed <= _MOST_SEED:
        raise UsageError(f"a seed must be from 0 to {_MOST_SEED}, which leaves room for epochs in 32 bits, not {seed}")
    return seed


def bounds(
    *,
    least: float | None = None,
    most: float | None = None,
    pattern: Pattern | None = None,
    key_pattern: Pattern | None = None,
    filled: bool = False,
    check: Callable[[Any], object] | None = None,
) -> dict[str, Any]:
    """Return the metadata of a field: limits that ``build`` checks in addition to its type.

    least, most: the range of a number. pattern, key_pattern: for text, and for the keys of a dictionary. filled: not
    empty. check: raises MTScaffoldError, with the message to show, for a value that is out of range.
    """
    return {
        "least": least,
        "most": most,
        "pattern": pattern,
        "key_pattern": key_pattern,
        "filled": filled,
        "check": check,
    }


def build(kind: Any, value: Any, key: str = "", limits: Mapping[str, Any] = {}) -> Any:
    """Return ``value`` as the type ``kind``: a dataclass, list, sequence, tuple, dict, literal, optional or scalar.

    A class with a method ``from_keys`` builds itself from the value and its dotted key.

    key: the dotted key of the value, for errors. limits: as returned by ``bounds``. Raises WrongValue.
    """
    if kind is Any:
        return value
    if (from_keys := getattr(kind, "from_keys", None)) is not None:
        return from_keys(value, key)
    origin = typing.get_origin(kind)
    if dataclasses.is_dataclass(kind):
        return build_dataclass(kind, value, key)
    if origin is None and issubclass(kind, tuple):
        # A named tuple, which is a list in JSON.
        return kind(*build(tuple[*typing.get_type_hints(kind).values()], value, key))  # type: ignore[misc]
    if kind == OptionValue:
        return _build_option(value, key)
    if origin in (types.UnionType, typing.Union):
        (inner,) = (choice for choice in typing.get_args(kind) if choice is not type(None))
        return None if value is None else build(inner, value, key, limits)
    if origin is Literal:
        choices = typing.get_args(kind)
        if value not in choices:
            if gone := VALUES.get(key.rpartition(".")[2], {}).get(str(value)):
                raise WrongValue(key, f"'{value}' was removed; {gone}")
            raise WrongValue(key, f"must be {' or '.join(choices)}, not {show(value)}")
        return value
    if origin in (list, Sequence):
        if not isinstance(value, list):
            raise WrongValue(key, f"must be a list, not {show(value)}")
        if limits.get("filled") and not value:
            raise WrongValue(key, "must not be empty")
        (inner,) = typing.get_args(kind)
        return [build(inner, entry, f"{key}[{number}]", limits) for number, entry in enumerate(value)]
    if origin is tuple:
        inner = typing.get_args(kind)
        if not isinstance(value, list | tuple) or len(value) != len(inner):
            raise WrongValue(key, f"must be a list of {len(inner)}, not {show(value)}")
        return tuple(
            build(each, entry, f"{key}[{number}]")
            for number, (each, entry) in enumerate(zip(inner, value, strict=True))
        )
    if origin is dict:
        named_by, inner = typing.get_args(kind)
        entries = _build_dict(inner, value, key, limits)
        return {_build_name(named_by, name, key): entry for name, entry in entries.items()}
    return _build_scalar(kind, value, key, limits)


def build_dataclass(kind: Any, value: Any, key: str) -> Any:
    """Return ``value`` as the dataclass ``kind``, as ``build`` does; a ``from_keys`` of the class is ignored."""
    if not isinstance(value, dict):
        raise WrongValue(key, f"must be 'key: value' lines, not {show(value)}")
    hints = typing.get_type_hints(kind)
    fields = {str(entry.metadata.get("key", entry.name)): entry for entry in dataclasses.fields(kind)}
    value = known_keys(value, fields, key)
    arguments = {}
    for name, entry in fields.items():
        if name in value:
            arguments[entry.name] = build(hints[entry.name], value[name], join_key(key, name), entry.metadata)
        elif entry.metadata.get("omit_none"):
            arguments[entry.name] = None
        elif entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING:
            raise WrongValue(join_key(key, name), "missing")
    return kind(**arguments)


def known_keys(value: Mapping[str, Any], known: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the keys of ``value`` without removed ones that have no effect; raises WrongValue for an unknown key."""
    try:
        kept = without_removed_keys(value, known, key)
    except KeyError as error:
        (name,) = error.args
        raise WrongValue(join_key(key, name), instead_of_key(key, name)) from None
    for name in kept:
        if name not in known:
            raise WrongValue(join_key(key, name), f"unknown key{nearest(join_key('', name), known)}")
    return kept


def _build_dict(inner: Any, value: Any, key: str, limits: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WrongValue(key, f"must be 'name: value' lines, not {show(value)}")
    if limits.get("filled") and not value:
        raise WrongValue(key, "must not be empty")
    for name in value:
        pattern = limits.get("key_pattern")
        if not isinstance(name, str) or (pattern and not re.fullmatch(pattern.regex, name)):
            raise WrongValue(join_key(key, name), f"not a valid name; must be {pattern.says if pattern else 'text'}")
    return {name: build(inner, entry, join_key(key, name)) for name, entry in value.items()}


def _build_name(kind: type, name: str, key: str) -> Any:
    """Return a key of a dictionary as its type; in JSON every key is text."""
    try:
        return kind(name)
    except ValueError:
        raise WrongValue(join_key(key, name), f"not a valid name; must be {_TYPE_NAMES[kind]}") from None


def _build_option(value: Any, key: str) -> OptionValue:
    """Return an option's value: a scalar, or a list of scalars."""
    entries = value if isinstance(value, list) else [value]
    for entry in entries:
        if not isinstance(entry, (int, float, str)) or (isinstance(value, list) and isinstance(entry, bool)):
            raise WrongValue(key, f"must be true, false, a number, text or a list of those, not {show(entry)}")
        _refuse_large(entry, key)
    if not entries:
        raise WrongValue(key, "must not be empty")
    return typing.cast(OptionValue, value)


# The most bits of a whole number; Python refuses to print much larger ones.
_BITS = 64
_TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def in_words(kind: Any) -> str:
    """Return a type as users read it."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return "a section"
    if kind in _TYPE_NAMES:
        return _TYPE_NAMES[kind]
    if kind == OptionValue:
        return "an option of fairseq"
    if origin in (types.UnionType, typing.Union):
        return in_words(next(each for each in inner if each is not type(None)))
    if origin is Literal:
        return " or ".join(map(str, inner))
    if origin in (list, dict):
        return f"{'a list' if origin is list else 'names'}, each: {in_words(inner[-1])}"
    return "text or a list"


def _build_scalar(kind: type, value: Any, key: str, limits: Mapping[str, Any]) -> Any:
    # In Python True is a number; in a configuration it is not.
    fits = isinstance(value, kind) or (kind is float and isinstance(value, int))
    if not fits or (isinstance(value, bool) and kind is not bool):
        hint = " (quote text that YAML would read as something else)" if kind is str else ""
        hint = _as_number(kind, value) if kind in (int, float) and isinstance(value, str) else hint
        raise WrongValue(key, f"must be {_TYPE_NAMES[kind]}, not {show(value)}{hint}")
    if kind in (int, float):
        least, most = limits.get("least"), limits.get("most")
        # Results may hold the infinite loss of a diverged training; a number with bounds must be finite.
        if "least" in limits and isinstance(value, float) and not math.isfinite(value):
            raise WrongValue(key, f"must be a finite number, not {value}")
        if least is not None and value < least:
            raise WrongValue(key, f"must be {least} or more, not {show(value)}")
        if most is not None and value > most:
            raise WrongValue(key, f"must be {most} or less, not {show(value)}")
    if check := limits.get("check"):
        try:
            check(value)
        except MTScaffoldError as error:
            raise WrongValue(key, str(error)) from None
        except ValueError:  # Python could not print a huge number in the message
            _refuse_large(value, key)
            raise
    _refuse_large(value, key)
    if kind is str and (pattern := limits.get("pattern")) and not re.fullmatch(pattern.regex, value):
        raise WrongValue(key, f"must be {pattern.says}, not {show(value)}")
    return value


def _as_number(kind: type, text: str) -> str:
    """Return a hint how YAML 1.1 writes the number that a text such as 1e-3 spells, or ""."""
    try:
        number = kind(float(text))
    except (ValueError, OverflowError):
        return ""
    mantissa, exponent, power = repr(number).partition("e")
    written = f"{mantissa}{'.0' if exponent and '.' not in mantissa else ''}{exponent}{power}"
    return f", which is text in YAML; write {written}" if number == float(text) and math.isfinite(number) else ""


def _refuse_large(value: Any, key: str) -> None:
    if isinstance(value, int) and value.bit_length() > _BITS:
        raise WrongValue(key, f"must be a number of at most {_BITS} bits, not {show(value)}")


def show(value: Any) -> str:
    """Return a value as errors show it, in one line."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "'key: value' lines"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return f"'{printable(value)}'"
    if isinstance(value, int) and value.bit_length() > _BITS:
        return f"one of {value.bit_length():,} bits"
    return str(value)


def check_one_of(key: str, section: object, names: Iterable[str]) -> str:
    """Return which of the keys ``names`` a section has; raise WrongValue unless it is exactly one."""
    given = [name for name in names if getattr(section, name) is not None]
    if len(given) != 1:
        shown = " and ".join(given) or "none"
        raise WrongValue(key, f"give exactly one of {', '.join(names)} (given: {shown})")
    return given[0]


def nearest(name: str, known: Mapping[str, Any]) -> str:
    """Return a hint for an unknown name: the nearest of the ``known`` names, or all of them."""
    matches = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {matches[0]}?" if matches else f" (known: {', '.join(known)})"


def join_key(key: str, name: object) -> str:
    """Return the dotted key of ``name`` within ``key``, in one line."""
    large = isinstance(name, int) and name.bit_length() > _BITS
    shown = show(name) if large else str(name).replace("\n", "\\n")
    return f"{key}.{shown}" if key else shown


def self_and_parents(key: str) -> list[str]:
    """Return a dotted key and the keys that contain it, the nearest first."""
    found = [key]
    while match := re.fullmatch(r"(.*)(\.[^.\[]+|\[\d+\])", found[-1]):
        found.append(match[1])
    return found


def without_none(value: Any) -> Any:
    """Return plain data without the keys whose value is None, at any depth."""
    if isinstance(value, dict):
        return {name: without_none(entry) for name, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [without_none(entry) for entry in value]
    return value
