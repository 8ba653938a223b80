"""A picture of the graph as a page with a list of its facts: nothing from outside, no scripts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from agentd.graph.answer import Table, one_line
from agentd.graph.picture import Picture

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = (
    ":root{color-scheme:light dark}body{margin:1.5rem;font:15px/1.5 system-ui,sans-serif}"
    "table{border-collapse:collapse}"
    "th,td{padding:.2rem .9rem .2rem 0;text-align:left;overflow-wrap:anywhere}"
)


def as_html(picture: Picture) -> str:
    """The page."""
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
