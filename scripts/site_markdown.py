"""GitHub's Markdown (CommonMark with tables) → the same for Python-Markdown, which MkDocs uses.

Python-Markdown wants four spaces inside a list item whatever its marker, and an empty line before a list and a table,
after a comment and around an item of several paragraphs. It shows the backslash of a pipe in code in a table.

Code with columns, such as a table that a command prints, gets the class ``columns``: the site scrolls it, and breaks
lines of other code.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

_PARSER = MarkdownIt("commonmark").enable("table")
_MARKER = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_STEP = 4
# Columns, and no comment after a command.
_COLUMNS = re.compile(r"\S {3,}[^\s#]|^-{3,} +-{3,}")
_LANGUAGES = ("", "console")


def for_python_markdown(text: str) -> str:
    """Return a page of GitHub's Markdown so that Python-Markdown understands it in the same way."""
    lines = text.split("\n")
    tokens = _PARSER.parse(text)
    # The items that each line is in, from the outermost: where the item begins, and the column of its content.
    items: list[list[tuple[int, int]]] = [[] for _ in lines]
    apart: set[int] = set()
    table_lines: set[int] = set()
    for token in tokens:
        if token.map is None:
            continue
        first, end = token.map
        if token.type == "list_item_open" and (marker := _MARKER.match(lines[first])):
            for number in range(first, end):
                items[number].append((first, marker.end()))
            if not all(line.strip() for line in lines[first:end]):
                apart.update((first, end))  # an item of several paragraphs
        elif token.type in ("bullet_list_open", "ordered_list_open", "table_open"):
            apart.add(first)
        elif token.type == "html_block":
            apart.add(end)
        if token.type == "table_open":
            table_lines.update(range(first, end))
        if token.type == "fence" and token.info in _LANGUAGES and _has_columns(token.content):
            lines[first] = lines[first].rstrip().removesuffix(token.info) + f" {{ .{token.info or 'text'} .columns }}"
    written: list[str] = []
    for number, line in enumerate(lines):
        moved = _indented(line, number, items[number])
        if number in table_lines:
            moved = re.sub(r"`[^`]+`", lambda code: code[0].replace(r"\|", "|"), moved)
        if number in apart and written and written[-1].strip() and moved.strip():
            written.append("")
        written.append(moved)
    return "\n".join(written)


def _has_columns(code: str) -> bool:
    """Return whether the output in a block of code is set in columns, in two lines or more."""
    return sum(bool(_COLUMNS.search(line)) for line in code.splitlines() if not line.startswith("$ ")) > 1


def _indented(line: str, number: int, items: list[tuple[int, int]]) -> str:
    """Return a line with four spaces for each item that it is in, its marker aside."""
    if not items or not line.strip():
        return line
    begins, column = items[-1]
    if number == begins:
        return " " * _STEP * (len(items) - 1) + line.lstrip()
    inside = line[column:] if not line[:column].strip() else line.lstrip()
    return " " * _STEP * len(items) + inside
