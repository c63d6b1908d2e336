"""Rows of text as a table, for a terminal or in Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

# How much wider than its heading a column of text is at least, as in the package tabulate.
_HEADING_ROOM = 2


def format_table(rows: Sequence[Sequence[str]], markdown: bool = False, figures: bool = True) -> str:
    """Lay out rows of text, the first of which is the heading, as a table that ends in LF.

    figures: columns after the first hold figures and are aligned to the right. Otherwise every column is text, and
    the table is the one that the package tabulate makes without parsing numbers, "simple" or (``markdown``) "github".
    A cell is as wide as it has characters; in Markdown a caller escapes ``|`` itself.

    >>> print(format_table([["", "tokens"], ["new", "1,234"]]), end="")
         tokens
    ---  ------
    new   1,234
    """
    room = 0 if figures else _HEADING_ROOM
    columns = list(zip(*rows, strict=True))
    widths = [max(len(column[0]) + room, *map(len, column)) for column in columns]
    lines = []
    for number, row in enumerate(rows):
        cells = [
            cell.rjust(width) if figures and column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(f"| {' | '.join(cells)} |" if markdown else "  ".join(cells).rstrip())
        if number == 0:
            lines.append(_rule(widths, markdown, figures))
    return "\n".join(lines) + "\n"


def format_latex(rows: Sequence[Sequence[str]]) -> str:
    """Lay out rows of text, the first of which is the heading, as a LaTeX table (package booktabs) that ends in LF.

    Columns whose cells all begin with a digit or a sign are aligned to the right.

    >>> print(format_latex([["system", "p"], ["a_b", "< 0.001"], ["c", "0.02"]]), end="")
    \\begin{tabular}{lr}
    \\toprule
    system & p \\\\
    \\midrule
    a\\_b & $<$ 0.001 \\\\
    c & 0.02 \\\\
    \\bottomrule
    \\end{tabular}
    """
    heading, *body = rows
    columns = "".join(
        "r" if any(cells) and all(cell[:1] in ("", *"0123456789+-<") for cell in cells) else "l"
        for cells in zip(*body, strict=True)
    )
    lines = [" & ".join(map(_latex, row)) + " \\\\" for row in rows]
    parts = [f"\\begin{{tabular}}{{{columns or 'l' * len(heading)}}}", "\\toprule", lines[0], "\\midrule", *lines[1:]]
    return "\n".join([*parts, "\\bottomrule", "\\end{tabular}"]) + "\n"


def _latex(cell: str) -> str:
    """Return a cell with the characters that LaTeX would interpret written out; a sign before a digit is a minus."""
    text = cell.replace("\\", "\\textbackslash ")
    for character in "&%$#_{}":
        text = text.replace(character, f"\\{character}")
    for character, written in (("<", "$<$"), (">", "$>$"), ("±", "$\\pm$"), ("~", "\\textasciitilde ")):
        text = text.replace(character, written)
    return re.sub(r"(?<![\w.])-(?=\d)", "$-$", text)


def _rule(widths: Sequence[int], markdown: bool, figures: bool) -> str:
    if not markdown:
        return "  ".join("-" * width for width in widths)
    if not figures:
        return "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    first, *others = widths
    return f"| {' | '.join(['-' * first, *('-' * (width - 1) + ':' for width in others)])} |"


def token_cell(token: str, markdown: bool = False) -> str:
    """Return a token as a cell of a table shows it; in Markdown as code."""
    # A bar would end the cell, even within back quotes.
    return f"`{token}`".replace("|", "\\|") if markdown else token
