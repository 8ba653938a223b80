"""Plain, aligned text for terminals and pipes."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_WIDEST = 60
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def table(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], empty: str) -> str:
    """One line a row under the names of the columns; `empty` when there are no rows."""
    lines = [[_cell(row.get(column)) for column in columns] for row in rows]
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


def visible(text: str) -> str:
    """`text` without characters that steer a terminal or turn the direction of writing."""
    return "".join(c for c in text if not _steers(c))


def revealed(text: str) -> str:
    """`text` with such characters spelled out: what is to be judged must not hide anything."""
    return "".join(f"\\u{ord(c):04x}" if _steers(c) else c for c in text)


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
            yield f"{indent}{name.ljust(width)}  {words(value)}"


def _steers(character: str) -> bool:
    if character in "\n\t":
        return False
    return character in _TURNING or unicodedata.category(character) == "Cc"


def _cell(value: Any) -> str:
    text = " ".join(words(value).split())
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
