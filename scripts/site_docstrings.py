"""The docstrings of this project as Markdown: an extension of griffe, with which mkdocstrings reads the package.

A docstring lists arguments as lines ``name: meaning``, continued by indented lines, and shows calls after ``>>>``.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ARGUMENT = re.compile(r"[a-z_][a-z0-9_]*(, [a-z_][a-z0-9_]*)*: ")


def as_markdown(docstring: str) -> str:
    """Return a docstring with its arguments as a list and its calls as code."""
    return "\n\n".join(map(_paragraph, re.split(r"\n\s*\n", docstring.strip("\n"))))


def _paragraph(text: str) -> str:
    if text.startswith(">>>"):
        return f"```pycon\n{text}\n```"
    lines = text.split("\n")
    if not _ARGUMENT.match(lines[0]):
        return text
    written: list[str] = []
    for line in lines:
        if _ARGUMENT.match(line):
            names, _, rest = line.partition(": ")
            listed = ", ".join(f"`{name}`" for name in names.split(", "))
            written.append(f"- {listed}: {rest}")
        else:
            written.append(f"    {line.strip()}")
    return "\n".join(written)


class Docstrings(griffe.Extension):
    """Rewrites each docstring of the package when it is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
