"""Plain, aligned text for terminals and pipes."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_WIDEST = 60
_WIDEST_LAST = 240  # nothing stands behind the last column
_STEP = 4
_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")  # between columns
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def table(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], empty: str) -> str:
    """One line a row under the names of the columns; `empty` when there are no rows."""
    lines = [
        [
            _cell(row.get(column), _WIDEST_LAST if column == columns[-1] else _WIDEST)
            for column in columns
        ]
        for row in rows
    ]
    if not lines:
        return empty
    lines.insert(0, [column.replace("_", " ") for column in columns])
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def fields(values: Mapping[str, Any]) -> str:
    """One line a value, names aligned; values within values are indented below their name."""
    return "\n".join(_field_lines(values, ""))


def folded(text: str, width: int) -> str:
    """`text` with no line wider than `width`. What goes on stands below the last column's beginning, or
    that whole column stands on the next line where little room is left for it.
    """
    return "\n".join(part for line in text.split("\n") for part in _folded_line(line, width))


def words(value: Any) -> str:
    """A single value as a person writes it."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {words(item)}" for key, item in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(words(item) for item in value) or "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def is_plain(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is to get words alone, without colours."""
    return bool(environ.get("NO_COLOR")) or environ.get("TERM", "dumb") in {"", "dumb", "unknown"}


def visible(text: str) -> str:
    """`text` without characters that steer a terminal or turn the direction of writing."""
    return "".join(c for c in text if not _steers(c))


def revealed(text: str) -> str:
    """`text` with such characters spelled out: what is to be judged must not hide anything."""
    return "".join(f"\\u{ord(c):04x}" if _steers(c) else c for c in text)


def counted(number: int, noun: str, nouns: str = "") -> str:
    """“1 fact”, “2,000 facts”; `nouns` is the plural where that takes more than an s."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def spent(usd: float, tokens: int) -> str:
    """What calls cost; what has no price is told in tokens, since “$0.00” would say that it was free."""
    return counted(tokens, "token") if tokens and not usd else f"${usd:.2f}"


def _field_lines(values: Mapping[str, Any], indent: str) -> Iterable[str]:
    width = max((len(key) for key in values), default=0)
    for key, value in values.items():
        name = key.replace("_", " ")
        if isinstance(value, Mapping) and value:
            yield f"{indent}{name}"
            yield from _field_lines(value, indent + "  ")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            yield f"{indent}{name}"
            yield from (f"{indent}  {words(item)}" for item in value)
        else:
            below = "\n" + " " * (len(indent) + width + 2)
            yield f"{indent}{name.ljust(width)}  {below.join(words(value).splitlines())}"


def _steers(character: str) -> bool:
    if character in "\n\t":
        return False
    return character in _TURNING or unicodedata.category(character) == "Cc"


def _folded_line(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    margin = len(line) - len(line.lstrip(" "))
    gaps = list(_GAP.finditer(line))
    if gaps and gaps[-1].end() > width * 3 // 4:
        head, last = line[: gaps[-1].start()], line[gaps[-1].end() :]
        return [*_folded_line(head, width), *_folded_line(" " * (margin + _STEP) + last, width)]
    return textwrap.wrap(
        line[margin:],
        width,
        initial_indent=line[:margin],
        subsequent_indent=" " * (gaps[-1].end() if gaps else margin),
        replace_whitespace=False,
        expand_tabs=False,
        break_on_hyphens=False,
    )


def _cell(value: Any, widest: int) -> str:
    text = " ".join(words(value).split())
    return text if len(text) <= widest else text[: widest - 1] + "…"
