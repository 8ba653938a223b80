"""Tables as plain text. Pure."""

from __future__ import annotations

import unicodedata

from agentd.graph.answer import Table, one_line

WIDEST = 48  # columns of a terminal that a cell may take


def aligned(table: Table, widest: int = WIDEST) -> str:
    """The table with its columns below each other and a line under its headings; longer cells end in
    `…`. Columns of numbers stand right.
    """
    rows = [[_clipped(one_line(cell), widest) for cell in row] for row in table]
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    numbers = [
        len(rows) > 1 and all(map(_is_number, column[1:])) for column in zip(*rows, strict=True)
    ]
    lines = ["  ".join(map(_padded, row, widths, numbers)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(map(_columns, text))


def _columns(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _clipped(text: str, widest: int) -> str:
    if columns(text) <= widest:
        return text
    taken, width = "", 0
    for letter in text:
        width += _columns(letter)
        if width > widest - 1:
            break
        taken += letter
    return f"{taken}…"


def _padded(cell: str, width: int, is_number: bool) -> str:
    blanks = " " * (width - columns(cell))
    return blanks + cell if is_number else cell + blanks


def _is_number(cell: str) -> bool:
    return cell.replace(".", "", 1).isdecimal()
