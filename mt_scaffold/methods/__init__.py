"""The segmentation methods: how each learns from counted words, and how it segments.

>>> from mt_scaffold.methods import Picky, method_type
>>> Picky(symbols=4000, threshold=0.7).label
'picky-4000-ios0.7'
>>> method_type("picky") is Picky
True

To add a method, add a file here and a line to METHODS; experiment/configuration/systems.py names it, with its settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mt_scaffold.options import check_choice

if TYPE_CHECKING:
    from mt_scaffold.corpus.files import PathLike
    from mt_scaffold.methods.base import Method as Method
    from mt_scaffold.methods.bpe import PlainBPE as PlainBPE
    from mt_scaffold.methods.bpe import Scaffold as Scaffold
    from mt_scaffold.methods.picky import Picky as Picky
    from mt_scaffold.methods.random_trimming import RandomlyTrimmed as RandomlyTrimmed
    from mt_scaffold.methods.trimming import Trimmed as Trimmed
    from mt_scaffold.methods.unigram import Unigram as Unigram


class Entry(NamedTuple):
    """A method's class, its module (imported only when needed) and the command that learns it."""

    kind: str
    module: str
    command: str = "learn-bpe"


# Keyed by the values of --algorithm and of a system's algorithm. The first is the default.
METHODS = {
    "scaffold": Entry("Scaffold", "bpe"),
    "bpe": Entry("PlainBPE", "bpe"),
    "picky": Entry("Picky", "picky"),
    "trimmed": Entry("Trimmed", "trimming", "trim"),
    "random": Entry("RandomlyTrimmed", "random_trimming"),
    "unigram": Entry("Unigram", "unigram", "learn-unigram"),
}


def method_type(name: str) -> type[Method[Any]]:
    """Return the method of this name. Raises UsageError, which lists all names, for any other."""
    found: type[Method[Any]] = __getattr__(METHODS[check_choice("algorithm", name, METHODS)].kind)
    return found


def make_method(name: str, **settings: Any) -> Method[Any]:
    """Return a method with these settings. Raises UsageError, which lists its settings, for an unknown one."""
    kind = method_type(name)
    for each in settings:
        kind.check_setting(each)
    return kind(**settings)


def methods(command: str | None = None) -> dict[str, type[Method[Any]]]:
    """Return the methods by name: all, or those that a command learns."""
    return {name: method_type(name) for name, entry in METHODS.items() if command in (None, entry.command)}


def method_of_file(model: PathLike) -> type[Method[Any]]:
    """Return the method that segments with a stored model, by its file's suffix; codes may have any other name."""
    import os

    name = os.fspath(model)
    by_name = (kind for kind in methods().values() if not kind.has_codes and name.endswith(kind.suffix))
    return next(by_name, method_type("bpe"))


def __getattr__(name: str) -> Any:
    module = "base" if name == "Method" else {entry.kind: entry.module for entry in METHODS.values()}.get(name)
    if module is None:
        from mt_scaffold.removed import IMPORTS

        if name in IMPORTS:
            raise ImportError(f"{__name__}.{name} was removed: {IMPORTS[name]}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
