"""Rows of text as a table, for a terminal or in Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

# A column of text is at least this much wider than its heading, as in the package tabulate.
_HEADING_ROOM = 2


def format_table(rows: Sequence[Sequence[str]], markdown: bool = False, figures: bool = True) -> str:
    """Lay out rows of text, the first of which is the heading, as a table that ends in LF.

    figures: columns after the first hold figures and are aligned to the right. Otherwise every column is text, and
    the table is the one that the package tabulate makes without parsing numbers, "simple" or (``markdown``) "github".
    Widths count characters. In Markdown a bar is escaped, and ``<`` outside of code.

    >>> print(format_table([["", "tokens"], ["new", "1,234"]]), end="")
         tokens
    ---  ------
    new   1,234
    """
    room = 0 if figures else _HEADING_ROOM
    if markdown:
        rows = [[*map(_markdown_cell, row)] for row in rows]
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


def decimal(value: float, digits: int = 2, *, signed: bool = False) -> str:
    """Format a number with ``digits`` decimal places; one that rounds to zero has no minus sign.

    signed: show a plus sign too.

    >>> decimal(-0.001), decimal(-0.001, signed=True), decimal(1.5, 3, signed=True)
    ('0.00', '+0.00', '+1.500')
    """
    # Adding 0.0 makes a negative zero positive.
    rounded = round(value, digits) + 0.0
    return f"{rounded:{'+' if signed else ''}.{digits}f}"


def latex_table(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Lay out rows of text, the first of which is the heading, as a LaTeX table with the rules of booktabs.

    left: the number of columns aligned to the left; the others are aligned to the right.

    >>> print(latex_table([["system", "BLEU"], ["R&D", "30.1"]]), end="")
    \\begin{tabular}{lr}
    \\toprule
    system & BLEU \\\\
    \\midrule
    R\\&D & 30.1 \\\\
    \\bottomrule
    \\end{tabular}
    """
    heading, *others = (" & ".join(map(latex, row)) + r" \\" for row in rows)
    columns = "l" * left + "r" * (len(rows[0]) - left)
    above = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", heading, r"\midrule"]
    return "\n".join([*above, *others, r"\bottomrule", r"\end{tabular}", ""])


_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "−": "$-$",
    "↓": r"$\downarrow$",
    "†": r"$\dagger$",
}


def latex(text: str) -> str:
    """Escape text for LaTeX: its special characters, and those that its fonts lack.

    >>> latex("-0.5 to +0.1 of bpe-4000_x")
    '$-$0.5 to +0.1 of bpe-4000\\\\_x'
    """
    escaped = "".join(_LATEX.get(character, character) for character in text)
    return re.sub(r"(?<![\w.-])-(?=\d)", "$-$", escaped)


def _markdown_cell(cell: str) -> str:
    # A bar would end the cell, even within back quotes; <unk> would be HTML.
    escaped = cell.replace("|", "\\|")
    return escaped if "`" in cell else escaped.replace("<", "&lt;")


def _rule(widths: Sequence[int], markdown: bool, figures: bool) -> str:
    if not markdown:
        return "  ".join("-" * width for width in widths)
    if not figures:
        return "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    first, *others = widths
    return f"| {' | '.join(['-' * first, *('-' * (width - 1) + ':' for width in others)])} |"
