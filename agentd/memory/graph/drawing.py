"""Draws the graph: tables as plain text, pictures for Graphviz or a browser. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from html import escape

from agentd.memory.graph.answer import Table, one_line
from agentd.memory.graph.picture import Picture

WIDEST = 48  # widest cell, in terminal columns
_FILLS = ("#f6c667", "#bfdcf7", "#d5ecd2", "#e8e2f3")  # by depth
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = (
    ":root{color-scheme:light dark}body{margin:1.5rem;font:15px/1.5 system-ui,sans-serif}"
    "table{border-collapse:collapse}"
    "th,td{padding:.2rem .9rem .2rem 0;text-align:left;overflow-wrap:anywhere}"
)


def align(table: Table, widest: int = WIDEST) -> str:
    """Return the table as text with aligned columns and a line under its headings; cells wider than
    `widest` end in `…`. Columns of numbers are right-aligned.
    """
    rows = [[_clip(one_line(cell), widest) for cell in row] for row in table]
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    numbers = [
        len(rows) > 1 and all(map(_is_number, column[1:])) for column in zip(*rows, strict=True)
    ]
    lines = ["  ".join(map(_pad, row, widths, numbers)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def columns(text: str) -> int:
    """Return how many terminal columns a text takes."""
    return sum(map(_columns, text))


def _columns(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _clip(text: str, widest: int) -> str:
    if columns(text) <= widest:
        return text
    taken, width = "", 0
    for letter in text:
        width += _columns(letter)
        if width > widest - 1:
            break
        taken += letter
    return f"{taken}…"


def _pad(cell: str, width: int, is_number: bool) -> str:
    blanks = " " * (width - columns(cell))
    return blanks + cell if is_number else cell + blanks


def _is_number(cell: str) -> bool:
    return cell.replace(".", "", 1).isdecimal()


def as_dot(picture: Picture) -> str:
    """Return a Graphviz digraph: nodes are coloured by depth, arrows are as thick as their facts
    are sure.
    """
    caption = " · ".join(filter(None, (picture.title, picture.left_out)))
    lines = [
        "digraph agentd {",
        f'  graph [label={_in_quotes(caption)}, labelloc=t, charset="UTF-8", overlap=false];',
        '  node [shape=box, style="rounded,filled", fontname="sans-serif"];',
        '  edge [fontname="sans-serif", fontsize=10];',
    ]
    for place, node in enumerate(picture.nodes):
        fill = _FILLS[min(node.depth, len(_FILLS) - 1)]
        told = f"{node.score:.2f}"
        lines.append(
            f'  n{place} [label={_in_quotes(node.label)}, fillcolor="{fill}", tooltip="{told}"];'
        )
    for arrow in picture.arrows:
        words = _in_quotes(arrow.predicate.replace("_", " "))
        width = f"{0.5 + 2 * arrow.confidence:.2f}"
        lines.append(f"  n{arrow.source} -> n{arrow.target} [label={words}, penwidth={width}];")
    return "\n".join([*lines, "}", ""])


def _in_quotes(text: str) -> str:
    """Return a quoted string of the DOT language, in which a backslash begins an escape and `&` an
    HTML entity.
    """
    text = one_line(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def as_html(picture: Picture) -> str:
    """Return an HTML page with the picture as a table; the page loads nothing and runs no
    script.
    """
    title = _words(picture.title)
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{title}</title><style>{_STYLE}</style></head><body>",
            f"<h1>{title}</h1>",
            *([f"<p>{_words(picture.left_out)}</p>"] if picture.left_out else []),
            *(_rows(picture.as_table()) if picture.nodes else []),
            "</body></html>",
            "",
        ]
    )


def _rows(table: Table) -> Iterator[str]:
    yield "<table>"
    for place, row in enumerate(table):
        yield f"<tr>{_cells(row, 'td' if place else 'th')}</tr>"
    yield "</table>"


def _cells(row: Iterable[str], tag: str) -> str:
    return "".join(f"<{tag}>{_words(cell)}</{tag}>" for cell in row)


def _words(text: str) -> str:
    return escape(one_line(text), quote=True)
