"""The order in which exported facts are imported. Pure and light: the command line orders whole
files by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_OVER = ("superseded", "ended")


def is_over(row: Mapping[str, Any]) -> bool:
    """Whether the row says that its fact no longer holds."""
    return row.get("status") in _OVER


def successors_first(
    rows: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows with their original places: first the facts that hold, then the others, each
    after its successor. An interrupted import therefore never makes a past fact look current.

    Each row whose successor is known gets it as `successor`, by text and `valid_from`, because ids
    have no meaning in another database or another part of the file.
    """
    named = {row["id"]: place for place, row in enumerate(rows) if isinstance(row.get("id"), str)}

    def successor(row: Mapping[str, Any]) -> int | None:
        by = row.get("superseded_by")
        return named.get(by) if isinstance(by, str) else None

    order = dict.fromkeys(place for place, row in enumerate(rows) if not is_over(row))
    for place in range(len(rows)):
        way: dict[int, None] = {}
        at: int | None = place
        while at is not None and at not in order and at not in way:
            way[at] = None
            at = successor(rows[at])
        order.update(dict.fromkeys(reversed(way)))
    for place in order:
        row = dict(rows[place])
        if "successor" not in row and (by := successor(row)) is not None:
            row["successor"] = {name: rows[by].get(name) for name in ("text", "valid_from")}
        yield place, row
