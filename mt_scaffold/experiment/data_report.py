"""The numbers of data-report.json: each step of the data writes its own JSON file, and they are put together here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.files import PathLike, open_input, write_text


def count_words(line: bytes) -> int:
    """The number of words in a line: what stands between ASCII spaces, and nothing else (LF at its end aside)."""
    return sum(1 for word in line.rstrip(b"\n").split(b" ") if word)


def write_report(path: PathLike, numbers: Mapping[str, Any]) -> None:
    """Write ``numbers`` as JSON under ``path``. Raises MTScaffoldError where that is not possible."""
    write_text(path, json.dumps(numbers, indent=2, ensure_ascii=False) + "\n")


def merge_reports(parts: Mapping[str, PathLike], output: PathLike) -> None:
    """Write one report that holds the reports in ``parts``, each under its name.

    A slash in a name opens a level: ``{"clean/train": "logs/clean-train.json"}`` puts the content of that file
    under ``clean``, ``train``. Raises MTScaffoldError for a file that is missing or not JSON.
    """
    merged: dict[str, Any] = {}
    for name, path in parts.items():
        numbers = _read_report(path)
        *groups, last = name.split("/")
        place = merged
        for group in groups:
            place = place.setdefault(group, {})
        place[last] = numbers
    write_report(output, merged)


def add_reports(parts: Sequence[PathLike], output: PathLike) -> None:
    """Write one report with the sums of the numbers in ``parts``; what is no number must be the same in all of them.

    Raises MTScaffoldError for a file that is missing or not JSON, and where the parts do not fit each other.
    """
    total: dict[str, Any] = {}
    for path in parts:
        for name, value in _read_report(path).items():
            if isinstance(value, int) and name in total:
                total[name] += value
            elif total.setdefault(name, value) != value:
                raise MTScaffoldError(f"{Path(path)}: {name} is {value}, elsewhere {total[name]}: do this part again")
    write_report(output, total)


def _read_report(path: PathLike) -> dict[str, Any]:
    with open_input(path) as stream:
        content = stream.read()
    try:
        return dict(json.loads(content))
    except (ValueError, TypeError) as error:
        raise MTScaffoldError(
            f"{Path(path)}: not a JSON report ({error}); run the step that writes it again"
        ) from error
