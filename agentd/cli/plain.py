"""Plain, aligned text for terminals and pipes."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_WIDEST = 60


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
    """`text` without control characters, so that no model can steer the terminal."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) != "Cc")


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


def _cell(value: Any) -> str:
    text = " ".join(words(value).split())
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
