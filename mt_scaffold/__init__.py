"""Scaffold-BPE for machine translation and language models: learn and apply codes, run and compare experiments.

>>> from mt_scaffold import BPE, learn_bpe
>>> learned = learn_bpe(lines=["low lower lowest", "low low newer newest"], num_symbols=6, min_frequency=1)
>>> BPE(learned.codes).segment("lowest newer")
'lo@@ west ne@@ wer'
"""

from __future__ import annotations

import functools
import sys

__version__ = "0.1.0"


@functools.cache
def _homes() -> dict[str, str]:
    """Return the module of each public name, as ``__init__.pyi`` imports it."""
    import ast
    from pathlib import Path

    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [each for each in stub.body if isinstance(each, ast.ImportFrom)]
    return {alias.name: str(each.module) for each in imports for alias in each.names}


def __getattr__(name: str) -> object:
    """Load a public name on its first use, so that a command pays only for what it uses."""
    import importlib

    if name == "_core":
        try:
            return importlib.import_module(f"{__name__}._core")
        except ModuleNotFoundError:
            raise ImportError(
                f"{__path__[0]}: this is the source, and its core is not built; start Python in another folder, or run "
                "pip install --editable . here"
            ) from None
    if name == "__all__":
        return sorted(_homes())
    if name.startswith("__") or name not in _homes():
        from mt_scaffold.removed import IMPORTS

        if name in IMPORTS:
            raise ImportError(f"{__name__}.{name} was removed: {IMPORTS[name]}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_homes()[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_homes()]


class _RemovedModules:
    """Refuses the import of a module that was removed, with what takes its place; Python asks it last."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raise ImportError if this was a module of the package; return None for any other name."""
        package, _, own = name.partition(".")
        if package == __name__:
            from mt_scaffold.removed import IMPORTS

            if own in IMPORTS:
                raise ImportError(f"{name} was removed: {IMPORTS[own]}")


sys.meta_path.append(_RemovedModules)
