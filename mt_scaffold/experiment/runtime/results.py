"""Results as JSON: write the dataclasses of every step, and read them back.

Metadata of a field: ``key``: its name in the file; ``omit_none``: omit it if it is None; ``omit_if``: omit it if this
attribute of its owner is true.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any, TypeVar

from mt_scaffold.corpus.files import PathLike, open_input, write_text
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.runtime.schema import WrongValue, build

Result = TypeVar("Result")

# The files of a comparison: "tex" is the table of a paper, "all.tex" all tables.
COMPARISON_KINDS = ("txt", "md", "tex", "all.tex", "json", "csv")


def comparison_file(prefix: PathLike, kind: str) -> str:
    """Return the name of a file of a comparison.

    >>> comparison_file("comparison", "json"), comparison_file("comparison", "all.tex")
    ('comparison.json', 'comparison-all.tex')
    """
    return f"{os.fspath(prefix)}{'-' if kind == 'all.tex' else '.'}{kind}"


def to_plain(value: Any) -> Any:
    """Return a result as dictionaries, lists and scalars, in the order of its fields."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        entries = [(entry, getattr(value, entry.name)) for entry in dataclasses.fields(value)]
        return {
            entry.metadata.get("key", entry.name): to_plain(content)
            for entry, content in entries
            if not _is_omitted(value, entry, content)
        }
    if isinstance(value, Mapping):
        return {str(key): to_plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(entry) for entry in value]
    return value


def _is_omitted(owner: Any, entry: dataclasses.Field[Any], content: Any) -> bool:
    condition = entry.metadata.get("omit_if")
    return bool((content is None and entry.metadata.get("omit_none")) or (condition and getattr(owner, condition)))


def to_json(result: Any) -> str:
    """Return a result as JSON, as ``write_result`` writes it."""
    return json.dumps(to_plain(result), indent=2, ensure_ascii=False) + "\n"


def write_result(path: PathLike, result: Any) -> None:
    """Write a result (a dataclass) as JSON. Raises MTScaffoldError if the file cannot be written."""
    write_text(path, to_json(result))


def read_result(kind: type[Result], path: PathLike) -> Result:
    """Read a result of the dataclass ``kind``.

    Raises MTScaffoldError, which names the key, if the file is not JSON or does not fit ``kind``.
    """
    with open_input(path) as stream:
        content = stream.read()
    try:
        result: Result = build(kind, json.loads(content))
    except (ValueError, RecursionError, WrongValue) as error:
        problem = str(error) if isinstance(error, WrongValue) else f"not JSON: {error}"
        raise MTScaffoldError(f"{path}: {problem}; run the step that writes this file again") from error
    return result
