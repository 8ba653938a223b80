"""A picture of the graph as SVG, and as a page around it: nothing from outside, no scripts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from math import hypot

from agentd.graph.answer import Table, one_line
from agentd.graph.path import Way
from agentd.graph.picture import Arrow, Node, Picture
from agentd.graph.picture_layout import NODE_FONT, WORD_FONT, Box, arrange, width_of

_MARGIN = 24.0
_HEAD = 58.0  # px above the drawing, for the title
_FOOT = 62.0  # below it, for the legend
_LEAST = 560.0  # px of width that title and legend need
_DEPTHS = ("asked about", "1 step away", "2 steps away", "3 steps away")
_LINES = ((0.9, "sure"), (0.3, "unsure"))

_FONTS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

_LIGHT = {
    "page": "#ffffff", "ink": "#1f2430", "soft": "#5b6472", "line": "#8a94a6",
    "d0": "#f9cf6b", "d1": "#cfe3fa", "d2": "#d9efd7", "d3": "#e9e3f5", "edge": "#b9c2d0",
}  # fmt: skip
_DARK = {
    "page": "#15181e", "ink": "#eef1f6", "soft": "#a9b2c0", "line": "#76808f",
    "d0": "#8a5b00", "d1": "#1f4a78", "d2": "#26542f", "d3": "#4a3a70", "edge": "#4a5362",
}  # fmt: skip


def as_svg(picture: Picture) -> str:
    """The drawing as a file of its own. Colours follow the reader's light or dark scheme."""
    layout = arrange(picture)
    boxes = [*layout.nodes, *layout.words]
    left, top, width, height = _frame(picture, boxes)
    style = f"{_rules(_LIGHT)}@media (prefers-color-scheme:dark){{{_rules(_DARK)}}}"
    place = f'viewBox="{left:g} {top:g} {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {place} role="img" font-family="{_FONTS}">',
        f"<title>{_words(picture.title)}</title>",
        f"<style>{style}</style>",
        f'<rect class="page" x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}"/>',
        *_caption(picture, left + _MARGIN, top + 30),
    ]
    for arrow, words in zip(picture.arrows, layout.words, strict=True):
        told = _told(picture, arrow)
        parts.append(
            _curve(arrow, layout.nodes[arrow.source], words, layout.nodes[arrow.target], told)
        )
    parts += [_label(words) for words in layout.words]
    worth = "activation" if picture.by is Way.ACTIVATION else "importance"
    parts += [
        _node(node, box, worth) for node, box in zip(picture.nodes, layout.nodes, strict=True)
    ]
    parts += _legend(picture, left + _MARGIN, top + height - 26)
    return "\n".join([*parts, "</svg>", ""])


def as_html(picture: Picture) -> str:
    """The drawing in a page, with its facts as a table below it."""
    title = _words(picture.title)
    style = (
        f"{_page(_LIGHT)}@media (prefers-color-scheme:dark){{{_page(_DARK)}}}"
        "body{margin:1.5rem;font:15px/1.5 system-ui,sans-serif}svg{max-width:100%;height:auto}"
        "table{border-collapse:collapse;margin-top:.5rem}"
        "th,td{padding:.2rem .9rem .2rem 0;text-align:left;overflow-wrap:anywhere}"
    )
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{title}</title><style>{style}</style></head><body>",
            as_svg(picture).strip(),
            "<details><summary>All facts of the picture</summary>",
            *_rows(picture.as_table()),
            "</details></body></html>",
            "",
        ]
    )


def _frame(picture: Picture, boxes: list[Box]) -> tuple[float, float, float, float]:
    """Left, top, width and height of the whole drawing."""
    title = width_of(one_line(picture.title), 19)
    if not boxes:
        return 0.0, 0.0, max(_LEAST, title + 2 * _MARGIN), _HEAD + _FOOT
    left = min(box.x - box.width / 2 for box in boxes) - _MARGIN
    right = max(box.x + box.width / 2 for box in boxes) + _MARGIN
    top = min(box.y - box.height / 2 for box in boxes) - _MARGIN - _HEAD
    bottom = max(box.y + box.height / 2 for box in boxes) + _MARGIN + _FOOT
    missing = max(_LEAST, title + 2 * _MARGIN) - (right - left)
    aside = max(0.0, missing / 2)
    return (
        round(left - aside, 1), round(top, 1), round(right - left + 2 * aside, 1), round(bottom - top, 1)
    )  # fmt: skip


def _caption(picture: Picture, x: float, y: float) -> Iterator[str]:
    yield f'<text class="ink" x="{x:g}" y="{y:g}" font-size="18" font-weight="600">{_words(picture.title)}</text>'
    if picture.left_out:
        yield f'<text class="soft" x="{x:g}" y="{y + 20:g}" font-size="12">{_words(picture.left_out)}</text>'


def _node(node: Node, box: Box, worth: str) -> str:
    depth = min(node.depth, len(_DEPTHS) - 1)
    weight = ' font-weight="600"' if depth == 0 else ""
    told = node.label if depth == 0 else f"{node.label} · {worth} {node.score:.2f}"
    x, y = box.x - box.width / 2, box.y - box.height / 2
    return (
        f'<g class="d{depth}"><title>{_words(told)}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:g}" height="{box.height:g}" rx="8"/>'
        f'<text class="ink" x="{box.x:g}" y="{box.y + NODE_FONT * 0.35:.1f}" font-size="{NODE_FONT:g}" '
        f'text-anchor="middle"{weight}>{_words(box.words)}</text></g>'
    )


def _label(box: Box) -> str:
    x, y = box.x - box.width / 2, box.y - box.height / 2
    return (
        f'<rect class="page" x="{x:.1f}" y="{y:.1f}" width="{box.width:g}" height="{box.height:g}"/>'
        f'<text class="soft" x="{box.x:g}" y="{box.y + WORD_FONT * 0.35:.1f}" '
        f'font-size="{WORD_FONT:g}" text-anchor="middle">{_words(box.words)}</text>'
    )


def _curve(arrow: Arrow, source: Box, words: Box, target: Box, told: str) -> str:
    """A line from node to node through its words, and a head at its end."""
    if arrow.source == arrow.target:
        path, head = _loop(source, words)
    else:
        begin, end = _border(source, words.x, words.y), _border(target, words.x, words.y)
        bend = tuple(
            2 * w - (b + e) / 2 for w, b, e in zip((words.x, words.y), begin, end, strict=True)
        )
        path = f"M{_at(begin)} Q{_at(bend)} {_at(end)}"
        head = _head(bend, end)
    width = 0.8 + 2.2 * arrow.confidence
    return (
        f'<g class="line"><title>{_words(told)}</title><path d="{path}" fill="none" '
        f'stroke-width="{width:.2f}"/><path class="head" d="{head}"/></g>'
    )


def _loop(node: Box, words: Box) -> tuple[str, str]:
    """A fact of a node about itself: out to its words, and back."""
    dx, dy = words.x - node.x, words.y - node.y
    far = hypot(dx, dy) or 1.0
    aside = (-dy / far * 16, dx / far * 16)
    begin = _border(node, words.x + aside[0], words.y + aside[1])
    end = _border(node, words.x - aside[0], words.y - aside[1])
    first = (words.x + 2.2 * aside[0], words.y + 2.2 * aside[1])
    second = (words.x - 2.2 * aside[0], words.y - 2.2 * aside[1])
    return f"M{_at(begin)} C{_at(first)} {_at(second)} {_at(end)}", _head(second, end)


def _border(box: Box, x: float, y: float) -> tuple[float, ...]:
    """Where the line from the middle of a box to a point leaves the box."""
    dx, dy = x - box.x, y - box.y
    share = max(abs(dx) / (box.width / 2 + 2), abs(dy) / (box.height / 2 + 2), 1e-6)
    return (box.x + dx / share, box.y + dy / share) if share > 1 else (x, y)


def _head(come: tuple[float, ...], end: tuple[float, ...]) -> str:
    dx, dy = end[0] - come[0], end[1] - come[1]
    far = hypot(dx, dy) or 1.0
    dx, dy = dx / far, dy / far
    left = (end[0] - 9 * dx - 4 * dy, end[1] - 9 * dy + 4 * dx)
    right = (end[0] - 9 * dx + 4 * dy, end[1] - 9 * dy - 4 * dx)
    return f"M{_at(end)} L{_at(left)} L{_at(right)} Z"


def _legend(picture: Picture, x: float, y: float) -> Iterator[str]:
    for depth in sorted({min(node.depth, len(_DEPTHS) - 1) for node in picture.nodes}):
        yield f'<g class="d{depth}"><rect x="{x:.1f}" y="{y - 11:.1f}" width="18" height="13" rx="4"/></g>'
        yield _note(x + 24, y, _DEPTHS[depth])
        x += 24 + width_of(_DEPTHS[depth], 12) + 16
    for confidence, words in _LINES if picture.arrows else ():
        width = 0.8 + 2.2 * confidence
        yield f'<g class="line"><path d="M{x:.1f} {y - 4:.1f} h26" stroke-width="{width:.2f}"/></g>'
        yield _note(x + 32, y, words)
        x += 32 + width_of(words, 12) + 16


def _note(x: float, y: float, words: str) -> str:
    return f'<text class="soft" x="{x:.1f}" y="{y:.1f}" font-size="12">{words}</text>'


def _rules(colours: dict[str, str]) -> str:
    depths = "".join(f".d{d} rect{{fill:{colours[f'd{d}']}}}" for d in range(len(_DEPTHS)))
    return (
        f".page{{fill:{colours['page']}}}.ink{{fill:{colours['ink']}}}.soft{{fill:{colours['soft']}}}"
        f".line path{{stroke:{colours['line']}}}.line .head{{fill:{colours['line']};stroke:none}}"
        f"g rect{{stroke:{colours['edge']}}}{depths}"
    )


def _page(colours: dict[str, str]) -> str:
    return f"body{{background:{colours['page']};color:{colours['ink']}}}"


def _rows(table: Table) -> Iterator[str]:
    yield "<table>"
    for place, row in enumerate(table):
        yield f"<tr>{_cells(row, 'td' if place else 'th')}</tr>"
    yield "</table>"


def _cells(row: Iterable[str], tag: str) -> str:
    return "".join(f"<{tag}>{_words(cell)}</{tag}>" for cell in row)


def _told(picture: Picture, arrow: Arrow) -> str:
    subject, target = picture.nodes[arrow.source].label, picture.nodes[arrow.target].label
    predicate = arrow.predicate.replace("_", " ")
    return f"{subject} {predicate} {target} · confidence {arrow.confidence:.2f}"


def _at(point: tuple[float, ...]) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


def _words(text: str) -> str:
    return escape(one_line(text), quote=True)
